//! The socket's file: bound with mode 0600, a stale one replaced, removed at the end.
//!
//! Safe only for a holder of the locks: no one else may act between checking and binding. Accepting connections is in
//! `listener.rs`.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener as StdListener, UnixStream};
use std::path::{Path, PathBuf};

use protocol::paths::Paths;
use protocol::private_dir::{self, PrivateDirError};
use protocol::startup::EXIT_OCCUPIED;
use tokio::net::UnixListener;

use super::DaemonLocks;

/// Why the socket cannot be bound.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The socket's folder cannot be used.
    #[error(transparent)]
    Folder(#[from] PrivateDirError),
    /// A process that holds no lock is listening there.
    #[error("another process listens on {path}")]
    InUse {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The path is taken by something other than a socket, which is left alone.
    #[error("{path} exists and is not a socket: remove it, or name another with --socket")]
    NotASocket {
        /// Path that was examined.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("cannot {action} the socket {path}")]
    System {
        /// The operation, as a verb.
        action: &'static str,
        /// Path of the socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl SocketError {
    /// Returns the exit code of a daemon that could not bind its socket.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::InUse { .. } => EXIT_OCCUPIED,
            Self::Folder(_) | Self::NotASocket { .. } | Self::System { .. } => 1,
        }
    }
}

/// A listening socket; connections wait until it is served.
#[derive(Debug)]
pub struct BoundSocket {
    pub(super) listener: UnixListener,
    /// Its file, if this daemon must remove it.
    pub(super) file: Option<SocketFile>,
}

impl BoundSocket {
    /// Binds the daemon's socket, replacing one left by a dead daemon.
    ///
    /// # Errors
    ///
    /// Fails if another process is listening there, if the path is not a socket, or if the system refuses.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn new(paths: &Paths, _locks: &DaemonLocks) -> Result<Self, SocketError> {
        let path = &paths.socket;
        if let Some(folder) = path.parent() {
            private_dir::create_private_dir(folder)?;
        }
        remove_stale(path)?;
        let system_error = |action| move |source| SocketError::System { action, path: path.clone(), source };
        let listener = UnixListener::bind(path).map_err(system_error("bind"))?;
        let file = SocketFile::new(path).map_err(system_error("look at"))?;
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(system_error("protect"))?;
        Ok(Self { listener, file: Some(file) })
    }

    /// Takes over a socket that a service manager has created and keeps: its file is neither corrected nor removed.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn from_manager(listener: StdListener, paths: &Paths, _locks: &DaemonLocks) -> Result<Self, SocketError> {
        let adopted = listener.set_nonblocking(true).and_then(|()| UnixListener::from_std(listener));
        let system_error = |source| SocketError::System { action: "take over", path: paths.socket.clone(), source };
        Ok(Self { listener: adopted.map_err(system_error)?, file: None })
    }
}

/// The socket's file, removed when this is dropped unless it belongs to another process by then.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: file_identity(path)? })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if file_identity(&self.path).is_ok_and(|found| found == self.identity)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "failed to remove the socket");
        }
    }
}

fn file_identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

fn remove_stale(path: &Path) -> Result<(), SocketError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(SocketError::System { action: "look at", path: path.to_owned(), source }),
        Ok(found) if !found.file_type().is_socket() => return Err(SocketError::NotASocket { path: path.to_owned() }),
        Ok(_) => {}
    }
    if UnixStream::connect(path).is_ok() {
        return Err(SocketError::InUse { path: path.to_owned() });
    }
    fs::remove_file(path).map_err(|source| SocketError::System { action: "replace", path: path.to_owned(), source })
}
