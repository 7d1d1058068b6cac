//! The two ways in which work is done: by the library, or by the git program. Which of them is chosen is `preflight`'s.

use crate::git::GitError;

/// Who stages, snapshots and compares the work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum GitEngine {
    /// gix.
    Gix,
    /// git.
    Git,
}

impl GitEngine {
    /// Does the same in one of two ways. Where the library finds what it cannot handle, git has the last word.
    pub(in crate::git) fn run_with<T>(
        self,
        with_gix: impl FnOnce() -> Result<T, GitError>,
        with_git: impl FnOnce() -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        if self == Self::Git {
            return with_git();
        }
        with_gix().or_else(|error| match error {
            GitError::Corrupt { .. } => {
                tracing::warn!(error = &error as &dyn std::error::Error, "the library cannot do this; git does");
                with_git()
            }
            other => Err(other),
        })
    }
}

/// Who keeps the references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum RefStore {
    /// Files, which the library handles.
    Files,
    /// Another format, which only the git program knows.
    GitOnly,
}
