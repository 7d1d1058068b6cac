//! Starts the shim for a program, from the daemon's side.
//!
//! An error from here means that the program did not run: there is nothing to undo or charge.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use runner_core::run::blocker::{self, Transience};
use runner_os::retryable::{Retryable, path_remedy};
use supervisor::{ShimMessage, ShimOrder, StartStep, to_line};
use thiserror::Error;
use tokio::time::timeout;

use super::{
    HostCapabilities, ProgramSpec, program,
    shim::ShimProgram,
    shim_link::{OutputPipes, ShimLink},
};

/// Time limit for a shim to answer, however busy the machine is.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Why a program could not be started.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// There is no such file.
    #[error("finding the program `{program}`: no such file in PATH or at that path")]
    NotFound {
        /// Name or path as given.
        program: String,
    },
    /// The file exists but cannot be executed.
    #[error("running {}: {why}", program.display())]
    NotExecutable {
        /// Path of the program.
        program: PathBuf,
        /// The error of the system.
        why: String,
    },
    /// The folder in which it is to start cannot be entered.
    #[error("entering the directory {}", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The log cannot be created.
    #[error("writing the log {}", path.display())]
    Log {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The home of a session cannot be made.
    #[error("making the home of the session {}", path.display())]
    SessionHome {
        /// Path of the folder, or of what is in it.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The lock file cannot be opened.
    #[error("opening the lock file {}", path.display())]
    LockFile {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A process of an earlier start still holds the lock.
    #[error("locking {}: held by another process", path.display())]
    Locked {
        /// Path of the lock file.
        path: PathBuf,
    },
    /// The system is short of processes, descriptors or memory for now; the same may work later.
    #[error("starting a process")]
    Shortage(#[source] io::Error),
    /// The containment of the program could not be set up.
    #[error("{doing}")]
    Isolation {
        /// The operation, and the path it was applied to.
        doing: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The folder to hide has been replaced.
    #[error(
        "{} is not the directory that it was when the daemon started: it was moved, or another one was put in its place",
        path.display()
    )]
    HiddenFolderMoved {
        /// Path of the folder.
        path: PathBuf,
    },
    /// The program of shims does not work as one.
    #[error("supervising through {}", program.display())]
    Shim {
        /// Path of the program.
        program: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

impl Retryable for SpawnError {
    fn transience(&self) -> Transience {
        match self {
            // A held lock implies a live holder.
            Self::Locked { .. } => Transience::Passing,
            // Checking again does not help.
            Self::HiddenFolderMoved { .. } => Transience::Lost,
            Self::NotFound { .. } | Self::NotExecutable { .. } => Transience::Lasting,
            Self::Folder { source, .. }
            | Self::Log { source, .. }
            | Self::SessionHome { source, .. }
            | Self::LockFile { source, .. } => source.transience(),
            Self::Shortage(source) | Self::Isolation { source, .. } | Self::Shim { source, .. } => source.transience(),
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Locked { path } => Some(format!("end the program that holds {}", path.display())),
            Self::HiddenFolderMoved { path } => Some(format!("put the directory back at {}", path.display())),
            Self::NotFound { .. } | Self::NotExecutable { .. } => None,
            Self::Folder { path, source }
            | Self::Log { path, source }
            | Self::SessionHome { path, source }
            | Self::LockFile { path, source } => Some(path_remedy(path, source)),
            Self::Shortage(source) | Self::Isolation { source, .. } | Self::Shim { source, .. } => source.remedy(),
        }
    }
}

impl SpawnError {
    /// Whether the same call fails until a person changes something: the program is missing or cannot be executed.
    pub fn is_misconfigured(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::NotExecutable { .. })
    }

    /// Maps errors that are known to be transient to [`Self::Shortage`], all others by `otherwise`.
    pub(super) fn classify(error: io::Error, otherwise: impl FnOnce(io::Error) -> Self) -> Self {
        match blocker::classify_io_error(&error) {
            Transience::Passing => Self::Shortage(error),
            Transience::Lasting | Transience::Lost => otherwise(error),
        }
    }
}

/// Starts shims, and knows what they put around programs.
#[derive(Debug, Clone)]
pub struct Launcher {
    pub(super) shim: ShimProgram,
    pub(super) capabilities: Arc<HostCapabilities>,
    descriptor_limit: Option<u64>,
    hidden_folder: Option<HiddenFolder>,
}

/// A folder that programs must not see.
#[derive(Debug, Clone)]
struct HiddenFolder {
    folder: PathBuf,
    /// Device and inode, which distinguish it from another one in its place.
    identity: Option<(u64, u64)>,
}

impl HiddenFolder {
    fn identity(folder: &Path) -> Option<(u64, u64)> {
        fs::symlink_metadata(folder).ok().map(|found| (found.dev(), found.ino()))
    }
}

impl Launcher {
    /// Uses the given binary for shims; its `main` must call [`supervisor::main`] first.
    pub fn new(program: PathBuf) -> Self {
        Self::with_shim(ShimProgram::from_path(program))
    }

    fn with_shim(shim: ShimProgram) -> Self {
        Self { shim, capabilities: Arc::default(), descriptor_limit: None, hidden_folder: None }
    }

    /// Puts the machine's means of containment around programs.
    #[must_use]
    pub fn with_capabilities(self, capabilities: HostCapabilities) -> Self {
        Self { capabilities: Arc::new(capabilities), ..self }
    }

    /// Hides a folder, which must exist, from every program that has its own mounts: at the level `pidns`.
    ///
    /// The path must be canonical. At that level, a program is not started if the folder cannot be hidden from it.
    #[must_use]
    pub fn with_hidden_folder(self, folder: PathBuf) -> Self {
        Self { hidden_folder: Some(HiddenFolder { identity: HiddenFolder::identity(&folder), folder }), ..self }
    }

    /// Fails if the hidden folder is not the same as when it was set.
    ///
    /// A program cannot see what is hidden, but there are ways to move the folder, and to put another one in its place.
    pub fn check_hidden_folder(&self) -> Result<(), SpawnError> {
        match &self.hidden_folder {
            Some(HiddenFolder { folder, identity }) if HiddenFolder::identity(folder) != *identity => {
                Err(SpawnError::HiddenFolderMoved { path: folder.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn hidden_path(&self) -> Option<&Path> {
        self.hidden_folder.as_ref().map(|hidden| hidden.folder.as_path())
    }

    /// Sets the limit of open descriptors for programs, instead of the daemon's.
    #[must_use]
    pub fn with_descriptor_limit(self, limit: u64) -> Self {
        Self { descriptor_limit: Some(limit), ..self }
    }

    /// Returns a shared handle to the containment in use.
    pub fn shared_capabilities(&self) -> Arc<HostCapabilities> {
        Arc::clone(&self.capabilities)
    }

    /// Returns the containment in use; nothing if no probe was made.
    pub fn capabilities(&self) -> &HostCapabilities {
        &self.capabilities
    }

    /// Uses the small program next to the running one for shims, else the running one.
    pub async fn from_installed() -> Self {
        let beside = async { Self::from_daemon_dir(&env::current_exe()?).await };
        beside.await.unwrap_or_else(|why| {
            tracing::info!(%why, "runnerd-shim is not used: the daemon's own program serves as the shim");
            Self::from_current_exe()
        })
    }

    /// Uses the small program in the folder of a daemon's program for shims.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or if it is from another build than the caller or cannot be started.
    pub async fn from_daemon_dir(daemon: &Path) -> io::Result<Self> {
        Ok(Self::with_shim(ShimProgram::from_daemon_dir(daemon).await?))
    }

    /// Uses the running binary for shims: the file that was started, even if another one has replaced it since.
    pub fn from_current_exe() -> Self {
        Self::new("/proc/self/exe".into())
    }
}

/// Starts a shim and makes it start the program; also returns the program's output.
pub(super) async fn start_program(
    launcher: &Launcher,
    spec: &ProgramSpec<'_>,
    began: Duration,
) -> Result<(ShimLink, OutputPipes), SpawnError> {
    launcher.check_hidden_folder()?;
    let order = shim_order(launcher, spec, began)?;
    let shim = &launcher.shim.path;
    let (mut link, output) = ShimLink::open_shim(shim, spec)
        .map_err(|error| SpawnError::classify(error, |error| shim_error(shim, error)))?;
    let start = async {
        link.send(&to_line(&order)).await;
        link.next_message().await
    };
    match timeout(START_LIMIT, start).await {
        Ok(Some(ShimMessage::Started)) => Ok((link, output)),
        Ok(Some(ShimMessage::Refused { step, errno })) => {
            Err(refusal_error(step, io::Error::from_raw_os_error(errno), &order, shim))
        }
        Ok(_) => Err(shim_error(shim, io::Error::other("it ended before the program ran"))),
        Err(elapsed) => {
            link.kill().await;
            Err(shim_error(shim, elapsed.into()))
        }
    }
}

fn shim_order(launcher: &Launcher, spec: &ProgramSpec<'_>, began: Duration) -> Result<ShimOrder, SpawnError> {
    let isolation = launcher.capabilities.isolation_for(spec.no_new_privs);
    let name = spec.argv.first().map(OsString::as_os_str).unwrap_or_default();
    Ok(ShimOrder {
        program: program::find(name, &spec.cwd, &spec.env)?.into(),
        argv: spec.argv.clone(),
        cwd: spec.cwd.clone().into(),
        env: spec.env.clone(),
        stdin: spec.stdin.clone(),
        mark: spec.mark.to_string(),
        lock: spec.lock.clone().into(),
        deadline: began + spec.limits.budget,
        grace: spec.limits.grace,
        farewell: spec.stop_policy,
        no_new_privs: spec.no_new_privs,
        descriptors: launcher.descriptor_limit,
        cgroup: isolation.group_place.map(|place| place.group_of(&spec.mark).into()),
        namespaces: isolation.namespaces,
        hidden: isolation.namespaces.and(launcher.hidden_path()).map(Into::into),
    })
}

fn refusal_error(step: StartStep, source: io::Error, order: &ShimOrder, shim: &Path) -> SpawnError {
    let lock = &order.lock;
    let folder = &order.cwd;
    let program = &order.program;
    match step {
        StartStep::Lock => SpawnError::Locked { path: lock.into() },
        StartStep::SetUp => SpawnError::classify(source, |source| shim_error(shim, source)),
        StartStep::Threads => {
            shim_error(shim, io::Error::other(format!("making sure that it has one thread: {source}")))
        }
        StartStep::Cgroup => {
            let doing = format!(
                "making the control group {}",
                Path::new(order.cgroup.as_deref().unwrap_or_default()).display()
            );
            SpawnError::Isolation { doing, source }
        }
        StartStep::Namespace => SpawnError::Isolation { doing: "making a PID namespace".to_owned(), source },
        StartStep::Hide => {
            let folder = Path::new(order.hidden.as_deref().unwrap_or_default());
            SpawnError::Isolation { doing: format!("hiding {} from a program", folder.display()), source }
        }
        StartStep::LockFile => SpawnError::LockFile { path: lock.into(), source },
        StartStep::Folder => SpawnError::Folder { path: folder.into(), source },
        StartStep::Exec => SpawnError::classify(source, |source| SpawnError::NotExecutable {
            program: program.into(),
            why: exec_failure(&source),
        }),
    }
}

/// Explains a failed exec. The file exists: if the system reports it missing, the interpreter in its first line is.
fn exec_failure(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::NotFound => "its interpreter does not exist".to_owned(),
        _ => source.to_string(),
    }
}

fn shim_error(shim: &Path, source: io::Error) -> SpawnError {
    SpawnError::Shim { program: shim.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

    #[test]
    fn shortage_passes_and_nothing_else_does() {
        let kind = |errno: Errno| SpawnError::classify(errno.into(), |error| shim_error(Path::new("shim"), error));
        for errno in [Errno::EAGAIN, Errno::ENOMEM, Errno::EMFILE, Errno::ENFILE, Errno::ETXTBSY] {
            assert!(matches!(kind(errno), SpawnError::Shortage(_)), "{errno}");
        }
        for errno in [Errno::ENOENT, Errno::EACCES, Errno::ENOEXEC, Errno::E2BIG] {
            assert!(matches!(kind(errno), SpawnError::Shim { .. }), "{errno}");
        }
    }
}
