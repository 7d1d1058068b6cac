//! The daemon's side of being started: leaves the client's session and reports `READY` or an error, exactly once, to
//! the client (`protocol::startup`) or the service manager that waits for it. Also identifies the program that was
//! started.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use protocol::startup::{FAILED, READY};

use crate::service::ServiceNotifier;

/// The channel to the process waiting for this daemon to start. Dropped unused, it reports nothing, which means
/// failure.
#[derive(Debug)]
pub struct Readiness {
    pipe: Option<File>,
    notifier: ServiceNotifier,
}

impl Readiness {
    /// Returns the channel to the service manager, if there is one.
    pub fn for_service_manager() -> Self {
        Self { pipe: None, notifier: ServiceNotifier::from_env() }
    }

    /// Leaves the client's session and takes over the pipe on standard output; from now on, output goes to standard
    /// error.
    ///
    /// # Errors
    ///
    /// Fails if the process leads a process group, or if a descriptor cannot be duplicated.
    pub fn take_stdout() -> io::Result<Self> {
        nix::unistd::setsid()?;
        let pipe = io::stdout().as_fd().try_clone_to_owned()?;
        nix::unistd::dup2_stdout(io::stderr())?;
        // Variables of a service that the client belongs to are not meant for this process.
        Ok(Self { pipe: Some(pipe.into()), notifier: ServiceNotifier::disabled() })
    }

    /// Returns the notifier for further messages to the service manager.
    pub fn notifier(&self) -> ServiceNotifier {
        self.notifier
    }

    /// Reports that the daemon is listening.
    pub fn report_ready(self) {
        self.notifier.notify_ready();
        self.write_line(READY);
    }

    /// Reports why the daemon does not start, causes included.
    pub fn report_failure(self, error: &dyn Error) {
        let mut line = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            line.push_str(": ");
            line.push_str(&cause.to_string());
            source = cause.source();
        }
        let line = line.replace('\n', " ");
        self.notifier.notify_failed(&line);
        self.write_line(&format!("{FAILED}{line}"));
    }

    fn write_line(self, line: &str) {
        let Some(mut pipe) = self.pipe else { return };
        if let Err(error) = pipe.write_all(format!("{line}\n").as_bytes()) {
            tracing::debug!(%error, "the client that started this daemon has exited");
        }
    }
}

/// The file that this process was started from.
#[derive(Debug, Clone)]
pub struct DaemonProgram {
    path: PathBuf,
    identity: (u64, u64),
}

impl DaemonProgram {
    /// Identifies the file; `None` if it is already gone.
    pub fn current() -> Option<Self> {
        let path = std::env::current_exe().ok()?;
        Some(Self { identity: file_identity(&path).ok()?, path })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file has been replaced, so that the next start would run another program.
    pub fn is_outdated(&self) -> bool {
        file_identity(&self.path).is_ok_and(|found| found != self.identity)
    }
}

fn file_identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_failure_is_one_line_with_its_causes() {
        let (mut reading, writing) = io::pipe().unwrap();
        let readiness = Readiness {
            pipe: Some(File::from(std::os::fd::OwnedFd::from(writing))),
            notifier: ServiceNotifier::disabled(),
        };
        let error = anyhow::Error::from(io::Error::other("disk\nfull")).context("cannot open the state");
        readiness.report_failure(error.as_ref());
        let mut output = String::new();
        reading.read_to_string(&mut output).unwrap();
        assert_eq!(output, "FAILED cannot open the state: disk full\n");
    }

    #[test]
    fn a_program_whose_file_was_replaced_is_outdated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runnerd");
        fs::write(&path, "old").unwrap();
        let program = DaemonProgram { identity: file_identity(&path).unwrap(), path: path.clone() };
        assert!(!program.is_outdated());
        fs::write(dir.path().join("new"), "new").unwrap();
        fs::rename(dir.path().join("new"), &path).unwrap();
        assert!(program.is_outdated());
    }
}
