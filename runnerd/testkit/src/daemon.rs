//! The real daemon as a child process of the test: starting, killing and stopping it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use protocol::startup;
use rustix::process::{Pid as RawPid, Resource, Rlimit, getrlimit, prlimit};

use crate::PATIENCE;
use crate::processes;

/// A listening daemon. It is stopped on drop.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
}

impl Daemon {
    /// Starts the daemon as a client would and waits until it listens.
    pub(crate) fn start(mut command: Command) -> Self {
        command.arg(startup::FLAG).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the daemon can be started");
        let output = child.stdout.take().expect("BUG: standard output is a pipe");
        let (sender, line) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(output).read_line(&mut line);
            let _ = sender.send(line);
        });
        let line = line.recv_timeout(PATIENCE).expect("the daemon says whether it listens");
        assert_eq!(line.trim_end(), startup::READY, "the daemon does not come up");
        Self { child }
    }

    /// Takes over a daemon that is already listening.
    pub(crate) fn from_child(child: Child) -> Self {
        Self { child }
    }

    /// Returns the process id.
    ///
    /// # Panics
    ///
    /// Panics if the process id does not fit an `i32`.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("BUG: a process id is an i32")
    }

    /// Returns the most memory that the daemon has used at one time, in KiB.
    ///
    /// # Panics
    ///
    /// Panics if the daemon is gone.
    pub fn peak_memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the daemon is alive");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the system counts memory");
        peak.trim().trim_end_matches(" kB").parse().expect("it is a number")
    }

    /// Returns the number of open file descriptors of the daemon.
    ///
    /// # Panics
    ///
    /// Panics if the daemon is gone.
    pub fn handles(&self) -> u64 {
        let handles =
            std::fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("the daemon's handles can be listed");
        handles.count() as u64
    }

    /// Sets the daemon's limit of file descriptors from now on; `None` restores the hard limit.
    ///
    /// # Panics
    ///
    /// Panics if the system refuses.
    pub fn limit_handles(&self, count: Option<u64>) {
        let maximum = getrlimit(Resource::Nofile).maximum;
        let limit = Rlimit { current: count.or(maximum), maximum };
        prlimit(RawPid::from_raw(self.pid()), Resource::Nofile, limit).expect("the limit can be set");
    }

    /// Kills the daemon as a power cut would; processes it started live on.
    ///
    /// # Panics
    ///
    /// Panics if the system refuses.
    pub fn kill(mut self) {
        self.child.kill().expect("the daemon can be killed");
        self.child.wait().expect("the daemon can be waited for");
    }

    /// Asks the daemon twice to stop, and waits until it has exited.
    ///
    /// # Panics
    ///
    /// Panics if it does not exit.
    pub fn signal_twice(mut self) {
        processes::send_signal(self.pid(), Signal::SIGTERM);
        // Pending signals are merged into one, so wait in between.
        while !processes::wait_gone(self.pid(), Duration::from_millis(500)) {
            processes::send_signal(self.pid(), Signal::SIGTERM);
        }
        self.child.wait().expect("the daemon can be waited for");
    }

    /// Waits until someone has stopped the daemon; [`continue_running`](Self::continue_running) resumes it.
    ///
    /// # Panics
    ///
    /// Panics if it exits instead.
    pub fn wait_stopped(&self) {
        let status = waitpid(Pid::from_raw(self.pid()), Some(WaitPidFlag::WUNTRACED)).expect("a child can be awaited");
        assert!(matches!(status, WaitStatus::Stopped(..)), "the daemon is not stopped: {status:?}");
    }

    /// Stops the daemon until [`continue_running`](Self::continue_running).
    pub fn suspend(&self) {
        processes::send_signal(self.pid(), Signal::SIGSTOP);
        self.wait_stopped();
    }

    /// Returns whether the daemon is stopped now.
    pub fn is_stopped(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    }

    /// Resumes a stopped daemon.
    pub fn continue_running(&self) {
        processes::send_signal(self.pid(), Signal::SIGCONT);
    }

    /// Waits until the daemon is killed from elsewhere.
    ///
    /// # Panics
    ///
    /// Panics if it is not.
    pub fn wait_killed(mut self) {
        assert!(processes::wait_gone(self.pid(), PATIENCE), "no one kills the daemon");
        self.child.wait().expect("the daemon can be waited for");
    }

    /// Asks the daemon to stop, as a service manager does, and returns its exit status.
    pub fn stop(mut self) -> ExitStatus {
        self.terminate()
    }

    fn terminate(&mut self) -> ExitStatus {
        processes::send_signal(self.pid(), Signal::SIGTERM);
        if !processes::wait_gone(self.pid(), PATIENCE) {
            processes::send_signal(self.pid(), Signal::SIGKILL);
        }
        self.child.wait().expect("the daemon can be waited for")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            self.terminate();
        }
    }
}
