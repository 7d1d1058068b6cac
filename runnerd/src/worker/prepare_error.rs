//! Why something cannot be done between two iterations: transiently, or until a person intervenes.

use protocol::error::{ErrorData, ErrorKind};
use protocol::view::StopReason;
use runner_git::GitError;
use runner_os::error_chain::display_chain;

use crate::publish::PublishError;
use crate::repo::durable;
use crate::repo::init::InitError;
use crate::store::StoreError;
use crate::worker::context::EffectError;

/// Why something between two iterations failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    /// It may work later: retried, and then held, as in an iteration.
    #[error(transparent)]
    Effect(Box<EffectError>),
    /// A person must intervene first.
    #[error("{}", .0.message)]
    Hold(StopReason),
}

impl PrepareError {
    /// Reports that a file of the work tree is invalid.
    pub(crate) fn from_file_error(error: &dyn std::error::Error) -> Self {
        Self::Hold(StopReason::new(display_chain(error), "fix it, then: runnerctl resume"))
    }

    /// Converts to the error of a request.
    pub(crate) fn to_error_data(&self) -> ErrorData {
        match self {
            Self::Hold(reason) => {
                let error = ErrorData::new(ErrorKind::Held, reason.message.clone());
                reason.next_steps().into_iter().fold(error, ErrorData::hint)
            }
            Self::Effect(obstacle) => ErrorData::new(ErrorKind::Fault, obstacle.to_string()).caused_by(obstacle),
        }
    }
}

impl From<EffectError> for PrepareError {
    fn from(obstacle: EffectError) -> Self {
        Self::Effect(Box::new(obstacle))
    }
}

impl From<GitError> for PrepareError {
    fn from(error: GitError) -> Self {
        EffectError::from(error).into()
    }
}

impl From<PublishError> for PrepareError {
    fn from(error: PublishError) -> Self {
        EffectError::from(error).into()
    }
}

impl From<durable::DurableError> for PrepareError {
    fn from(error: durable::DurableError) -> Self {
        EffectError::from(error).into()
    }
}

impl From<InitError> for PrepareError {
    fn from(error: InitError) -> Self {
        match error {
            InitError::Durable(error) => error.into(),
            InitError::Goal(error) => Self::from_file_error(&error),
        }
    }
}

impl From<StoreError> for PrepareError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Disk(error) => error.into(),
            error => Self::Hold(StopReason::new(
                display_chain(&error),
                "put that file back or take it away, then: runnerctl resume",
            )),
        }
    }
}
