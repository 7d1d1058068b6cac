//! A place where a scripted session stops until the test lets it continue: two named pipes.
//!
//! `gate NAME` in a script arrives there. The test waits for it in [`SessionGate::wait_reached`], without polling.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::PATIENCE;

/// A gate; while the test holds it, sessions that arrive stop.
#[derive(Debug)]
pub struct SessionGate {
    arrivals: File,
    passes: File,
}

impl SessionGate {
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        let pipe = |end: &str| {
            let path = folder.join(format!("{name}.{end}"));
            mkfifo(&path, Mode::S_IRWXU).expect("a pipe can be made");
            // Opened for reading and writing, so neither side waits for the other to open.
            OpenOptions::new().read(true).write(true).open(path).expect("a pipe can be opened")
        };
        Self { arrivals: pipe("in"), passes: pipe("out") }
    }

    /// Waits until a session has arrived.
    ///
    /// # Panics
    ///
    /// Panics if none arrives within [`PATIENCE`].
    pub fn wait_reached(&self) {
        let mut fds = [PollFd::new(self.arrivals.as_fd(), PollFlags::POLLIN)];
        let limit = PollTimeout::try_from(PATIENCE).expect("BUG: the patience is too long for poll");
        assert!(poll(&mut fds, limit).expect("a pipe can be polled") > 0, "no session arrived at the gate");
        let mut arrivals = &self.arrivals;
        arrivals.read_exact(&mut [0]).expect("a pipe can be read");
    }

    /// Lets one session continue.
    pub fn open(&self) {
        let mut passes = &self.passes;
        passes.write_all(b"\n").expect("a pipe can be written");
    }
}
