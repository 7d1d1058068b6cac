//! The two ways in which work is done: by the library, or by the git program. Which of them is chosen is `preflight`'s.

use crate::git::GitError;

/// Who stages, snapshots and compares the work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum Engine {
    /// gix.
    Library,
    /// git.
    Program,
}

impl Engine {
    /// Does the same in one of two ways. Where the library finds what it cannot handle, git has the last word.
    pub(in crate::git) fn carry_out<T>(
        self,
        library: impl FnOnce() -> Result<T, GitError>,
        program: impl FnOnce() -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        if self == Self::Program {
            return program();
        }
        library().or_else(|error| match error {
            GitError::Broken { .. } => {
                tracing::warn!(error = &error as &dyn std::error::Error, "the library cannot do this; git does");
                program()
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
    Program,
}
