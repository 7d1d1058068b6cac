//! The socket that a service manager has created and passes on (`sd_listen_fds(3)`): accepted only if it is what a
//! daemon needs.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use listenfd::ListenFd;
use nix::sys::socket::{getsockopt, sockopt};

/// Mode bits that let other users connect.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Why a passed socket is not served.
#[derive(Debug, thiserror::Error)]
pub enum ActivationError {
    /// More than one socket was passed.
    #[error(
        "the service manager passed {count} sockets, and one is served: leave one `ListenStream=` in the socket unit"
    )]
    TooManySockets {
        /// Number of sockets.
        count: usize,
    },
    /// It is another kind of file or socket.
    #[error("the service manager did not pass a Unix stream socket: `ListenStream=` in the socket unit names a path")]
    WrongType(#[source] io::Error),
    /// It is a connection.
    #[error("the service manager passed a connection: leave `Accept=` out of the socket unit")]
    NotListening,
    /// It has no path, so nothing determines who may connect.
    #[error("the service manager passed a socket without a path: `ListenStream=` in the socket unit names one")]
    Unnamed,
    /// Its path cannot be inspected, or is not a socket.
    #[error("cannot look at the socket {path}, which the service manager passed")]
    Unreadable {
        /// Path that was examined.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Other users could connect.
    #[error("the socket {path} is open to others (mode {mode:04o}): write `SocketMode=0600` into the socket unit")]
    OpenToOthers {
        /// Path that was examined.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It belongs to another user.
    #[error("the socket {path} belongs to user {owner}, not to this user")]
    ForeignOwner {
        /// Path that was examined.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
    },
}

/// A socket that the service manager keeps: it exists before and after the daemon.
#[derive(Debug)]
pub struct ActivatedSocket {
    /// The socket.
    pub listener: UnixListener,
    /// Where clients connect.
    pub path: PathBuf,
}

impl ActivatedSocket {
    /// Takes the socket, if one was passed to this process. Must be called before there is a second thread, as it
    /// removes the variables from the environment.
    ///
    /// # Errors
    ///
    /// Fails if it is not a single private Unix socket that is listening.
    pub fn from_env() -> Result<Option<Self>, ActivationError> {
        let mut listeners = ListenFd::from_env();
        match listeners.len() {
            0 => Ok(None),
            1 => listeners
                .take_unix_listener(0)
                .map_err(ActivationError::WrongType)?
                .map(Self::from_listener)
                .transpose(),
            count => Err(ActivationError::TooManySockets { count }),
        }
    }

    fn from_listener(listener: UnixListener) -> Result<Self, ActivationError> {
        if !getsockopt(&listener, sockopt::AcceptConn).unwrap_or(false) {
            return Err(ActivationError::NotListening);
        }
        let address = listener.local_addr().map_err(ActivationError::WrongType)?;
        let path = address.as_pathname().ok_or(ActivationError::Unnamed)?.to_owned();
        check_permissions(&path)?;
        Ok(Self { listener, path })
    }
}

fn check_permissions(path: &Path) -> Result<(), ActivationError> {
    let path = path.to_owned();
    let metadata = match fs::symlink_metadata(&path) {
        Ok(found) if found.file_type().is_socket() => found,
        Ok(_) => return Err(ActivationError::Unreadable { path, source: io::Error::other("it is no socket") }),
        Err(source) => return Err(ActivationError::Unreadable { path, source }),
    };
    let mode = metadata.mode() & 0o7777;
    if metadata.uid() != nix::unistd::getuid().as_raw() {
        Err(ActivationError::ForeignOwner { path, owner: metadata.uid() })
    } else if mode & WRITABLE_BY_OTHERS != 0 {
        Err(ActivationError::OpenToOthers { path, mode })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_socket_that_listens_for_its_owner_is_taken_with_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(ActivatedSocket::from_listener(listener).unwrap().path, path);
    }

    #[test]
    fn a_socket_that_others_may_write_to_is_refused_with_the_line_that_helps() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        let error = ActivatedSocket::from_listener(listener).unwrap_err().to_string();
        assert!(error.ends_with("(mode 0666): write `SocketMode=0600` into the socket unit"), "{error}");
    }

    #[test]
    fn a_connection_is_refused() {
        let (connection, _other) = UnixStream::pair().unwrap();
        let passed = ActivatedSocket::from_listener(UnixListener::from(OwnedFd::from(connection)));
        assert!(matches!(passed, Err(ActivationError::NotListening)), "{passed:?}");
    }

    #[test]
    fn a_socket_whose_name_is_gone_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let passed = ActivatedSocket::from_listener(listener);
        assert!(matches!(passed, Err(ActivationError::Unreadable { .. })), "{passed:?}");
    }
}
