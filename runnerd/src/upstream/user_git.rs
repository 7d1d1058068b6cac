//! The user's own git against a remote: with the user's settings and logins, and with none that a session could have written.
//!
//! It runs in a group of its own, so that a signal to the job does not end a push half-way, and within a limit. What is asked
//! of it is `gate`'s.

use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::deadline::Deadline;

/// Variables that would lead git to another repository, or have it ask somebody.
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
/// Settings that keep it from running what a repository names, and from tidying up while somebody waits.
const GIT_SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
];
/// Bytes that are kept of what it prints.
const MAX_OUTPUT_BYTES: u64 = 16 * 1024 * 1024;

/// A command of git's.
#[derive(Debug)]
pub(super) struct UserGit {
    command: Command,
    limit: Duration,
    deadline: Deadline,
}

/// How a command ended.
#[derive(Debug)]
pub(super) struct CommandOutput {
    /// Whether it ended with 0.
    pub is_success: bool,
    /// With what it ended; none where something has ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
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

    /// Has it be over when everything has to be.
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

    /// Runs it to its end, or to the limit.
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
    /// Returns the last line of what it complained of, which says the most.
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
        // What was read before it broke is told.
        let _ = pipe.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
