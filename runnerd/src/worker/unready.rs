//! Why something cannot be done between two iterations: for now, or until a person has looked.

use protocol::error::{ErrorData, ErrorKind};
use protocol::view::StopReason;

use crate::causes::in_one_line;
use crate::git::GitError;
use crate::publish::PublishError;
use crate::repo::durable;
use crate::repo::init::InitError;
use crate::store::StoreError;
use crate::worker::context::Obstacle;

/// Why something between two iterations failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unready {
    /// It may work later: tried again, and then held, as in an iteration.
    #[error(transparent)]
    Obstacle(Box<Obstacle>),
    /// It needs the attention of a person first.
    #[error("{}", .0.message)]
    Hold(StopReason),
}

impl Unready {
    /// Says that a file of the work tree is not as it must be.
    pub(crate) fn of_file(error: &dyn std::error::Error) -> Self {
        Self::Hold(StopReason::new(in_one_line(error), "fix it, then: runnerctl resume"))
    }

    /// Tells it to whoever has asked for something.
    pub(crate) fn told(&self) -> ErrorData {
        match self {
            Self::Hold(reason) => {
                let error = ErrorData::new(ErrorKind::Held, reason.message.clone());
                reason.ways().into_iter().fold(error, ErrorData::hint)
            }
            Self::Obstacle(obstacle) => ErrorData::new(ErrorKind::Fault, obstacle.to_string()).caused_by(obstacle),
        }
    }
}

impl From<Obstacle> for Unready {
    fn from(obstacle: Obstacle) -> Self {
        Self::Obstacle(Box::new(obstacle))
    }
}

impl From<GitError> for Unready {
    fn from(error: GitError) -> Self {
        Obstacle::from(error).into()
    }
}

impl From<PublishError> for Unready {
    fn from(error: PublishError) -> Self {
        Obstacle::from(error).into()
    }
}

impl From<durable::DurableError> for Unready {
    fn from(error: durable::DurableError) -> Self {
        Obstacle::from(error).into()
    }
}

impl From<InitError> for Unready {
    fn from(error: InitError) -> Self {
        match error {
            InitError::Durable(error) => error.into(),
            InitError::Goal(error) => Self::of_file(&error),
        }
    }
}

impl From<StoreError> for Unready {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Disk(error) => error.into(),
            error => Self::Hold(StopReason::new(
                in_one_line(&error),
                "put that file back or take it away, then: runnerctl resume",
            )),
        }
    }
}
