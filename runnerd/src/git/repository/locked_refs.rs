//! References that a git program holds locked while something else is done: it moves them when it is told to, and lets
//! them go where it is dropped or its daemon dies.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::program::{COMMAND_TIMEOUT, GitOutput, classify_failure};
use crate::git::GitError;

/// What the program does while it has them takes at most as long as another command, and a little.
const LIMIT_FACTOR: u32 = 2;

/// A program that holds references locked.
#[derive(Debug)]
pub(in crate::git) struct LockedRefs {
    child: Child,
    commands: Option<ChildStdin>,
    responses: BufReader<ChildStdout>,
    path: PathBuf,
    /// Dropped when it is over: a program that hangs is ended.
    watchdog: Option<Sender<()>>,
}

impl LockedRefs {
    /// Gives `git update-ref --stdin` an order, and waits until it has locked what that is about.
    pub(super) fn acquire(mut child: Child, order: &str, path: &Path) -> Result<Self, GitError> {
        let lost = || io::Error::other("a pipe to git is missing");
        let failed = |error| GitError::io("running git in", path)(error);
        let orders = child.stdin.take().ok_or_else(lost).map_err(failed)?;
        let answers = BufReader::new(child.stdout.take().ok_or_else(lost).map_err(failed)?);
        let over = Some(spawn_watchdog(&child).map_err(failed)?);
        let mut refs = Self { child, commands: Some(orders), responses: answers, path: path.to_owned(), watchdog: over };
        refs.send_command(&format!("start\n{order}prepare\n"), "prepare: ok")?;
        Ok(refs)
    }

    /// Moves the references.
    pub(in crate::git) fn commit(mut self) -> Result<(), GitError> {
        self.send_command("commit\n", "commit: ok")
    }

    /// Tells it something, and waits for the answer.
    fn send_command(&mut self, order: &str, expected: &str) -> Result<(), GitError> {
        let sent = match &mut self.commands {
            Some(orders) => orders.write_all(order.as_bytes()).and_then(|()| orders.flush()),
            None => Ok(()),
        };
        let mut line = String::new();
        // One that ended before it read everything says why on its standard error.
        while sent.is_ok() && self.responses.read_line(&mut line).map_err(GitError::io("running git in", &self.path))? > 0
        {
            if line.trim_end() == expected {
                return Ok(());
            }
            line.clear();
        }
        Err(self.read_failure()?)
    }

    /// Returns what it complains of, once it has ended.
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
    /// Without orders it lets everything go that it has not moved, and ends.
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
