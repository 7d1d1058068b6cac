//! The user's own git for a remote: with the user's settings and credentials, and with none that a session could have
//! written.
//!
//! Runs in its own process group, so that a signal to the job does not kill a push half-way, and within a time limit.
//! What it is used for is up to `gate`.

use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::deadline::Deadline;

/// Variables that would direct git to another repository, or make it prompt.
const REMOVED_ENV: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_ASKPASS",
];
/// Settings that keep it from running programs named by a repository, and from maintenance while a caller waits.
const GIT_SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
];
/// Limit in bytes for its captured output.
const MAX_OUTPUT_BYTES: u64 = 16 * 1024 * 1024;

/// A git command.
#[derive(Debug)]
pub(super) struct UserGit {
    command: Command,
    limit: Duration,
    deadline: Deadline,
}

/// Result of a command.
#[derive(Debug)]
pub(super) struct CommandOutput {
    /// Whether it exited with 0.
    pub is_success: bool,
    /// Exit status; `None` if it was killed by a signal.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl UserGit {
    /// Prepares a command in a folder.
    pub(super) fn new(folder: &Path, limit: Duration) -> Self {
        let mut command = Command::new("git");
        command.current_dir(folder).process_group(0);
        for name in REMOVED_ENV {
            command.env_remove(name);
        }
        command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
        command.args(["--no-pager", "--no-replace-objects"]);
        for setting in GIT_SETTINGS {
            command.arg("-c").arg(setting);
        }
        Self { command, limit, deadline: Deadline::default() }
    }

    /// Subjects it to the shutdown deadline.
    pub(super) fn with_deadline(mut self, deadline: &Deadline) -> Self {
        self.deadline = deadline.clone();
        self
    }

    pub(super) fn env(mut self, name: &str, value: &Path) -> Self {
        self.command.env(name, value);
        self
    }

    pub(super) fn args<S: AsRef<std::ffi::OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Runs it until it exits or reaches its time limit.
    pub(super) fn run(mut self) -> io::Result<CommandOutput> {
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.command.spawn()?;
        let group = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
        let (guard, watch) = self.deadline.watch_command(self.limit);
        thread::scope(|scope| {
            let watchdog = thread::Builder::new().spawn_scoped(scope, move || {
                let is_late = watch.wait_expired();
                if is_late {
                    let _ = killpg(group, Signal::SIGKILL);
                }
                is_late
            });
            let output = collect_output(child);
            drop(guard);
            let is_late = watchdog.map(|watching| watching.join().unwrap_or_default())?;
            let mut output = output?;
            if is_late {
                "no answer in time".clone_into(&mut output.stderr);
            }
            Ok(output)
        })
    }
}

impl CommandOutput {
    /// Returns the last line of its error output, which is the most informative.
    pub(super) fn failure_reason(&self) -> String {
        let is_relevant =
            |line: &&str| line.starts_with("fatal: ") || line.starts_with("error: ") || line.contains("rejected");
        let lines = || self.stderr.lines().chain(self.stdout.lines()).map(str::trim).filter(|line| !line.is_empty());
        let line = lines().find(is_relevant).or_else(|| lines().next_back()).unwrap_or("it said nothing");
        line.chars().filter(|c| !c.is_control()).take(300).collect()
    }
}

fn collect_output(mut child: Child) -> io::Result<CommandOutput> {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let complaint = thread::Builder::new().spawn(move || read_pipe(err))?;
    let out = read_pipe(out);
    let status = child.wait()?;
    let complaint = complaint.join().unwrap_or_default();
    Ok(CommandOutput { is_success: status.success(), code: status.code(), stdout: out, stderr: complaint })
}

fn read_pipe(pipe: Option<impl io::Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What was read before the pipe broke is kept.
        let _ = pipe.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
