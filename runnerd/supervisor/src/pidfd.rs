//! A process held by a descriptor, so that a reused process id is never signalled.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

/// One process, alive or dead, but never another one with the same id.
#[derive(Debug)]
pub struct PidFd {
    /// Its process id.
    pub pid: i32,
    fd: OwnedFd,
}

impl PidFd {
    /// Opens the process with this id; `None` if there is none, or `matches` is false after it was opened.
    pub fn open(pid: i32, matches: impl FnOnce() -> bool) -> io::Result<Option<Self>> {
        let number = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
        match pidfd_open(number, PidfdFlags::empty()) {
            Ok(fd) => Ok(matches().then_some(Self { pid, fd })),
            Err(Errno::SRCH) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sends a signal; not an error if the process is already dead.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.fd, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Waits at most `within` for the process to die, and returns whether it has.
    pub fn wait(&self, within: Duration) -> bool {
        let timeout = PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut fds, timeout), Ok(ready) if ready > 0)
    }
}
