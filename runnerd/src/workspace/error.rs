//! Why a workspace cannot be made or removed.

use std::io;
use std::path::{Path, PathBuf};

use runner_core::obstacle::Nature;

use crate::git::GitError;
use crate::obstruction::{Obstructs, remedy_at};
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
    Partial {
        /// The source.
        path: PathBuf,
    },
    /// Something is where the workspace is to be.
    #[error("{path} is there already")]
    Taken {
        /// Where it is to be.
        path: PathBuf,
    },
    /// More is to be copied than anybody can have meant.
    #[error("[workspace] copy names more than {most} files in {path}")]
    TooMuch {
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

impl Obstructs for WorkspaceError {
    fn nature(&self) -> Nature {
        match self {
            Self::Git(error) => error.nature(),
            Self::Disk(error) => error.nature(),
            Self::Io { source, .. } => source.nature(),
            Self::Partial { .. } | Self::Taken { .. } | Self::TooMuch { .. } => Nature::Lasting,
            Self::Stopped => Nature::Passing,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Git(error) => error.remedy(),
            Self::Disk(error) => error.remedy(),
            Self::Io { path, source, .. } => Some(remedy_at(path, source)),
            Self::Partial { .. } => Some(
                "run it in place: runnerctl start; or begin it in a clone that was made without --filter".to_owned(),
            ),
            Self::Taken { path } => Some(format!("look at {}, and move it away", path.display())),
            Self::TooMuch { .. } => Some("runnerctl config edit, and name less in [workspace] copy".to_owned()),
            Self::Stopped => None,
        }
    }
}
