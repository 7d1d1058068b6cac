//! Why a job does not drive its run, the exit code of each cause, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use protocol::client::{CallError, ConnectError};
use protocol::error::ExitStatus;
use protocol::paths::PathsError;
use protocol::private_dir::PrivateDirError;
use runner_core::message::MessageError;
use runner_core::tree::ids::IdError;
use runner_git::{GitError, Id};

use crate::daemon::DaemonError;
use crate::logging::LoggingError;
use crate::upstream::UpstreamError;
use crate::worker::LoadError;

/// Why a job does not drive its run.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The id of the run is not valid.
    #[error("`{id}` is no id of a run")]
    Id {
        /// The id as given.
        id: String,
        /// What is wrong with it.
        source: IdError,
    },
    /// The goal cannot be used.
    #[error("the goal {path} {what}")]
    Goal {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A folder or file of the job cannot be used.
    #[error("{doing} {path}")]
    Io {
        /// The operation, as a verb with its preposition.
        doing: &'static str,
        /// The path it was applied to.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The work tree's folder contains something else.
    #[error("{path} is not empty, and no driver has made it")]
    NotCreatedByDriver {
        /// Path of the folder.
        path: PathBuf,
    },
    /// Another driver is using the work tree.
    #[error("another driver works in {path}")]
    Occupied {
        /// Path of the work tree.
        path: PathBuf,
    },
    /// The cache is not a repository.
    #[error("{path} has no git objects")]
    MissingObjects {
        /// Path of the folder.
        path: PathBuf,
    },
    /// There is no run to continue, and no goal to start one.
    #[error("{remote} has no run {run}, and no goal for a new one was given")]
    MissingRun {
        /// Address of the remote, as shown to people.
        remote: String,
        /// Id of the run.
        run: String,
    },
    /// A run cannot begin at a remote without a commit.
    #[error("{remote} has no branch that a run could begin from")]
    EmptyRemote {
        /// Address of the remote, as shown to people.
        remote: String,
    },
    /// The branch belongs to another run.
    #[error("branch {branch} at {remote} is of another run")]
    ForeignBranch {
        /// Address of the remote, as shown to people.
        remote: String,
        /// Name of the branch.
        branch: String,
    },
    /// The run to be started is already completed.
    #[error("run {run} is completed at {remote}")]
    Completed {
        /// Address of the remote, as shown to people.
        remote: String,
        /// Id of the run.
        run: String,
    },
    /// A job would need to be given a password.
    #[error("the address of the remote holds a password, which the job would need")]
    Password,
    /// A commit of the runner on the branch cannot be parsed.
    #[error("commit {commit} on branch {branch} is the runner's, and is not understood: {why}")]
    UnreadableCommit {
        /// Name of the branch.
        branch: String,
        /// Id of the commit.
        commit: Id,
        /// What is wrong with it.
        why: MessageError,
    },
    /// The configuration cannot be read, which says how long to wait for another driver, and whether to sign.
    #[error("the configuration of run {run} at commit {commit} cannot be read")]
    Config {
        /// Id of the run.
        run: String,
        /// Id of the commit.
        commit: Id,
        /// What is wrong with it.
        source: Box<LoadError>,
    },
    /// The job's daemon exited before the run was over.
    #[error("the engine has ended before the run")]
    Interrupted,
    /// The remote failed.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The job's folder cannot be used.
    #[error(transparent)]
    Folder(#[from] PrivateDirError),
    /// The job's paths are invalid.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// The job's log cannot be set up.
    #[error(transparent)]
    Logging(#[from] LoggingError),
    /// The job's daemon failed.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The job's daemon does not answer.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The job's daemon refuses the run.
    #[error(transparent)]
    Call(CallError),
    /// No random number is available.
    #[error("making a nonce")]
    Nonce(#[from] getrandom::Error),
}

impl JobError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// Returns the exit code of the job.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Id { .. } => ExitStatus::Usage.code(),
            Self::NotCreatedByDriver { .. }
            | Self::Occupied { .. }
            | Self::MissingRun { .. }
            | Self::EmptyRemote { .. }
            | Self::ForeignBranch { .. }
            | Self::Completed { .. }
            | Self::Password
            | Self::UnreadableCommit { .. }
            | Self::Config { .. } => ExitStatus::Refused.code(),
            Self::Call(error) => error.exit_status().code(),
            Self::Daemon(error) => error.exit_code(),
            Self::Connect(error) => error.exit_status().code(),
            Self::Goal { .. }
            | Self::Io { .. }
            | Self::MissingObjects { .. }
            | Self::Interrupted
            | Self::Upstream(_)
            | Self::Git(_)
            | Self::Folder(_)
            | Self::Paths(_)
            | Self::Logging(_)
            | Self::Nonce(_) => ExitStatus::Error.code(),
        }
    }

    /// Returns what to do about it, if that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::MissingRun { .. } => Some("give --goal FILE or -m TEXT, or the id of an existing run".to_owned()),
            Self::NotCreatedByDriver { .. } => Some("name another directory with --work".to_owned()),
            Self::Occupied { .. } => Some("wait for it, or name another directory with --work".to_owned()),
            Self::MissingObjects { .. } => Some("name a bare clone with --cache".to_owned()),
            Self::Upstream(UpstreamError::MissingRemote { .. }) => {
                Some("name a remote with --remote, or the address of one in the place of the path".to_owned())
            }
            Self::Completed { .. } => Some("look at its branch, or name a new run with another --run".to_owned()),
            Self::Password => Some("leave it to a credential helper of git's, or use ssh".to_owned()),
            Self::UnreadableCommit { .. } => Some(
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
