//! Where a daemon is reached, as it is told to a person.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::host::Host;

/// Where a daemon is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// On this machine.
    Socket(PathBuf),
    /// On another one, where it has a socket of its own.
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
