//! Why a workspace cannot be created or removed.

use std::io;
use std::path::{Path, PathBuf};

use runner_core::run::blocker::Transience;
use runner_git::GitError;
use runner_os::retryable::{Retryable, path_remedy};

use crate::repo::durable::DurableError;

/// Why a workspace was not created or not removed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// The source lacks some of its objects.
    #[error("{path} is a partial clone: some of its objects are with its remote alone")]
    PartialClone {
        /// The source.
        path: PathBuf,
    },
    /// Something is already in the workspace's place.
    #[error("{path} already exists")]
    AlreadyExists {
        /// The workspace's place.
        path: PathBuf,
    },
    /// More files would be copied than anyone can have intended.
    #[error("[workspace] copy names more than {most} files in {path}")]
    TooManyFiles {
        /// The source.
        path: PathBuf,
        /// The maximum number of copied files.
        most: u64,
    },
    /// The operating system refused.
    #[error("{doing} {path}")]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Creating it was cancelled.
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
