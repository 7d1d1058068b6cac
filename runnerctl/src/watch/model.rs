//! The state of the view: what it knows, and what the user has selected. It is changed in `update` and `keys`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use protocol::path::WirePath;
use protocol::request::LogStream;
use protocol::view::{IterationView, QuestionView, RunView, StatusView};
use protocol::words::{GuardOutcome, PhaseName, RunStatus, VerdictName};

use super::capabilities::TermCapabilities;
use super::entries::{EventEntry, RingBuffer};
use super::machines::MachineSummary;
use super::message::{LogKey, Request, RunKey, SteerRequest};
use super::reader::LogViewer;
use super::scroll::ScrollPosition;
use super::single_flight::SingleFlight;
use super::steps::AgentStep;
use super::tail::{KeepPolicy, LogTail};
use super::timeline::PhaseTimeline;
use super::tree_view::TreeView;

/// Number of history lines stored for each repository.
const MAX_ENTRIES: usize = 500;
/// Number of agent steps stored for each repository.
const MAX_STEPS: usize = 400;
/// Maximum size of a log in a pane, in bytes.
const TAIL_BYTES: usize = 512 * 1024;

/// From this size on, the repositories have a pane, and agent and guard have one each.
const LARGE_SIZE: (u16, u16) = (110, 32);

/// A part of the screen that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    Repos,
    Tree,
    Agent,
    Guard,
    Events,
}

impl Focus {
    /// In the order of the tab key.
    pub(crate) const ALL: [Self; 5] = [Self::Repos, Self::Tree, Self::Agent, Self::Guard, Self::Events];
}

/// The mode, which determines the meaning of keys.
#[derive(Debug)]
pub(crate) enum Mode {
    /// Panes and commands.
    Normal,
    /// The help is shown.
    Help,
    /// A question waits for yes or no.
    Ask(Confirmation),
    /// The user is typing a text for the run.
    Type(Draft),
    /// The agents' open questions are listed for selection; `None` while they are loaded.
    Questions {
        /// The questions.
        list: Option<Vec<QuestionView>>,
        /// The index of the selected one.
        cursor: usize,
    },
    /// A record is shown in the reader.
    Read(Box<LogViewer>),
}

/// A text that is being typed.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The run that receives it.
    pub(crate) target: RunKey,
    /// Its purpose.
    pub(crate) purpose: DraftPurpose,
    /// The text so far.
    pub(crate) text: String,
}

/// The purpose of a text.
#[derive(Debug)]
pub(crate) enum DraftPurpose {
    /// A note to the next session.
    Note,
    /// The reason for rejecting a node.
    Reject { iter: u32 },
    /// The answer to a question.
    Answer(Box<QuestionView>),
}

/// A command that needs confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Confirmation {
    /// The question.
    pub(crate) text: String,
    /// The command to run after a yes.
    pub(crate) request: SteerRequest,
}

/// The result of the last command, until the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusNotice {
    /// Its message.
    pub(crate) text: String,
    /// Whether the command failed.
    pub(crate) is_error: bool,
}

/// What is known about a repository besides its state.
#[derive(Debug)]
pub(crate) struct RepoActivity {
    /// The phases of its iteration.
    pub(crate) timeline: PhaseTimeline,
    /// The steps of its agent.
    pub(crate) steps: RingBuffer<AgentStep>,
    /// Its history.
    pub(crate) entries: RingBuffer<EventEntry>,
}

impl Default for RepoActivity {
    fn default() -> Self {
        Self {
            timeline: PhaseTimeline::default(),
            steps: RingBuffer::with_limit(MAX_STEPS),
            entries: RingBuffer::with_limit(MAX_ENTRIES),
        }
    }
}

/// A daemon that does not respond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostConnection {
    /// Since this time.
    pub(crate) since: Timestamp,
    /// The reason.
    pub(crate) why: String,
}

