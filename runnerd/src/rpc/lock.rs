//! One daemon per socket and per state folder: two locks, held for the lifetime of the process.
//!
//! The runtime folder differs between a login, cron and a service, so the socket's lock alone would let two daemons
//! write to one state folder. The files are never removed: a lock on a removed file excludes no one. They name the
//! holder, for messages and for clients that look for its socket.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use protocol::paths::Paths;
use protocol::private_dir::{self, PrivateDirError};
use protocol::startup::EXIT_OCCUPIED;

/// Why the locks cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The folder of a lock cannot be used.
    #[error(transparent)]
    Folder(#[from] PrivateDirError),
    /// Another daemon has the socket or the state folder.
    #[error("another daemon ({holder}) holds the lock {path}")]
    Held {
        /// Path of the lock file.
        path: PathBuf,
        /// Its process id and its socket, if it wrote them down.
        holder: String,
    },
    /// The lock file cannot be used.
    #[error("cannot use the lock {path}")]
    File {
        /// Path of the lock file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl LockError {
    /// Returns the exit code of a daemon that could not take its locks.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Held { .. } => EXIT_OCCUPIED,
            Self::Folder(_) | Self::File { .. } => 1,
        }
    }
}

/// The locks of a daemon; dropping them lets another one start.
#[derive(Debug)]
pub struct DaemonLocks {
    _socket: File,
    _state: File,
}

impl DaemonLocks {
    /// Takes both locks without waiting, creating their folders if necessary.
    ///
    /// # Errors
    ///
    /// Fails if another daemon holds one of them, or if a folder is not private to this user.
    pub fn acquire(paths: &Paths) -> Result<Self, LockError> {
        let socket = acquire_lock(&paths.socket_lock(), &paths.socket)?;
        let state = acquire_lock(&paths.state_lock(), &paths.socket)?;
        Ok(Self { _socket: socket, _state: state })
    }

    /// Whether a daemon is using the state folder. Nothing is created or written.
    pub fn are_held(paths: &Paths) -> bool {
        let lock = File::open(paths.state_lock());
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

fn acquire_lock(path: &Path, socket: &Path) -> Result<File, LockError> {
    if let Some(folder) = path.parent() {
        private_dir::create_private_dir(folder)?;
    }
    let file_error = |source| LockError::File { path: path.to_owned(), source };
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).clone();
    let mut file = options.open(path).map_err(file_error)?;
    match file.try_lock() {
        Ok(()) => write_holder(&mut file, socket).map_err(file_error)?,
        Err(TryLockError::WouldBlock) => {
            return Err(LockError::Held { path: path.to_owned(), holder: read_holder(&mut file) });
        }
        Err(TryLockError::Error(source)) => return Err(file_error(source)),
    }
    Ok(file)
}

/// Writes the holder's process id and socket to the lock file, one line each.
fn write_holder(file: &mut File, socket: &Path) -> io::Result<()> {
    let mut text = format!("{}\n", std::process::id()).into_bytes();
    text.extend_from_slice(socket.as_os_str().as_bytes());
    text.push(b'\n');
    file.set_len(0)?;
    file.write_all(&text)
}

fn read_holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(8192).read_to_string(&mut text);
    let mut lines = text.lines();
    match (read, lines.next(), lines.next()) {
        (Ok(_), Some(pid), Some(socket)) => format!("pid {pid}, listening on {socket}"),
        _ => "just starting".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(dir: &Path, socket: &str) -> Paths {
        let socket = dir.join("run").join(socket);
        Paths { socket, socket_named: true, state: dir.join("state"), config: dir.join("config.toml") }
    }

    #[test]
    fn a_second_daemon_is_told_who_the_first_one_is() {
        let dir = tempfile::tempdir().unwrap();
        let first = DaemonLocks::acquire(&paths(dir.path(), "r.sock")).unwrap();
        let error = DaemonLocks::acquire(&paths(dir.path(), "r.sock")).unwrap_err();
        assert_eq!(error.exit_code(), EXIT_OCCUPIED);
        let named = format!("pid {}, listening on {}", std::process::id(), dir.path().join("run/r.sock").display());
        assert!(error.to_string().contains(&named), "{error}");
        drop(first);
        DaemonLocks::acquire(&paths(dir.path(), "r.sock")).unwrap();
    }

    #[test]
    fn another_socket_does_not_give_a_second_daemon_the_same_state() {
        let dir = tempfile::tempdir().unwrap();
        let _first = DaemonLocks::acquire(&paths(dir.path(), "a.sock")).unwrap();
        let error = DaemonLocks::acquire(&paths(dir.path(), "b.sock")).unwrap_err();
        assert!(matches!(&error, LockError::Held { path, .. } if path.ends_with("state/lock")), "{error}");
    }
}
