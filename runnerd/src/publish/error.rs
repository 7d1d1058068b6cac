//! Why publishing a run can fail. A branch moved by a person is not an error: the rules define what follows.

use std::path::PathBuf;

use runner_core::run::blocker::Transience;
use runner_git::GitError;
use runner_os::retryable::Retryable;

use crate::repo::sealed::SealedFileError;

/// Why a run could not be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// What was published before is unknown.
    #[error(transparent)]
    SealedFile(#[from] SealedFileError),
    /// Someone keeps moving the run's references.
    #[error("publishing to {path}: its references keep moving")]
    RefsUnstable {
        /// The source.
        path: PathBuf,
    },
}

impl Retryable for PublishError {
    fn transience(&self) -> Transience {
        match self {
            Self::Git(error) => error.transience(),
            Self::SealedFile(error) => error.transience(),
            Self::RefsUnstable { .. } => Transience::Passing,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Git(error) => error.remedy(),
            Self::SealedFile(error) => error.remedy(),
            Self::RefsUnstable { path } => Some(format!("end the programs that move references of {}", path.display())),
        }
    }
}
