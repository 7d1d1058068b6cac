//! Lands the results of runs: reads them, proves them and merges them onto a branch, runs their guards on the result,
//! and moves the branch once.
//!
//! Which commits a run becomes, and what is refused, is decided in `runner_core::landing`; what git does is in `git`.
//! Knows no method of the wire protocol.

mod advance;
mod branch;
mod commit_message;
mod guard_check;
mod landed_audit;
mod merge_queue;
mod records;
mod resolution;
mod run_merge;
mod squash;

use std::path::PathBuf;

use protocol::error::{ErrorData, ErrorKind};
use protocol::request::CallerEnv;
use protocol::shell;
use runner_core::landing::{LandingRefusal, check_git_version};
use runner_git::{AdvanceError, GitError, Id, Repository, TreeMerger};
use runner_os::error_chain::display_chain;
use runner_process::Launcher;
use tokio_util::sync::CancellationToken;

pub use self::advance::{move_branch, recover_landing, recover_landings};
pub use self::branch::{find_landed_commit, has_landed, has_rest};
pub use self::landed_audit::audit_landed;
pub use self::merge_queue::{MergeQueue, PreparedLanding, prepare_landing};
pub use self::records::{LandTargets, PendingLanding};
pub use self::squash::{SquashPlan, prepare_squash};
use crate::admit::git_error;
use crate::verify::VerifyError;

/// Context of a landing.
#[derive(Debug)]
pub struct LandContext<'a> {
    /// The repository.
    pub repository: &'a Repository,
    /// The daemon's folder for temporary files, for merges and for the copies that guards run in.
    pub scratch: PathBuf,
    /// Starts guards.
    pub launcher: &'a Launcher,
    /// The caller's environment.
    pub env: &'a CallerEnv,
    /// Cancels the landing.
    pub stop: &'a CancellationToken,
}

impl<'a> LandContext<'a> {
    /// Creates a folder for merges, with the attributes of a commit; fails if the git program cannot merge.
    fn create_merger(&self, attributes: &Id) -> Result<TreeMerger<'a>, LandError> {
        check_git_version(&self.repository.git_version()?)?;
        Ok(self.repository.create_merger(&self.scratch, attributes)?)
    }
}

/// Why a landing failed.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// A run cannot be merged.
    #[error(transparent)]
    Refused(#[from] LandingRefusal),
    /// The request cannot be carried out for another reason.
    #[error(transparent)]
    Denied(#[from] Box<ErrorData>),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A run's branch could not be read, or its guard could not be run.
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
    /// Converts it into the error for clients; `onto` is the branch.
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

/// Returns the error of a landing with what helps in a partial clone, for which nothing is fetched here.
pub fn hint_fetch(repository: &Repository, error: ErrorData) -> ErrorData {
    if error.kind != ErrorKind::Fault || !repository.is_partial().unwrap_or(false) {
        return error;
    }
    let path = repository.work_dir().display().to_string();
    error.hint(shell::join_args(["git", "-C", &path, "fetch", "--refetch", "--no-filter"]))
}