/// Requests in flight.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    pub(crate) statuses: SingleFlight,
    pub(crate) tree: SingleFlight,
    pub(crate) iterations: SingleFlight,
}

/// The scroll positions of the panes that grow at the end.
#[derive(Debug, Default)]
pub(crate) struct PaneScrolls {
    pub(crate) agent: ScrollPosition,
    pub(crate) guard: ScrollPosition,
    pub(crate) events: ScrollPosition,
}

/// The whole state.
#[derive(Debug)]
pub(crate) struct Model {
    /// The terminal's capabilities, and the time.
    pub(crate) caps: TermCapabilities,
    /// Width and height of the terminal.
    pub(crate) size: (u16, u16),
    /// The machines, if there are several.
    pub(crate) machines: Vec<MachineSummary>,
    /// The daemon does not respond.
    pub(crate) lost: Option<LostConnection>,
    /// When the displayed state was read.
    pub(crate) read_at: Option<Timestamp>,
    /// Every repository, in the daemon's order.
    pub(crate) repos: Vec<StatusView>,
    /// What else is known about them, by id.
    pub(crate) activities: BTreeMap<String, RepoActivity>,
    /// Id of the selected repository.
    pub(crate) selected: Option<String>,
    /// The run whose tree is shown.
    pub(crate) shown_run: Option<RunKey>,
    /// Its task tree.
    pub(crate) tree_view: TreeView,
    /// Its iterations, oldest first.
    pub(crate) iterations: Vec<IterationView>,
    /// The agent's output.
    pub(crate) agent: LogTail,
    /// The guard's output.
    pub(crate) guard: LogTail,
    /// Whether the agent's output is shown unprocessed.
    pub(crate) is_raw: bool,
    /// The focused pane.
    pub(crate) focus: Focus,
    /// The scroll positions of the panes.
    pub(crate) scrolls: PaneScrolls,
    /// The mode.
    pub(crate) mode: Mode,
    /// The result of the last command.
    pub(crate) notice: Option<StatusNotice>,
    /// Requests in flight.
    pub(crate) pending: PendingRequests,
}

impl Model {
    /// Creates a model without any data; `selected` is the repository to show first.
    pub(crate) fn new(look: TermCapabilities, size: (u16, u16), selected: Option<String>) -> Self {
        Self {
            caps: look,
            size,
            machines: Vec::new(),
            lost: None,
            read_at: None,
            repos: Vec::new(),
            activities: BTreeMap::new(),
            selected,
            shown_run: None,
            tree_view: TreeView::default(),
            iterations: Vec::new(),
            agent: LogTail::with_budget(TAIL_BYTES, KeepPolicy::Newest),
            guard: LogTail::with_budget(TAIL_BYTES, KeepPolicy::Newest),
            is_raw: false,
            focus: Focus::Tree,
            scrolls: PaneScrolls::default(),
            mode: Mode::Normal,
            notice: None,
            pending: PendingRequests::default(),
        }
    }

    /// Whether the terminal has room either for the list of repositories or for the panes of one.
    pub(crate) fn is_small(&self) -> bool {
        self.size.0 < LARGE_SIZE.0 || self.size.1 < LARGE_SIZE.1
    }

    /// Whether the list of repositories takes the whole screen.
    pub(crate) fn shows_list(&self) -> bool {
        self.focus == Focus::Repos && self.is_small()
    }

    /// Returns the current time, for ages.
    pub(crate) fn now(&self) -> Timestamp {
        self.caps.screen.now
    }

    /// Whether something on the screen changes only because time passes.
    pub(crate) fn needs_clock(&self) -> bool {
        let is_timed = |run: &RunView| run.phase.is_some() || run.wait_until.is_some();
        self.lost.is_some() || self.repos.iter().filter_map(|status| status.run.as_ref()).any(is_timed)
    }

    /// Returns the index of the selected repository in the list.
    pub(crate) fn selected_index(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.repos.iter().position(|status| status.repo.id == *selected)
    }

