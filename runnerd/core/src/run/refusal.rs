//! Why a request is refused: what it is made of, and the sentence and the command that people read.

use protocol::command::{Command, Ways};
use protocol::error::{ErrorData, ErrorKind};
use protocol::view::StopReason;
use protocol::words::RunStatus;

use crate::approval::{Pending, WrongReasons};

/// What a person types about a node that waits for them.
const WAYS_ON: &str = "runnerctl approve, or: runnerctl reject REASON";

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing may be done with the repository.
    RepositoryHeld(StopReason),
    /// The run has come to a state in which there is nothing to stop.
    IsOver(RunStatus),
    /// The run has reached its goal.
    IsCompleted,
    /// The run was ended by a person, and is started again as it was begun.
    IsCancelled,
    /// A run of the repository is being driven.
    IsDriven(String),
    /// The run is being driven, and there is nothing to resume.
    IsRunning,
    /// The run goes on when an obstacle is gone.
    IsObstructed(StopReason),
    /// The run goes on at a time.
    WaitsForService,
    /// The run goes on when a person has said their word.
    WaitsForReview(Pending),
    /// What has made the run stuck is as it was.
    StillStuck(StopReason),
    /// The run would reach its limit again at once.
    StillAtLimit(StopReason),
    /// A session may be at what would be reviewed.
    IsAtWork,
    /// No node waits for a review.
    NothingToReview(RunStatus),
    /// A person's word on this node counts only with their signature.
    Unsigned(Pending),
    /// A person's word is not as it should be.
    InvalidWord(WrongReasons),
    /// A fork would have the id of a run that is there.
    IsThere,
    /// No session would read a note.
    NoReader(RunStatus),
    /// The tree cannot change any more.
    AllPassed,
}

impl Refusal {
    /// Tells what a request to run `id` is answered.
    pub fn told(&self, id: &str) -> ErrorData {
        let error = ErrorData::new(self.kind(), self.message(id));
        self.ways(id).into_iter().fold(error, ErrorData::hint)
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::RepositoryHeld(_) => ErrorKind::Held,
            Self::InvalidWord(_) => ErrorKind::InvalidRequest,
            Self::Unsigned(_) => ErrorKind::Unsigned,
            Self::IsOver(_)
            | Self::IsCompleted
            | Self::IsCancelled
            | Self::IsDriven(_)
            | Self::IsRunning
            | Self::IsObstructed(_)
            | Self::WaitsForService
            | Self::WaitsForReview(_)
            | Self::StillStuck(_)
            | Self::StillAtLimit(_)
            | Self::IsAtWork
            | Self::NothingToReview(_)
            | Self::IsThere
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
            Self::IsDriven(other) => format!("run {other} is running"),
            Self::IsRunning => format!("run {id} is running"),
            Self::IsObstructed(why) => format!("run {id} continues by itself when this is over: {}", why.message),
            Self::WaitsForService => format!("run {id} is waiting, and continues by itself"),
            Self::WaitsForReview(on) => format!("run {id} is waiting for your review of node {}", on.node),
            Self::StillStuck(why) => format!("run {id} is still stuck: {}", why.message),
            Self::StillAtLimit(why) => format!("run {id} is still at its limit: {}", why.message),
            Self::IsAtWork => format!("nothing awaits your review: run {id} is running"),
            Self::NothingToReview(status) => format!("nothing awaits your review: run {id} is {status}"),
            Self::Unsigned(on) => format!(
                "run {id} takes only a signed review of node {}, from a terminal: `[review] sign` is set",
                on.node
            ),
            Self::InvalidWord(wrong) => wrong.to_string(),
            Self::IsThere => format!("run {id} already exists, and a fork is a new run"),
            Self::NoReader(status) => format!("the run is {status}: no session would read the note"),
            Self::AllPassed => "the run is completed: every node has passed, and what has passed stays".to_owned(),
        }
    }

    /// Returns what to do next.
    pub fn ways(&self, id: &str) -> Option<Ways> {
        let ways = match self {
            Self::RepositoryHeld(why) | Self::StillStuck(why) | Self::StillAtLimit(why) => return why.ways(),
            Self::IsCancelled => return Some(Command::start_again(id).into()),
            Self::IsCompleted => {
                "runnerctl start -m 'What is to be true next', or write the next goal into .runner/GOAL.md and: runnerctl start"
            }
            Self::IsDriven(_) => "runnerctl pause",
            Self::WaitsForService => "runnerctl resume --now",
            Self::WaitsForReview(_) | Self::Unsigned(_) => WAYS_ON,
            Self::IsThere => "choose another id with --id",
            Self::IsOver(_) | Self::IsRunning | Self::IsObstructed(_) | Self::IsAtWork | Self::NothingToReview(_) => {
                "runnerctl status"
            }
            Self::InvalidWord(_) | Self::NoReader(_) | Self::AllPassed => return None,
        };
        Some(ways.into())
    }
}
