//! Messages to the model and commands from it: everything exchanged between the model and the effects.

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
    /// The terminal has this width and height.
    Size(u16, u16),
    /// A second has passed.
    Tick,
    /// A daemon responds.
    Connected,
    /// No daemon responds any more, or still none does, for this reason.
    Lost(String),
    /// An event from the daemon.
    Event(Box<Event>),
    /// The state of all repositories.
    Statuses(Result<Vec<StatusView>, RequestError>),
    /// A task tree.
    Tree(RunKey, Result<Box<TreeReply>, RequestError>),
    /// The iterations of a run.
    Iterations(RunKey, Result<Vec<IterationView>, RequestError>),
    /// A part of a record's file.
    LogChunk(LogPosition, Result<TextView, RequestError>),
    /// The open questions of a repository.
    Questions(RunKey, Result<Vec<QuestionView>, RequestError>),
    /// The result of a request to steer.
    Steered(SteerRequest, Result<String, RequestError>),
}

/// A key, if it has a meaning here.
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

/// A command to the effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// Read the state of all repositories.
    Statuses,
    /// Send the output of this repository's agent and guard, and of no other.
    Follow(WirePath),
    /// Read a task tree.
    Tree(RunKey),
    /// Read the iterations of a run.
    Iterations(RunKey),
    /// Read a part of a record's file.
    LogChunk(LogPosition),
    /// Read the open questions of a repository.
    Questions(RunKey),
    /// Steer a run.
    Steer(SteerRequest),
    /// Show the machine that is this many places further.
    SwitchMachine(isize),
    /// Redraw everything.
    Redraw,
    /// Release the terminal and stop until the shell continues this program.
    Suspend,
    /// Exit.
    Quit,
}

/// A run in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunKey {
    /// Id of the repository.
    pub(crate) repo: String,
    /// Its work tree.
    pub(crate) path: WirePath,
    /// Id of the run; `None` if the repository has had none.
    pub(crate) run: Option<String>,
}

/// A file of an iteration's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogKey {
    /// The run.
    pub(crate) target: RunKey,
    /// Number of the iteration.
    pub(crate) iter: u32,
    /// Number of the wait below it.
    pub(crate) wait: Option<u32>,
    /// The kind of file.
    pub(crate) stream: LogStream,
}

/// A position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogPosition {
    /// The file.
    pub(crate) key: LogKey,
    /// The offset of the first byte.
    pub(crate) offset: u64,
}

/// A request to steer a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SteerRequest {
    /// The run.
    pub(crate) target: RunKey,
    /// The request.
    pub(crate) action: SteerAction,
    /// The commands in the repository's configuration are confirmed.
    pub(crate) confirmed: bool,
}

/// A request to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SteerAction {
    /// Stop after the iteration, or at once.
    Pause { now: bool },
    /// Continue, without waiting for a scheduled time.
    Resume { now: bool },
    /// Run one iteration.
    Step,
    /// End.
    Cancel,
    /// Send a note to the next session.
    Note(String),
    /// Answer the question with this id.
    Answer { id: String, text: String },
    /// Pass the node that this iteration has finished.
    Approve { iter: u32 },
    /// Leave it open, for this reason.
    Reject { iter: u32, reason: String },
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
            Self::Approve { .. } => "approve",
            Self::Reject { .. } => "reject",
        })
    }
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestError {
    /// The error.
    pub(crate) message: String,
    /// The command to type next.
    pub(crate) hint: Option<String>,
    /// Whether a person must first confirm the repository's commands.
    pub(crate) is_unconfirmed: bool,
}
