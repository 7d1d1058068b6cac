//! The two engines: the library, and the git program. Which one to use is decided in `preflight`.

use crate::git::GitError;

/// The engine that stages, snapshots and compares the work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum GitEngine {
    /// gix.
    Gix,
    /// git.
    Git,
}

impl GitEngine {
    /// Runs one of two implementations. If the library meets something it cannot handle, the git program decides.
    pub(in crate::git) fn run_with<T>(
        self,
        try_gix: impl FnOnce() -> Result<T, GitError>,
        use_git: impl FnOnce() -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        if self == Self::Git {
            return use_git();
        }
        try_gix().or_else(|error| match error {
            GitError::Corrupt { .. } => {
                tracing::warn!(error = &error as &dyn std::error::Error, "the library cannot do this; git does");
                use_git()
            }
            other => Err(other),
        })
    }
}

/// How references are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum RefStore {
    /// Files, which the library handles.
    Files,
    /// Another format, which only the git program supports.
    GitOnly,
}
