//! Why a request is refused: the cause, and the sentence and commands that people read.

use protocol::command::{Command, NextSteps};
use protocol::error::{ErrorData, ErrorKind};
use protocol::shell;
use protocol::view::StopReason;
use protocol::words::RunStatus;

use crate::run::approval::{InvalidReasons, PendingNode};

/// Returns what a person can type about a node that waits for them. Typed again, it is not about the next run.
pub(super) fn review_ways(run: &str, on: &PendingNode) -> NextSteps {
    let reject = format!("runnerctl reject --run {} --iter {} REASON", shell::quote(run), on.iter);
    NextSteps::from(Command::approve(run, on.iter)).join(", or: ", reject)
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestRefusal {
    /// Nothing may be done with the repository.
    RepositoryHeld(StopReason),
    /// The run is in a state in which there is nothing to stop.
    IsOver(RunStatus),
    /// The run has reached its goal.
    IsCompleted,
    /// The run was cancelled by a person; it is started again the way it was first begun.
    IsCancelled,
    /// A run of the repository is being driven.
    OtherRunActive(String),
    /// The run is being driven, and there is nothing to resume.
    IsRunning,
    /// The run continues once an obstacle is gone.
    IsBlocked(StopReason),
    /// The run continues at a given time.
    WaitsForService,
    /// The run continues after a person's review.
    WaitsForReview(PendingNode),
    /// The cause of the run being stuck is still there.
    StillStuck(StopReason),
    /// The run would reach its limit again at once.
    StillAtLimit(StopReason),
    /// A session may be working on what would be reviewed.
    SessionActive,
    /// No node waits for a review.
    NothingToReview(RunStatus),
    /// Another iteration waits for a review than the one that was meant.
    OtherReview {
        /// What waits.
        on: PendingNode,
        /// The iteration that was meant.
        iter: u32,
    },
    /// A person's decision on this node counts only with their signature.
    Unsigned(PendingNode),
    /// A person's reasons are not valid.
    InvalidDecision(InvalidReasons),
    /// A fork would have the id of an existing run.
    RunExists,
    /// No session would read a note.
    NoReader(RunStatus),
    /// The tree can no longer change.
    AllPassed,
}

impl RequestRefusal {
    /// Returns the error for a request to run `id`.
    pub fn to_error_data(&self, id: &str) -> ErrorData {
        let error = ErrorData::new(self.kind(), self.message(id));
        self.ways(id).into_iter().fold(error, ErrorData::hint)
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::RepositoryHeld(_) => ErrorKind::Held,
            Self::InvalidDecision(_) => ErrorKind::InvalidRequest,
            Self::Unsigned(_) => ErrorKind::Unsigned,
            Self::IsOver(_)
            | Self::IsCompleted
            | Self::IsCancelled
            | Self::OtherRunActive(_)
            | Self::IsRunning
            | Self::IsBlocked(_)
            | Self::WaitsForService
            | Self::WaitsForReview(_)
            | Self::StillStuck(_)
            | Self::StillAtLimit(_)
            | Self::SessionActive
            | Self::NothingToReview(_)
            | Self::OtherReview { .. }
            | Self::RunExists
            | Self::NoReader(_)
            | Self::AllPassed => ErrorKind::WrongState,
        }
    }

    /// Returns the sentence, about run `id`.
    pub fn message(&self, id: &str) -> String {
        match self {
            Self::RepositoryHeld(why) => why.message.clone(),
            Self::IsOver(status) => format!("run {id} has ended already ({status}): there is nothing to stop"),
            Self::IsCompleted => format!("run {id} is completed"),
            Self::IsCancelled => format!("run {id} is cancelled"),
            Self::OtherRunActive(other) => format!("run {other} is running"),
            Self::IsRunning => format!("run {id} is running"),
            Self::IsBlocked(why) => format!("run {id} continues automatically when this is over: {}", why.message),
            Self::WaitsForService => format!("run {id} is waiting, and continues automatically"),
            Self::WaitsForReview(on) => format!("run {id} is waiting for your review of task {}", on.node),
            Self::StillStuck(why) => format!("run {id} is still stuck: {}", why.message),
            Self::StillAtLimit(why) => format!("run {id} is still at its limit: {}", why.message),
            Self::SessionActive => format!("nothing awaits your review: run {id} is running"),
            Self::NothingToReview(status) => format!("nothing awaits your review: run {id} {}", status.predicate()),
            Self::OtherReview { on: PendingNode { node, iter: waiting }, iter } => format!(
                "iteration {iter} of run {id} does not await your review: iteration {waiting} does, of task {node}"
            ),
            Self::Unsigned(on) => format!(
                "run {id} takes only a signed review of task {}, from a terminal: `[review] sign` is set",
                on.node
            ),
            Self::InvalidDecision(wrong) => wrong.to_string(),
            Self::RunExists => format!("run {id} already exists, and a fork is a new run"),
            Self::NoReader(status) => format!("the run {}: no session would read the note", status.predicate()),
            Self::AllPassed => "the run is completed: every task has passed, and passed tasks stay".to_owned(),
        }
    }

    /// Returns what to do next, if there is anything.
    pub fn ways(&self, id: &str) -> Option<NextSteps> {
        let ways = match self {
            Self::RepositoryHeld(why) | Self::StillStuck(why) | Self::StillAtLimit(why) => return why.next_steps(),
            Self::WaitsForReview(on) | Self::Unsigned(on) => return Some(review_ways(id, on)),
            Self::OtherReview { on, .. } => return Some(Command::show_diff(id, on.iter).into()),
            Self::IsCancelled => return Some(Command::start_again(id).into()),
            Self::IsCompleted => {
                "runnerctl start -m 'What is to be true next', or write the next goal into .runner/GOAL.md and: runnerctl start"
            }
            Self::OtherRunActive(_) => "runnerctl pause",
            Self::WaitsForService => "runnerctl resume --now",
            Self::RunExists => "choose another id with --id",
            Self::IsOver(_) | Self::IsRunning | Self::IsBlocked(_) | Self::SessionActive | Self::NothingToReview(_) => {
                "runnerctl status"
            }
            Self::InvalidDecision(_) | Self::NoReader(_) | Self::AllPassed => return None,
        };
        Some(ways.into())
    }
}
