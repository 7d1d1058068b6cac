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
use runner_core::landing::{LandingRefusal, check_git_version};
use tokio_util::sync::CancellationToken;

pub use self::advance::{move_branch, recover_landing, recover_landings};
pub use self::landed::audit_landed;
pub use self::note::{PendingLanding, LandTargets};
pub use self::squash::{SquashPlan, prepare_squash};
pub use self::train::{PreparedLanding, MergeQueue, prepare_landing};
use crate::admit::git_error;
use crate::causes::display_chain;
use crate::folders;
use crate::git::{GitError, Id, TreeMerger, AdvanceError, Repository};
use crate::process::Launcher;
use crate::verify::VerifyError;

/// Returns the folder for merges and for the copies that guards are run in, within that of the daemon's state.
pub fn scratch_dir(state: &Path) -> PathBuf {
    state.join("landing")
}

/// Removes what a daemon which was killed has left there.
pub fn clear_scratch(state: &Path) {
    if let Err(error) = folders::remove_all(&scratch_dir(state)) {
        tracing::warn!(%error, "a folder of a landing is left");
    }
}

/// What a landing works with.
#[derive(Debug)]
pub struct LandContext<'a> {
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

impl<'a> LandContext<'a> {
    /// Makes a folder for merges, with the attributes of a commit, where the git program can do them.
    fn create_merger(&self, attributes: &Id) -> Result<TreeMerger<'a>, LandError> {
        check_git_version(&self.repository.git_version()?)?;
        Ok(self.repository.create_merger(&self.scratch, attributes)?)
    }
}

/// Why a landing came to no end.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// A run does not fit.
    #[error(transparent)]
    Refused(#[from] LandingRefusal),
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
    AdvanceFailed(#[from] AdvanceError),
}

impl From<ErrorData> for LandError {
    fn from(error: ErrorData) -> Self {
        Self::Denied(Box::new(error))
    }
}

impl LandError {
    /// Turns it into what a client is told; `onto` is the branch.
    pub fn to_error_data(self, onto: &str) -> ErrorData {
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
            Self::Verify(VerifyError::State(error)) => error.to_error_data("runnerctl validate"),
            Self::Verify(error) => ErrorData::new(ErrorKind::Fault, display_chain(&error)),
            Self::AdvanceFailed(error) => advance::advance_error_data(&error),
        }
    }
}
