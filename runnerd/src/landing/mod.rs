//! Bringing results home: runs are read, proven and merged onto a branch, their guards run on what comes of it, and the
//! branch moves once.
//!
//! Which commits a run becomes, and what is refused, is `runner_core::landing`'s; what git does, `git`'s. No method of
//! the wire is known here.

mod advance;
mod branch;
mod fit;
mod guarded;
mod landed;
mod note;
mod squash;
mod told;
mod train;

use std::path::{Path, PathBuf};

use protocol::error::{ErrorData, ErrorKind};
use protocol::request::CallerEnv;
use runner_core::landing::{Refusal, refuse_old_git};
use tokio_util::sync::CancellationToken;

pub use self::advance::{move_branch, recover, recover_all};
pub use self::landed::landed;
pub use self::note::{Begun, Targets};
pub use self::squash::{Squash, squash};
pub use self::train::{Prepared, Train, prepare};
use crate::admit::git_error;
use crate::causes::in_one_line;
use crate::folders;
use crate::git::{GitError, Id, Merger, NotAdvanced, Repository};
use crate::process::Launcher;
use crate::verify::VerifyError;

/// Returns the folder for merges and for the copies that guards are run in, within that of the daemon's state.
pub fn scratch(state: &Path) -> PathBuf {
    state.join("landing")
}

/// Removes what a daemon which was killed has left there.
pub fn clear(state: &Path) {
    if let Err(error) = folders::remove(&scratch(state)) {
        tracing::warn!(%error, "a folder of a landing is left");
    }
}

/// What a landing works with.
#[derive(Debug)]
pub struct Site<'a> {
    /// The repository.
    pub repository: &'a Repository,
    /// A folder of the daemon's, for merges and for the copies that guards are run in.
    pub scratch: PathBuf,
    /// Starts guards.
    pub launcher: &'a Launcher,
    /// The caller's environment.
    pub env: &'a CallerEnv,
    /// Ends it.
    pub stop: &'a CancellationToken,
}

impl<'a> Site<'a> {
    /// Makes a folder for merges, with the attributes of a commit, where the git program can do them.
    fn merger(&self, attributes: &Id) -> Result<Merger<'a>, LandError> {
        refuse_old_git(&self.repository.git_version()?)?;
        Ok(self.repository.merger(&self.scratch, attributes)?)
    }
}

/// Why a landing came to no end.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// A run does not fit.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Something else does not allow it.
    #[error(transparent)]
    Denied(#[from] Box<ErrorData>),
    /// The repository.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A run's branch could not be read, or its guard not be run.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// The branch could not be moved.
    #[error(transparent)]
    NotAdvanced(#[from] NotAdvanced),
}

impl From<ErrorData> for LandError {
    fn from(error: ErrorData) -> Self {
        Self::Denied(Box::new(error))
    }
}

impl LandError {
    /// Turns it into what a client is told; `onto` is the branch.
    pub fn told(self, onto: &str) -> ErrorData {
        match self {
            Self::Refused(refusal) => {
                let refused = ErrorData::new(ErrorKind::WrongState, refusal.to_string());
                match refusal.hint(onto) {
                    Some(hint) => refused.hint(hint),
                    None => refused,
                }
            }
            Self::Denied(error) => *error,
            Self::Git(error) => git_error(&error),
            Self::Verify(VerifyError::Git(error)) => git_error(&error),
            Self::Verify(VerifyError::State(error)) => error.told("runnerctl validate"),
            Self::Verify(error) => ErrorData::new(ErrorKind::Fault, in_one_line(&error)),
            Self::NotAdvanced(error) => advance::told(&error),
        }
    }
}
