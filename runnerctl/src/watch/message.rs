//! What reaches the view, and what it asks for: the whole traffic between the model and the effects.

use std::fmt;

use protocol::event::Event;
use protocol::path::WirePath;
use protocol::reply::TreeReply;
use protocol::request::LogStream;
use protocol::view::{IterationView, QuestionView, StatusView, TextView};

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Message {
    /// A key was pressed.
    Key(Key),
    /// Text was pasted.
    Paste(String),
    /// The terminal has this many columns and rows.
    Size(u16, u16),
    /// A second has gone by.
    Tick,
    /// A daemon answers.
    Connected,
    /// No daemon answers any more, or still none does: why.
    Lost(String),
    /// An event of the daemon's.
    Event(Box<Event>),
    /// The state of all repositories.
    Statuses(Result<Vec<StatusView>, RequestError>),
    /// A task tree.
    Tree(RunKey, Result<Box<TreeReply>, RequestError>),
    /// The iterations of a run.
    Iterations(RunKey, Result<Vec<IterationView>, RequestError>),
    /// A file of a record from a byte on.
    LogChunk(LogPosition, Result<TextView, RequestError>),
    /// The questions of a repository that are open.
    Questions(RunKey, Result<Vec<QuestionView>, RequestError>),
    /// What came of a request to steer.
    Steered(SteerRequest, Result<String, RequestError>),
}

/// A key, as far as it has a meaning here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Ctrl(char),
    Enter,
    Escape,
    Backspace,
    Tab,
    BackTab,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

/// Something that is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// Read the state of all repositories.
    Statuses,
    /// Send what the agent and the guard of this repository do, and of no other.
    Follow(WirePath),
    /// Read a task tree.
    Tree(RunKey),
    /// Read the iterations of a run.
    Iterations(RunKey),
    /// Read a file of a record from a byte on.
    LogChunk(LogPosition),
    /// Read the questions of a repository that are open.
    Questions(RunKey),
    /// Steer a run.
    Steer(SteerRequest),
    /// Show the machine that is so much further, of several.
    SwitchMachine(isize),
    /// Draw everything anew.
    Redraw,
    /// Give the terminal back and stop until the shell says to go on.
    Suspend,
    /// Leave.
    Quit,
}

/// A run in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunKey {
    /// Id of the repository.
    pub(crate) repo: String,
    /// The work tree.
    pub(crate) path: WirePath,
    /// Id of the run; none where the repository has had none.
    pub(crate) run: Option<String>,
}

/// A file of an iteration's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogKey {
    /// Of which run.
    pub(crate) target: RunKey,
    /// Number of the iteration.
    pub(crate) iter: u32,
    /// Number of the wait under it.
    pub(crate) wait: Option<u32>,
    /// Which file.
    pub(crate) stream: LogStream,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogPosition {
    /// The file.
    pub(crate) key: LogKey,
    /// The first byte.
    pub(crate) offset: u64,
}

/// A request to steer a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SteerRequest {
    /// Which run.
    pub(crate) target: RunKey,
    /// What is asked.
    pub(crate) action: SteerAction,
    /// The commands in the repository's configuration are confirmed.
    pub(crate) confirmed: bool,
}

/// What is asked of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SteerAction {
    /// Stop after the iteration, or at once.
    Pause { now: bool },
    /// Go on; without waiting for a time.
    Resume { now: bool },
    /// Run one iteration.
    Step,
    /// End.
    Cancel,
    /// Tell the next session something.
    Note(String),
    /// Answer the question with this id.
    Answer { id: String, text: String },
    /// Let the node pass that waits for a review.
    Approve,
    /// Leave it open, and say why.
    Reject(String),
}

impl fmt::Display for SteerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pause { now: false } => "pause",
            Self::Pause { now: true } => "pause --now",
            Self::Resume { .. } => "resume",
            Self::Step => "step",
            Self::Cancel => "cancel",
            Self::Note(_) => "note",
            Self::Answer { .. } => "answer",
            Self::Approve => "approve",
            Self::Reject(_) => "reject",
        })
    }
}

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestError {
    /// What went wrong.
    pub(crate) message: String,
    /// The command to type next.
    pub(crate) hint: Option<String>,
    /// Whether a person has yet to confirm the repository's commands.
    pub(crate) is_unconfirmed: bool,
}
