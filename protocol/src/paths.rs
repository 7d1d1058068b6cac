//! The paths of the socket, the daemon's state and its settings.
//!
//! Client and daemon derive them by the same rules, only from the environment. Nothing is created here, and no path
//! inside a repository is known here.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use directories::BaseDirs;

use crate::service::{SERVICE_UNIT, SOCKET_UNIT};

/// The variable that names the socket.
pub const SOCKET_VARIABLE: &str = "RUNNERD_SOCKET";
/// The variable that names the folder of the daemon's state.
pub const STATE_VARIABLE: &str = "RUNNERD_STATE";

/// The variable in which an engine of an unknown kind passes the name of its job.
pub const JOB_VARIABLE: &str = "RUNNERD_JOB";

/// Longest path of a socket in bytes, without the final NUL.
pub const SOCKET_PATH_MAX: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

const NAME: &str = "runnerd";
/// The file name of a socket in its folder.
const SOCKET: &str = "runnerd.sock";

/// Why the paths cannot be found.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathsError {
    /// There is no home folder to derive paths from.
    #[error("this user has no home directory: set HOME to an absolute path, or {SOCKET_VARIABLE} and {STATE_VARIABLE}")]
    NoHome,
    /// A named path is relative.
    #[error("the path `{path}` in {origin} is not absolute")]
    Relative {
        /// The flag or variable that names it.
        origin: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// The system cannot bind a socket there.
    #[error(
        "the path of the socket has {length} bytes, the system allows {SOCKET_PATH_MAX}: name a shorter one with \
         --socket or {SOCKET_VARIABLE}, not {path}"
    )]
    TooLong {
        /// The socket.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
    },
}

/// All paths of one daemon. They are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The control socket.
    pub socket: PathBuf,
    /// Whether the socket was named by flag or variable, not derived.
    pub socket_named: bool,
    /// The folder of the daemon's durable state.
    pub state: PathBuf,
    /// The daemon's own settings.
    pub config: PathBuf,
}

impl Paths {
    /// Finds the paths; `socket` is the one named on the command line.
    ///
    /// # Errors
    ///
    /// Fails without a home folder, or if a named path is relative or too long.
    pub fn find(socket: Option<&Path>) -> Result<Self, PathsError> {
        Self::derive(&PathEnvironment::read(), socket)
    }

    /// Returns the socket named on the command line, or else by the variable; needs no home folder.
    ///
    /// # Errors
    ///
    /// Fails if the path is relative or too long.
    pub fn named_socket(flag: Option<&Path>) -> Result<Option<PathBuf>, PathsError> {
        PathEnvironment::read().named_socket(flag)
    }

    /// Returns the same paths with another socket, which the daemon's settings may name.
    ///
    /// # Errors
    ///
    /// Fails if the path is relative or too long.
    pub fn with_socket(self, socket: &Path, origin: &'static str) -> Result<Self, PathsError> {
        let socket = check_socket_length(require_absolute(socket.to_owned(), origin)?)?;
        Ok(Self { socket, socket_named: true, ..self })
    }

    /// Whether the socket is where it would be without a flag or variable.
    pub fn has_default_socket(&self) -> bool {
        self.socket == PathEnvironment::read().default_socket(&self.state)
    }

    /// Returns the folder of the daemon's own log.
    pub fn log_dir(&self) -> PathBuf {
        self.state.join("logs")
    }

    /// Returns the current file of the daemon's own log.
    pub fn log_file(&self) -> PathBuf {
        self.log_dir().join("runnerd.log")
    }

    /// Returns the path of the user's systemd unit for the daemon.
    pub fn service_unit(&self) -> PathBuf {
        self.unit_dir().join(SERVICE_UNIT)
    }

    /// Returns the path of the user's systemd unit for the daemon's socket.
    pub fn socket_unit(&self) -> PathBuf {
        self.unit_dir().join(SOCKET_UNIT)
    }

    /// The folder is next to that of the daemon's settings.
    fn unit_dir(&self) -> PathBuf {
        let home = self.config.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        home.join("systemd/user")
    }

    /// Returns the file with the output of a daemon while a client started it.
    pub fn startup_log(&self) -> PathBuf {
        self.state.join("startup.log")
    }

    /// Returns the lock file of the daemon that uses the state folder; it contains the path of the daemon's socket.
    pub fn state_lock(&self) -> PathBuf {
        self.state.join("lock")
    }

    /// Returns the lock file of the daemon that owns the socket.
    pub fn socket_lock(&self) -> PathBuf {
        with_suffix(&self.socket, ".lock")
    }

    /// Returns the lock file of a client that is starting a daemon.
    pub fn start_lock(&self) -> PathBuf {
        with_suffix(&self.socket, ".start")
    }

