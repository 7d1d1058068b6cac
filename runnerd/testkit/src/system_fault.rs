//! System faults injected into the real daemon from outside: `strace` makes system calls of its threads fail, delay, or
//! be their last.
//!
//! Programs started by the daemon are released as soon as they are executed, so that no agent and no guard is hit: what
//! happens to them is the daemon's doing. Each thread counts its calls separately.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use nix::sys::signal::Signal;
use protocol::startup;

use crate::binary::binary;
use crate::home::{Home, ProgramOutput};
use crate::{PATIENCE, processes};

/// A fault: which system calls it affects and what happens to them, both in strace's syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemFault {
    calls: String,
    effect: String,
    path: Option<PathBuf>,
}

impl SystemFault {
    /// Creates a fault, as in `Fault::new("fsync,fdatasync", "error=EIO:when=3")`.
    pub fn new(calls: &str, effect: &str) -> Self {
        Self { calls: calls.to_owned(), effect: effect.to_owned(), path: None }
    }

    /// Kills the daemon at the `at`-th such call of one of its threads.
    pub fn kill_at(calls: &str, at: u32) -> Self {
        Self::new(calls, &format!("signal=KILL:when={at}"))
    }

    /// Restricts the fault to calls that involve one file.
    #[must_use]
    pub fn for_path(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    fn options(&self) -> Vec<String> {
        let words = ["-e", &format!("trace={}", self.calls), "-e", &format!("inject={}:{}", self.calls, self.effect)];
        let path = self.path.iter().flat_map(|path| ["-P".to_owned(), path.display().to_string()]);
        words.map(str::to_owned).into_iter().chain(path).collect()
    }
}

/// A daemon with an injected fault. It is stopped on drop.
#[derive(Debug)]
pub struct FaultyDaemon {
    child: Child,
    log: PathBuf,
    is_up: bool,
}

impl FaultyDaemon {
    /// Starts a home's daemon and waits until it listens or has failed to.
    ///
    /// # Panics
    ///
    /// Panics if strace is not installed, or if the daemon does neither.
    pub fn start(home: &Home, fault: &SystemFault) -> Self {
        let log = home.path().join("strace.log");
        let mut command = Command::new("strace");
        // Its environment and folder are not the home's, so it does not count as a process of an iteration.
        command.current_dir("/").args(["-D", "-I2", "-f", "-qq", "-b", "execve", "-o"]).arg(&log).args(fault.options());
        for (name, value) in home.env() {
            command.arg("-E").arg(format!("{name}={value}"));
        }
        command.arg(binary("runnerd")).arg(startup::FLAG);
        let stderr_log = fs::File::options().create(true).append(true).open(home.path().join("runnerd.stderr"));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr_log.expect("a file for its words can be made"));
        let mut child = command.spawn().unwrap_or_else(|error| panic!("strace is needed here, install it: {error}"));
        let is_up = read_first_line(&mut child).trim_end() == startup::READY;
        Self { child, log, is_up }
    }

    /// Returns whether the daemon has started listening.
    pub fn is_up(&self) -> bool {
        self.is_up
    }

    /// Returns how often the fault has occurred so far.
    pub fn fault_count(&self) -> usize {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        ["(INJECTED)", "(DELAYED)", "killed by SIGKILL"].iter().map(|word| log.matches(word).count()).sum()
    }

    /// Removes the fault: from now on the daemon runs undisturbed.
    ///
    /// # Panics
    ///
    /// Panics if it was removed before.
    pub fn stop_faults(&self) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the daemon is alive");
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).map(str::trim);
        let tracer = tracer.and_then(|pid| pid.parse().ok()).filter(|pid| *pid != 0).expect("strace is at work");
        processes::send_signal(tracer, Signal::SIGTERM);
        assert!(processes::wait_gone(tracer, PATIENCE), "strace does not let go");
    }

    /// Stops the daemon and returns how often the fault occurred.
    pub fn stop(mut self) -> usize {
        self.terminate();
        self.fault_count()
    }

    fn terminate(&mut self) {
        let pid = i32::try_from(self.child.id()).expect("BUG: a process id is an i32");
        processes::send_signal(pid, Signal::SIGTERM);
        if !processes::wait_gone(pid, PATIENCE) {
            processes::send_signal(pid, Signal::SIGKILL);
        }
        self.child.wait().expect("the daemon can be waited for");
        // The log is complete only once strace has exited, too.
        for tracer in processes::find_alive(&self.log) {
            assert!(processes::wait_gone(tracer, PATIENCE), "strace outlives the daemon");
        }
    }
}

impl Drop for FaultyDaemon {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            self.terminate();
        }
    }
}

impl Home {
    /// Runs `runnerctl` under a fault to completion, without letting it start a daemon.
    pub fn ctl_with_fault(&self, fault: &SystemFault, args: &[&str]) -> ProgramOutput {
        let mut command = Command::new("strace");
        command.env_clear().envs(self.env().iter().cloned()).current_dir(self.path());
        command.args(["-f", "-qq", "-o"]).arg(self.path().join("strace.log")).args(fault.options());
        command.arg(binary("runnerctl")).arg("--no-spawn").args(args);
        ProgramOutput::run_command(command)
    }
}

/// Returns the first line that the daemon prints for the client that started it; empty if it exited without printing
/// one.
fn read_first_line(child: &mut Child) -> String {
    let output = child.stdout.take().expect("BUG: standard output is a pipe");
    let (sender, line) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(output).read_line(&mut line);
        let _ = sender.send(line);
    });
    line.recv_timeout(PATIENCE).expect("the daemon says whether it listens, or ends")
}
