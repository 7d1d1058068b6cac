//! The socket's place in the file system: bound with mode 0600, a stale one replaced, removed at the end.
//!
//! Safe only for a holder of the locks: between looking and binding nobody else may act. Accepting
//! connections is `listener.rs`.

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
    /// A process that holds no lock listens there.
    #[error("another process listens on {path}")]
    Taken {
        /// The socket.
        path: PathBuf,
    },
    /// Something that is no socket is in its place; it is left alone.
    #[error("{path} is there and is no socket: remove it or name another with --socket")]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} the socket {path}")]
    System {
        /// What was being done.
        action: &'static str,
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl SocketError {
    /// Returns the exit code of a daemon that could not bind its socket.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Taken { .. } => EXIT_OCCUPIED,
            Self::Folder(_) | Self::NotASocket { .. } | Self::System { .. } => 1,
        }
    }
}

/// A socket that listens; connections wait until it is served.
#[derive(Debug)]
pub struct BoundSocket {
    pub(super) listener: UnixListener,
    /// Its name, where it is this daemon's to remove.
    pub(super) file: Option<SocketFile>,
}

impl BoundSocket {
    /// Binds the daemon's socket, replacing what a dead daemon left.
    ///
    /// # Errors
    ///
    /// Fails if somebody listens there, if no socket is in its place, or if the system refuses.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn new(paths: &Paths, _held: &DaemonLocks) -> Result<Self, SocketError> {
        let path = &paths.socket;
        if let Some(folder) = path.parent() {
            private_dir::make_folder(folder)?;
        }
        remove_stale(path)?;
        let system = |action| move |source| SocketError::System { action, path: path.clone(), source };
        let listener = UnixListener::bind(path).map_err(system("bind"))?;
        let file = SocketFile::new(path).map_err(system("look at"))?;
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(system("protect"))?;
        Ok(Self { listener, file: Some(file) })
    }

    /// Takes over a socket that a service manager made and keeps: its name is neither set right nor removed.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn from_manager(listener: StdListener, paths: &Paths, _held: &DaemonLocks) -> Result<Self, SocketError> {
        let taken = listener.set_nonblocking(true).and_then(|()| UnixListener::from_std(listener));
        let failed = |source| SocketError::System { action: "take over", path: paths.socket.clone(), source };
        Ok(Self { listener: taken.map_err(failed)?, file: None })
    }
}

/// The socket's name in the file system, removed when this is dropped unless it is another's by then.
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
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the socket");
        }
    }
}

fn file_identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn remove_stale(path: &Path) -> Result<(), SocketError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(SocketError::System { action: "look at", path: path.to_owned(), source }),
        Ok(found) if !found.file_type().is_socket() => return Err(SocketError::NotASocket { path: path.to_owned() }),
        Ok(_) => {}
    }
    if UnixStream::connect(path).is_ok() {
        return Err(SocketError::Taken { path: path.to_owned() });
    }
    fs::remove_file(path).map_err(|source| SocketError::System { action: "replace", path: path.to_owned(), source })
}
