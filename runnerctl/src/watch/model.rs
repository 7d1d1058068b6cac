//! What the view knows and what a person has chosen to see. How it changes is in `update` and `keys`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use protocol::path::WirePath;
use protocol::request::LogStream;
use protocol::view::{IterationView, QuestionView, RunView, StatusView};
use protocol::words::{GuardOutcome, PhaseName, VerdictName};

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

/// Lines of events that are kept of each repository.
const MAX_ENTRIES: usize = 500;
/// Steps of agents that are kept of each repository.
const MAX_STEPS: usize = 400;
/// Most bytes of a log that a pane keeps.
const TAIL_BYTES: usize = 512 * 1024;

/// A part of the screen that keys can be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    Repos,
    Tree,
    Agent,
    Guard,
    Events,
}

impl Focus {
    /// In the order of the tabulator.
    pub(crate) const ALL: [Self; 5] = [Self::Repos, Self::Tree, Self::Agent, Self::Guard, Self::Events];
}

/// What the keys mean.
#[derive(Debug)]
pub(crate) enum Mode {
    /// Panes and commands.
    Normal,
    /// The keys are explained.
    Help,
    /// A question waits for yes or no.
    Ask(Confirmation),
    /// A text to the run is being typed.
    Type(Draft),
    /// The open questions of agents are listed, to choose one; none while they are read.
    Questions {
        /// What is asked.
        list: Option<Vec<QuestionView>>,
        /// Which one is chosen.
        cursor: usize,
    },
    /// A record is being read.
    Read(Box<LogViewer>),
}

/// A text that is being typed.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The run that it is for.
    pub(crate) target: RunKey,
    /// What it will be.
    pub(crate) purpose: DraftPurpose,
    /// What was typed so far.
    pub(crate) text: String,
}

/// What a text is typed for.
#[derive(Debug)]
pub(crate) enum DraftPurpose {
    /// For the next session.
    Note,
    /// Why a node is rejected.
    Reject,
    /// To answer a question.
    Answer(Box<QuestionView>),
}

/// Something that is done only where a person says yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Confirmation {
    /// What is asked.
    pub(crate) text: String,
    /// What is done then.
    pub(crate) request: SteerRequest,
}

/// What came of the last command, until the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusNotice {
    /// What it says.
    pub(crate) text: String,
    /// Whether it went wrong.
    pub(crate) is_error: bool,
}

/// What is known of a repository beside its state.
#[derive(Debug)]
pub(crate) struct RepoActivity {
    /// The phases of its iteration.
    pub(crate) timeline: PhaseTimeline,
    /// What its agent does.
    pub(crate) steps: RingBuffer<AgentStep>,
    /// What has happened in it.
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

/// A daemon that does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostConnection {
    /// Since when.
    pub(crate) since: Timestamp,
    /// Why.
    pub(crate) why: String,
}

/// Answers that are awaited.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    pub(crate) statuses: SingleFlight,
    pub(crate) tree: SingleFlight,
    pub(crate) iterations: SingleFlight,
}

/// How far the panes that grow at their end are scrolled.
#[derive(Debug, Default)]
pub(crate) struct PaneScrolls {
    pub(crate) agent: ScrollPosition,
    pub(crate) guard: ScrollPosition,
    pub(crate) events: ScrollPosition,
}

/// Everything that is shown.
#[derive(Debug)]
pub(crate) struct Model {
    /// What the terminal can show, and the time.
    pub(crate) caps: TermCapabilities,
    /// Columns and rows.
    pub(crate) size: (u16, u16),
    /// The machines, where there are several.
    pub(crate) machines: Vec<MachineSummary>,
    /// The daemon does not answer.
    pub(crate) lost: Option<LostConnection>,
    /// When the state that is shown was read.
    pub(crate) read_at: Option<Timestamp>,
    /// Every repository, in the daemon's order.
    pub(crate) repos: Vec<StatusView>,
    /// What else is known of them, by their ids.
    pub(crate) activities: BTreeMap<String, RepoActivity>,
    /// Id of the repository that is shown.
    pub(crate) selected: Option<String>,
    /// The run whose tree is shown.
    pub(crate) shown_run: Option<RunKey>,
    /// Its task tree.
    pub(crate) tree_view: TreeView,
    /// Its iterations, oldest first.
    pub(crate) iterations: Vec<IterationView>,
    /// What the agent printed.
    pub(crate) agent: LogTail,
    /// What the guard printed.
    pub(crate) guard: LogTail,
    /// Whether the agent's output is shown as it was printed.
    pub(crate) is_raw: bool,
    /// Which pane has the keys.
    pub(crate) focus: Focus,
    /// How far panes are scrolled.
    pub(crate) scrolls: PaneScrolls,
    /// What the keys mean.
    pub(crate) mode: Mode,
    /// What came of the last command.
    pub(crate) notice: Option<StatusNotice>,
    /// Answers that are awaited.
    pub(crate) pending: PendingRequests,
}

