//! The daemon's half of being started by a client (`protocol::startup`): leave the client's session, say
//! `READY` or why not, exactly once.
//!
//! A daemon that a person or a service manager started has nobody to tell; [`Readiness::unheard`] says so.

use std::error::Error;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;

use protocol::startup::{FAILED, READY};

/// The line to whoever waits for this daemon to start. Dropped unused, it says nothing, which means failure.
#[derive(Debug)]
pub struct Readiness {
    pipe: Option<File>,
}

impl Readiness {
    /// Returns one that nobody hears.
    pub fn unheard() -> Self {
        Self { pipe: None }
    }

    /// Leaves the client's session and takes over the pipe that is this process's standard output; what is
    /// printed from now on goes to standard error.
    ///
    /// # Errors
    ///
    /// Fails if the process leads a process group, or if a descriptor cannot be duplicated.
    pub fn take_stdout() -> io::Result<Self> {
        nix::unistd::setsid()?;
        let pipe = io::stdout().as_fd().try_clone_to_owned()?;
        nix::unistd::dup2_stdout(io::stderr())?;
        Ok(Self { pipe: Some(pipe.into()) })
    }

    /// Says that the daemon listens.
    pub fn ready(self) {
        self.say(READY);
    }

    /// Says why the daemon does not come up, causes included.
    pub fn failed(self, error: &dyn Error) {
        let mut line = format!("{FAILED}{error}");
        let mut source = error.source();
        while let Some(cause) = source {
            line.push_str(": ");
            line.push_str(&cause.to_string());
            source = cause.source();
        }
        self.say(&line.replace('\n', " "));
    }

    fn say(self, line: &str) {
        let Some(mut pipe) = self.pipe else { return };
        if let Err(error) = pipe.write_all(format!("{line}\n").as_bytes()) {
            tracing::debug!(%error, "the client that started this daemon is gone");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_failure_is_one_line_with_its_causes() {
        let (mut reading, writing) = io::pipe().unwrap();
        let readiness = Readiness { pipe: Some(File::from(std::os::fd::OwnedFd::from(writing))) };
        let error = anyhow::Error::from(io::Error::other("disk\nfull")).context("cannot open the state");
        readiness.failed(error.as_ref());
        let mut said = String::new();
        reading.read_to_string(&mut said).unwrap();
        assert_eq!(said, "FAILED cannot open the state: disk full\n");
    }
}