    fn derive(env: &PathEnvironment, flag: Option<&Path>) -> Result<Self, PathsError> {
        let state = match &env.state_variable {
            Some(path) => require_absolute(path.clone(), STATE_VARIABLE)?,
            None => env.state_home.as_ref().ok_or(PathsError::NoHome)?.join(NAME),
        };
        let named = env.named_socket(flag)?;
        let socket_named = named.is_some();
        let socket = match named {
            Some(socket) => socket,
            None => check_socket_length(env.default_socket(&state))?,
        };
        let config = env.config_home.as_ref().map_or_else(|| state.clone(), |home| home.join(NAME));
        Ok(Self { socket, socket_named, state, config: config.join("config.toml") })
    }
}

/// Returns the file of the client's own settings; `None` without a home folder.
pub fn client_settings_path() -> Option<PathBuf> {
    base_dirs().map(|dirs| dirs.config_dir().join("runnerctl/config.toml"))
}

/// Returns the user's folders; `None` if the home folder is unknown, or is not an absolute path.
fn base_dirs() -> Option<BaseDirs> {
    BaseDirs::new().filter(|dirs| dirs.home_dir().is_absolute())
}

/// Returns the folder for the folders of this user's jobs: in the folder for temporary files, which an engine may
/// create for each job.
pub fn jobs_dir() -> PathBuf {
    env::temp_dir().join(format!("runnerd-jobs-{}", nix::unistd::getuid()))
}

/// Returns the folder of a job, given its engine and its name there.
pub fn job_dir(engine: &str, job: &str) -> PathBuf {
    jobs_dir().join(format!("{engine}-{job}"))
}

/// Returns the engine that started this process, and its name for the job, according to the environment.
pub fn detect_job(variable: impl Fn(&str) -> Option<String>) -> Option<(&'static str, String)> {
    if let Some(job) = variable("SLURM_JOB_ID") {
        return Some(("slurm", job));
    }
    let named = variable(JOB_VARIABLE);
    if variable("KUBERNETES_SERVICE_HOST").is_none() {
        return named.map(|job| ("command", job));
    }
    // The name of a pod differs for each attempt.
    let job = named.or_else(|| variable("HOSTNAME"))?;
    Some(("kubernetes", variable("JOB_COMPLETION_INDEX").map_or_else(|| job.clone(), |index| format!("{job}-{index}"))))
}

/// The inputs from which the paths are derived.
#[derive(Debug, Default)]
struct PathEnvironment {
    socket_variable: Option<PathBuf>,
    state_variable: Option<PathBuf>,
    state_home: Option<PathBuf>,
    config_home: Option<PathBuf>,
    /// The socket of the job that this process belongs to.
    job_socket: Option<PathBuf>,
    /// Folders for sockets, best first; folders of other users are skipped.
    runtime_dirs: Vec<PathBuf>,
}

impl PathEnvironment {
    fn read() -> Self {
        let base = base_dirs();
        let base = base.as_ref();
        let named = |name| env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
        let login = PathBuf::from(format!("/run/user/{}", nix::unistd::getuid()));
        Self {
            socket_variable: named(SOCKET_VARIABLE),
            job_socket: detect_job(|name: &str| env::var(name).ok().filter(|value| !value.is_empty()))
                .map(|(engine, job)| job_dir(engine, &job).join(SOCKET)),
            state_variable: named(STATE_VARIABLE),
            state_home: base.map(|dirs| dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir()).to_owned()),
            config_home: base.map(|dirs| dirs.config_dir().to_owned()),
            // cron and sudo do not set the variable although the folder exists.
            runtime_dirs: base.and_then(BaseDirs::runtime_dir).map(Path::to_owned).into_iter().chain([login]).collect(),
        }
    }

    fn named_socket(&self, flag: Option<&Path>) -> Result<Option<PathBuf>, PathsError> {
        let named = match (flag, &self.socket_variable) {
            (Some(path), _) => require_absolute(path.to_owned(), "--socket")?,
            (None, Some(path)) => require_absolute(path.clone(), SOCKET_VARIABLE)?,
            (None, None) => return Ok(None),
        };
        check_socket_length(named).map(Some)
    }

    fn default_socket(&self, state: &Path) -> PathBuf {
        if let Some(socket) = self.job_socket.as_ref().filter(|socket| is_own_socket(socket)) {
            return socket.clone();
        }
        let folder = match self.runtime_dirs.iter().find(|folder| is_own_dir(folder)) {
            Some(runtime) => runtime.join(NAME),
            None => state.join("run"),
        };
        folder.join(SOCKET)
    }
}

