//! References that a running git program holds locked while something else is done: it moves them when told to, and
//! releases them when it is dropped or the daemon dies.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::program::{COMMAND_TIMEOUT, GitOutput, classify_failure};
use crate::GitError;

/// Multiple of another command's time limit that the program may take, including the work done while it holds the
/// locks.
const LIMIT_FACTOR: u32 = 2;

/// A program that holds references locked.
#[derive(Debug)]
pub(crate) struct LockedRefs {
    child: Child,
    commands: Option<ChildStdin>,
    responses: BufReader<ChildStdout>,
    path: PathBuf,
    /// Dropped when the work is over; a program that hangs is terminated.
    watchdog: Option<Sender<()>>,
}

impl LockedRefs {
    /// Sends `git update-ref --stdin` its commands, and waits until the references are locked.
    pub(super) fn acquire(mut child: Child, order: &str, path: &Path) -> Result<Self, GitError> {
        let lost = || io::Error::other("a pipe to git is missing");
        let failed = |error| GitError::io("running git in", path)(error);
        let orders = child.stdin.take().ok_or_else(lost).map_err(failed)?;
        let answers = BufReader::new(child.stdout.take().ok_or_else(lost).map_err(failed)?);
        let over = Some(spawn_watchdog(&child).map_err(failed)?);
        let mut refs =
            Self { child, commands: Some(orders), responses: answers, path: path.to_owned(), watchdog: over };
        refs.send_command(&format!("start\n{order}prepare\n"), "prepare: ok")?;
        Ok(refs)
    }

    /// Moves the references.
    pub(crate) fn commit(mut self) -> Result<(), GitError> {
        self.send_command("commit\n", "commit: ok")
    }

    /// Sends a command, and waits for the answer.
    fn send_command(&mut self, order: &str, expected: &str) -> Result<(), GitError> {
        let sent = match &mut self.commands {
            Some(orders) => orders.write_all(order.as_bytes()).and_then(|()| orders.flush()),
            None => Ok(()),
        };
        let mut line = String::new();
        // A program that exits before it has read everything reports the reason on its standard error.
        while sent.is_ok()
            && self.responses.read_line(&mut line).map_err(GitError::io("running git in", &self.path))? > 0
        {
            if line.trim_end() == expected {
                return Ok(());
            }
            line.clear();
        }
        Err(self.read_failure()?)
    }

    /// Returns its error message after it has exited.
    fn read_failure(&mut self) -> Result<GitError, GitError> {
        let failed = |error| GitError::io("running git in", &self.path)(error);
        drop(self.commands.take());
        let mut stderr = String::new();
        if let Some(pipe) = &mut self.child.stderr {
            pipe.read_to_string(&mut stderr).map_err(failed)?;
        }
        let status = self.child.wait().map_err(failed)?;
        let outcome = GitOutput { status, stdout: Vec::new(), stderr: stderr.trim_end().to_owned(), ended: None };
        Ok(match classify_failure(&outcome, &self.path) {
            Some(obstacle) => obstacle,
            None => outcome.into_error("update-ref".to_owned(), self.path.clone()),
        })
    }
}

impl Drop for LockedRefs {
    /// Closing its input makes it release every reference it has not moved, and exit.
    fn drop(&mut self) {
        drop(self.commands.take());
        let _ = self.child.wait();
        drop(self.watchdog.take());
    }
}

fn spawn_watchdog(child: &Child) -> io::Result<Sender<()>> {
    let group = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let (done, watch) = mpsc::channel::<()>();
    thread::Builder::new().spawn(move || {
        if watch.recv_timeout(COMMAND_TIMEOUT * LIMIT_FACTOR) == Err(RecvTimeoutError::Timeout) {
            let _ = killpg(group, Signal::SIGKILL);
        }
    })?;
    Ok(done)
}
