//! The address of a daemon, as shown to a person.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::host::Host;

/// The address of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// On this machine.
    Socket(PathBuf),
    /// On another machine, with the daemon's socket there.
    Host(Host),
}

impl Address {
    /// Returns the socket on this machine.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            Self::Socket(socket) => Some(socket),
            Self::Host(_) => None,
        }
    }

    /// Returns the other machine.
    pub fn host(&self) -> Option<&Host> {
        match self {
            Self::Socket(_) => None,
            Self::Host(host) => Some(host),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(socket) => write!(out, "{}", socket.display()),
            Self::Host(host) => write!(out, "{host}"),
        }
    }
}