fn is_own_socket(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|found| found.file_type().is_socket() && found.uid() == nix::unistd::getuid().as_raw())
}

fn is_own_dir(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == nix::unistd::getuid().as_raw())
}

fn require_absolute(path: PathBuf, origin: &'static str) -> Result<PathBuf, PathsError> {
    if path.is_absolute() { Ok(path) } else { Err(PathsError::Relative { origin, path }) }
}

fn check_socket_length(path: PathBuf) -> Result<PathBuf, PathsError> {
    let length = path.as_os_str().as_bytes().len();
    if length > SOCKET_PATH_MAX { Err(PathsError::TooLong { path, length }) } else { Ok(path) }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_environment() -> PathEnvironment {
        PathEnvironment {
            state_home: Some("/home/u/.local/state".into()),
            config_home: Some("/home/u/.config".into()),
            ..PathEnvironment::default()
        }
    }

    #[test]
    fn without_a_runtime_folder_the_socket_is_under_the_state_folder() {
        let paths = Paths::derive(&sample_environment(), None).unwrap();
        assert_eq!(paths.socket, Path::new("/home/u/.local/state/runnerd/run/runnerd.sock"));
        assert_eq!(paths.state, Path::new("/home/u/.local/state/runnerd"));
        assert_eq!(paths.config, Path::new("/home/u/.config/runnerd/config.toml"));
        assert!(!paths.socket_named);
    }

    #[test]
    fn the_first_runtime_folder_that_is_ours_holds_the_socket() {
        let ours = tempfile::tempdir().unwrap();
        let runtime_dirs = vec![ours.path().join("missing"), ours.path().into()];
        let environment = PathEnvironment { runtime_dirs, ..sample_environment() };
        let paths = Paths::derive(&environment, None).unwrap();
        assert_eq!(paths.socket, ours.path().join("runnerd/runnerd.sock"));
    }

    #[test]
    fn the_flag_stands_above_the_variable() {
        let environment =
            PathEnvironment { socket_variable: Some("/run/variable.sock".into()), ..sample_environment() };
        assert_eq!(Paths::derive(&environment, None).unwrap().socket, Path::new("/run/variable.sock"));
        let flag = Paths::derive(&environment, Some(Path::new("/run/flag.sock"))).unwrap();
        assert_eq!(flag.socket, Path::new("/run/flag.sock"));
        assert!(flag.socket_named);
    }

    #[test]
    fn locks_stand_beside_the_socket() {
        let paths = Paths::derive(&sample_environment(), Some(Path::new("/run/x.sock"))).unwrap();
        assert_eq!(paths.socket_lock(), Path::new("/run/x.sock.lock"));
        assert_eq!(paths.start_lock(), Path::new("/run/x.sock.start"));
    }

    #[test]
    fn a_relative_path_is_refused_by_its_origin() {
        let environment = PathEnvironment { state_variable: Some("state".into()), ..sample_environment() };
        let error = Paths::derive(&environment, None).unwrap_err();
        assert_eq!(error.to_string(), "the path `state` in RUNNERD_STATE is not absolute");
    }

    #[test]
    fn a_socket_path_that_cannot_be_bound_is_refused_with_its_length() {
        let longest = PathBuf::from(format!("/{}", "s".repeat(SOCKET_PATH_MAX - 1)));
        assert!(Paths::derive(&sample_environment(), Some(&longest)).is_ok());
        let error = Paths::derive(&sample_environment(), Some(&longest.join("s"))).unwrap_err();
        assert!(matches!(error, PathsError::TooLong { length, .. } if length == SOCKET_PATH_MAX + 2), "{error}");
    }

    #[test]
    fn without_a_home_folder_both_variables_suffice() {
        let environment = PathEnvironment {
            socket_variable: Some("/run/r.sock".into()),
            state_variable: Some("/var/r".into()),
            ..PathEnvironment::default()
        };
        assert_eq!(Paths::derive(&environment, None).unwrap().config, Path::new("/var/r/config.toml"));
        assert_eq!(Paths::derive(&PathEnvironment::default(), None), Err(PathsError::NoHome));
    }

    #[test]
    fn a_named_socket_needs_no_home_folder() {
        let mut environment =
            PathEnvironment { socket_variable: Some("/run/r.sock".into()), ..PathEnvironment::default() };
        assert_eq!(environment.named_socket(None), Ok(Some("/run/r.sock".into())));
        assert_eq!(environment.named_socket(Some(Path::new("/run/flag.sock"))), Ok(Some("/run/flag.sock".into())));
        environment.socket_variable = None;
        assert_eq!(environment.named_socket(None), Ok(None));
    }
}