    /// Returns the state of the selected repository.
    pub(crate) fn status(&self) -> Option<&StatusView> {
        self.selected_index().map(|at| &self.repos[at])
    }

    /// Returns the run of the selected repository.
    pub(crate) fn run(&self) -> Option<&RunView> {
        self.status()?.run.as_ref()
    }

    /// Returns what else is known about the selected repository.
    pub(crate) fn activity(&self) -> Option<&RepoActivity> {
        self.activities.get(self.selected.as_ref()?)
    }

    /// Returns the selected repository and its run, as used in requests.
    pub(crate) fn target(&self) -> Option<RunKey> {
        let status = self.status()?;
        let run = status.run.as_ref().map(|run| &run.summary);
        let path: &WirePath = run.map_or(&status.repo.path, |run| &run.path);
        Some(RunKey { repo: status.repo.id.clone(), path: path.clone(), run: run.map(|run| run.id.clone()) })
    }

    /// Whether the steps of the agent are shown, instead of its output.
    ///
    /// If the agent's program does not report steps, its output is shown.
    pub(crate) fn shows_steps(&self) -> bool {
        let newest_step = self.activity().and_then(|live| live.steps.items().back().map(|step| step.iter));
        let shown_iteration = self.pane_log(LogStream::Agent).map(|key| key.iter);
        !self.is_raw && newest_step.is_some() && newest_step >= shown_iteration
    }

    /// Returns the iteration whose finished node waits for a person's review.
    pub(crate) fn iteration_under_review(&self) -> Option<&IterationView> {
        let is_past = |state| matches!(state, RunStatus::Running | RunStatus::Cancelled);
        let last = self.run().filter(|run| !is_past(run.summary.state))?.recent.first()?;
        (last.verdict == VerdictName::Pending).then_some(last)
    }

    /// Whether the guard of the selected run is checking the base, before the first iteration.
    pub(crate) fn is_baseline(&self) -> bool {
        self.run().and_then(|run| run.phase.as_ref()).is_some_and(|phase| phase.baseline)
    }

    /// Returns the file for a pane: the live iteration's, otherwise the most recent one.
    pub(crate) fn pane_log(&self, stream: LogStream) -> Option<LogKey> {
        let target = self.target()?;
        let run = self.run()?;
        if self.is_baseline() {
            let baseline = LogKey { target, iter: run.iteration, wait: None, stream: LogStream::Baseline };
            return (stream == LogStream::Guard).then_some(baseline);
        }
        let is_reviewed = run.phase.as_ref().is_some_and(|phase| phase.name == PhaseName::Review);
        // The reviewer is the active agent then.
        let stream = if stream == LogStream::Agent && is_reviewed { LogStream::Review } else { stream };
        let first_phase = if stream == LogStream::Guard { PhaseName::Guard } else { PhaseName::Work };
        let has_output = |view: &&IterationView| stream != LogStream::Guard || view.guard != GuardOutcome::Skipped;
        let live = run.phase.as_ref().filter(|phase| phase.name >= first_phase).map(|_| (run.iteration, None));
        let (iter, wait) = live.or_else(|| run.recent.iter().find(has_output).map(|view| (view.iter, view.wait)))?;
        Some(LogKey { target, iter, wait, stream })
    }

    /// Returns the state of the reader, if it is open.
    pub(crate) fn reader(&self) -> Option<&LogViewer> {
        if let Mode::Read(reader) = &self.mode { Some(reader) } else { None }
    }

    /// Shows the result of a command.
    pub(crate) fn set_notice(&mut self, text: impl Into<String>, is_error: bool) {
        self.notice = Some(StatusNotice { text: text.into(), is_error });
    }

    /// Selects another repository; returns the commands that load its data.
    pub(crate) fn select(&mut self, id: Option<String>) -> Vec<Request> {
        if self.selected == id {
            return Vec::new();
        }
        self.selected = id;
        self.show_selected()
    }
}
