//! Why a job does not drive its run, the exit code of each cause, and what can be done about it.

use std::io;
use std::path::{Path, PathBuf};

use protocol::client::{CallError, ConnectError};
use protocol::error::ExitStatus;
use protocol::paths::PathsError;
use protocol::private_dir::PrivateDirError;
use runner_core::ids::IdError;
use runner_core::message::MessageError;

use crate::daemon::DaemonError;
use crate::git::{GitError, Id};
use crate::logging::LoggingError;
use crate::upstream::UpstreamError;
use crate::worker::LoadError;

/// Why a job does not drive its run.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The id of the run.
    #[error("`{id}` is no id of a run")]
    Id {
        /// What was given.
        id: String,
        /// What is wrong with it.
        source: IdError,
    },
    /// The goal.
    #[error("the goal {path} {what}")]
    Goal {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A folder or file of the job's.
    #[error("{doing} {path}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The work tree's folder has something else.
    #[error("{path} is not empty, and no driver has made it")]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
    /// The work tree is used by another driver.
    #[error("another driver works in {path}")]
    Occupied {
        /// The work tree.
        path: PathBuf,
    },
    /// The cache is no repository.
    #[error("{path} has no git objects")]
    NoStore {
        /// The folder.
        path: PathBuf,
    },
    /// There is nothing to go on with, and nothing to begin.
    #[error("{remote} has no run {run}, and no goal for a new one was given")]
    Neither {
        /// The remote.
        remote: String,
        /// The run.
        run: String,
    },
    /// A run cannot begin at a remote without a commit.
    #[error("{remote} has no branch that a run could begin from")]
    Empty {
        /// The remote.
        remote: String,
    },
    /// The branch is of another run.
    #[error("branch {branch} at {remote} is of another run")]
    NotOfRun {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
    },
    /// There is nothing left to be done for a run that is to be begun.
    #[error("run {run} is completed at {remote}")]
    Completed {
        /// The remote.
        remote: String,
        /// The run.
        run: String,
    },
    /// A job would need a password to be told.
    #[error("the address of the remote holds a password, which a job would have to be told")]
    Password,
    /// A commit on the branch is of a runner that is not understood.
    #[error("commit {commit} on branch {branch} is the runner's, and is not understood: {why}")]
    Unread {
        /// The branch.
        branch: String,
        /// The commit.
        commit: Id,
        /// What is wrong with it.
        why: MessageError,
    },
    /// How long to wait for another driver, and whether to sign, cannot be told.
    #[error("the configuration of run {run} at commit {commit} cannot be read")]
    Config {
        /// The run.
        run: String,
        /// The commit.
        commit: Id,
        /// What is wrong with it.
        source: Box<LoadError>,
    },
    /// The daemon of the job was gone before the run was over.
    #[error("the engine has ended before the run")]
    Interrupted,
    /// The remote.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// Git.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The folder of the job.
    #[error(transparent)]
    Folder(#[from] PrivateDirError),
    /// The socket of the job.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// The log of the job.
    #[error(transparent)]
    Logging(#[from] LoggingError),
    /// The daemon of the job.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The daemon of the job does not answer.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The daemon of the job refuses the run.
    #[error(transparent)]
    Call(CallError),
    /// No random number can be had.
    #[error("making a nonce")]
    Nonce(#[from] getrandom::Error),
}

impl JobError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// Returns the exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Id { .. } => ExitStatus::Usage.code(),
            Self::NotOurs { .. }
            | Self::Occupied { .. }
            | Self::Neither { .. }
            | Self::Empty { .. }
            | Self::NotOfRun { .. }
            | Self::Completed { .. }
            | Self::Password
            | Self::Unread { .. }
            | Self::Config { .. } => ExitStatus::Refused.code(),
            Self::Call(error) => error.exit_status().code(),
            Self::Daemon(error) => error.exit_code(),
            Self::Connect(error) => error.exit_status().code(),
            Self::Goal { .. }
            | Self::Io { .. }
            | Self::NoStore { .. }
            | Self::Interrupted
            | Self::Upstream(_)
            | Self::Git(_)
            | Self::Folder(_)
            | Self::Paths(_)
            | Self::Logging(_)
            | Self::Nonce(_) => ExitStatus::Error.code(),
        }
    }

    /// Returns what can be done about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Neither { .. } => Some("give --goal FILE or -m TEXT, or the id of a run that is there".to_owned()),
            Self::NotOurs { .. } => Some("name another folder with --work".to_owned()),
            Self::Occupied { .. } => Some("wait for it, or name another folder with --work".to_owned()),
            Self::NoStore { .. } => Some("name a bare clone with --cache".to_owned()),
            Self::Upstream(UpstreamError::MissingRemote { .. }) => {
                Some("name a remote with --remote, or the address of one in the place of the path".to_owned())
            }
            Self::Completed { .. } => Some("look at its branch, or name a new run with another --run".to_owned()),
            Self::Password => Some("leave it to a credential helper of git's, or use ssh".to_owned()),
            Self::Unread { .. } => Some(
                "drive it with the build of runnerd that has written it, or begin a new run with another --run"
                    .to_owned(),
            ),
            Self::Config { .. } => {
                Some("correct .runner/state/config.toml on the run's branch, once its driver has ended".to_owned())
            }
            Self::Call(CallError::Refused(refusal)) => refusal.hint.clone(),
            _ => None,
        }
    }
}
