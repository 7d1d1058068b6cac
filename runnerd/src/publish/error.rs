//! What can go wrong while a run is published. That a person has moved its branch is no error: the rules say what follows.

use std::path::PathBuf;

use runner_core::obstacle::Nature;

use crate::git::GitError;
use crate::obstruction::Obstructs;
use crate::repo::kept::KeptError;

/// Why a run could not be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Git.
    #[error(transparent)]
    Git(#[from] GitError),
    /// What was published before is not known.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// Somebody moves the run's references all the time.
    #[error("publishing to {path}: its references go on moving")]
    Restless {
        /// The source.
        path: PathBuf,
    },
}

impl Obstructs for PublishError {
    fn nature(&self) -> Nature {
        match self {
            Self::Git(error) => error.nature(),
            Self::Kept(error) => error.nature(),
            Self::Restless { .. } => Nature::Passing,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Git(error) => error.remedy(),
            Self::Kept(error) => error.remedy(),
            Self::Restless { path } => Some(format!("end the programs that move references of {}", path.display())),
        }
    }
}
