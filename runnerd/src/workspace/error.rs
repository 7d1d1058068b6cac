//! Why a workspace cannot be made or removed.

use std::io;
use std::path::{Path, PathBuf};

use runner_core::blocker::Transience;

use crate::git::GitError;
use crate::retryable::{Retryable, path_remedy};
use crate::repo::durable::DurableError;

/// Why a workspace is not made, or not removed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Git.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The disk.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// The source has not all of its objects.
    #[error("{path} is a partial clone: some of its objects are with its remote alone")]
    PartialClone {
        /// The source.
        path: PathBuf,
    },
    /// Something is where the workspace is to be.
    #[error("{path} is there already")]
    AlreadyExists {
        /// Where it is to be.
        path: PathBuf,
    },
    /// More is to be copied than anybody can have meant.
    #[error("[workspace] copy names more than {most} files in {path}")]
    TooManyFiles {
        /// The source.
        path: PathBuf,
        /// How many are copied at most.
        most: u64,
    },
    /// The operating system refused.
    #[error("{doing} {path}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It was stopped.
    #[error("the workspace was not made: it was stopped")]
    Stopped,
}

impl WorkspaceError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }
}

impl Retryable for WorkspaceError {
    fn transience(&self) -> Transience {
        match self {
            Self::Git(error) => error.transience(),
            Self::Disk(error) => error.transience(),
            Self::Io { source, .. } => source.transience(),
            Self::PartialClone { .. } | Self::AlreadyExists { .. } | Self::TooManyFiles { .. } => Transience::Lasting,
            Self::Stopped => Transience::Passing,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Git(error) => error.remedy(),
            Self::Disk(error) => error.remedy(),
            Self::Io { path, source, .. } => Some(path_remedy(path, source)),
            Self::PartialClone { .. } => Some(
                "run it in place: runnerctl start; or begin it in a clone that was made without --filter".to_owned(),
            ),
            Self::AlreadyExists { path } => Some(format!("look at {}, and move it away", path.display())),
            Self::TooManyFiles { .. } => Some("runnerctl config edit, and name less in [workspace] copy".to_owned()),
            Self::Stopped => None,
        }
    }
}
