//! The two engines: the library, and the git program. Which one to use is decided in `preflight`.

use super::at_work::{AtWork, Ended};
use crate::{GitError, Repository};

/// The engine that stages, snapshots and compares the work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GitEngine {
    /// gix.
    Gix,
    /// git.
    Git,
}

impl GitEngine {
    /// Runs one of two implementations of a git command. If the library meets something it cannot handle, the git program decides.
    pub(crate) fn run_with<T>(
        self,
        repository: &Repository,
        command: &str,
        try_gix: impl FnOnce() -> Result<T, GitError>,
        use_git: impl FnOnce() -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        if self == Self::Git {
            return use_git();
        }
        let at_work = AtWork::enter_library(repository, command);
        let done = try_gix();
        // A filter that was killed may have been passed over.
        if let Some(Ended { command, waited_for, after, by }) = at_work.ended() {
            return Err(GitError::Ended { command, path: repository.work_dir().to_owned(), waited_for, after, by });
        }
        drop(at_work);
        done.or_else(|error| match error {
            GitError::Corrupt { .. } => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the library cannot do this; using the git program"
                );
                use_git()
            }
            other => Err(other),
        })
    }
}

/// How references are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefStore {
    /// Files, which the library handles.
    Files,
    /// Another format, which only the git program supports.
    GitOnly,
}