impl Model {
    /// Begins with nothing known; `selected` is the repository to show first.
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

    /// Returns the time that ages are counted to.
    pub(crate) fn now(&self) -> Timestamp {
        self.caps.screen.now
    }

    /// Whether something that is shown changes with the time alone.
    pub(crate) fn needs_clock(&self) -> bool {
        let is_timed = |run: &RunView| run.phase.is_some() || run.wait_until.is_some();
        self.lost.is_some() || self.repos.iter().filter_map(|status| status.run.as_ref()).any(is_timed)
    }

    /// Returns the place of the selected repository in the list.
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

    /// Returns what else is known of the selected repository.
    pub(crate) fn activity(&self) -> Option<&RepoActivity> {
        self.activities.get(self.selected.as_ref()?)
    }

    /// Returns the selected repository and its run, as requests name them.
    pub(crate) fn target(&self) -> Option<RunKey> {
        let status = self.status()?;
        let run = status.run.as_ref().map(|run| &run.summary);
        let path: &WirePath = run.map_or(&status.repo.path, |run| &run.path);
        Some(RunKey { repo: status.repo.id.clone(), path: path.clone(), run: run.map(|run| run.id.clone()) })
    }

    /// Whether steps of the agent are shown, and not what it printed.
    ///
    /// An agent whose program does not tell its steps is shown by what it prints.
    pub(crate) fn shows_steps(&self) -> bool {
        let newest_step = self.activity().and_then(|live| live.steps.items().back().map(|step| step.iter));
        let shown_iteration = self.pane_log(LogStream::Agent).map(|key| key.iter);
        !self.is_raw && newest_step.is_some() && newest_step >= shown_iteration
    }

    /// Returns the node that is finished and waits for a person's review.
    pub(crate) fn node_under_review(&self) -> Option<&str> {
        let last = self.run().filter(|run| !run.summary.state.is_terminal())?.recent.first()?;
        (last.verdict == VerdictName::Pending).then_some(last.node.as_str())
    }

    /// Whether the guard of the selected run is on the base, before its first iteration.
    pub(crate) fn is_baseline(&self) -> bool {
        self.run().and_then(|run| run.phase.as_ref()).is_some_and(|phase| phase.baseline)
    }

    /// Returns the file that a pane shows: the live iteration's, else the last one there is.
    pub(crate) fn pane_log(&self, stream: LogStream) -> Option<LogKey> {
        let (target, run) = (self.target()?, self.run()?);
        if self.is_baseline() {
            let baseline = LogKey { target, iter: run.iteration, wait: None, stream: LogStream::Baseline };
            return (stream == LogStream::Guard).then_some(baseline);
        }
        let is_reviewed = run.phase.as_ref().is_some_and(|phase| phase.name == PhaseName::Review);
        // The reviewer is the agent that is at work then.
        let stream = if stream == LogStream::Agent && is_reviewed { LogStream::Review } else { stream };
        let first_phase = if stream == LogStream::Guard { PhaseName::Guard } else { PhaseName::Work };
        let has_output = |view: &&IterationView| stream != LogStream::Guard || view.guard != GuardOutcome::Skipped;
        let live = run.phase.as_ref().filter(|phase| phase.name >= first_phase).map(|_| (run.iteration, None));
        let (iter, wait) = live.or_else(|| run.recent.iter().find(has_output).map(|view| (view.iter, view.wait)))?;
        Some(LogKey { target, iter, wait, stream })
    }

    /// Returns the state of a reader, where one is open.
    pub(crate) fn reader(&self) -> Option<&LogViewer> {
        if let Mode::Read(reader) = &self.mode { Some(reader) } else { None }
    }

    /// Says what came of a command.
    pub(crate) fn set_notice(&mut self, text: impl Into<String>, is_error: bool) {
        self.notice = Some(StatusNotice { text: text.into(), is_error });
    }

    /// Shows another repository; returns what must be read for it.
    pub(crate) fn select(&mut self, id: Option<String>) -> Vec<Request> {
        if self.selected == id {
            return Vec::new();
        }
        self.selected = id;
        self.show_selected()
    }
}
