//! What can go wrong while a run is published. That a person has moved its branch is no error: the rules say what follows.

use std::path::PathBuf;

use runner_core::obstacle::Transience;

use crate::git::GitError;
use crate::obstruction::Retryable;
use crate::repo::kept::SealedFileError;

/// Why a run could not be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Git.
    #[error(transparent)]
    Git(#[from] GitError),
    /// What was published before is not known.
    #[error(transparent)]
    SealedFile(#[from] SealedFileError),
    /// Somebody moves the run's references all the time.
    #[error("publishing to {path}: its references go on moving")]
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
