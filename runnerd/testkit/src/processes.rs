//! Finds the processes that belong to a home by their environment, arguments or working directory.

use std::fs;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use memchr::memmem;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{Pid as RawPid, PidfdFlags, pidfd_open};

/// Returns the ids of live processes whose environment, arguments or working directory name the folder, except the
/// caller.
pub(crate) fn find_alive(folder: &Path) -> Vec<i32> {
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc").expect("the process table can be read");
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| *name != own)
        .filter_map(|name| name.parse().ok())
        .filter(|pid| belongs_to(*pid, folder))
        .collect()
}

fn belongs_to(pid: i32, folder: &Path) -> bool {
    let needle = folder.as_os_str().as_encoded_bytes();
    let names = |file: &str| {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        memmem::find(&text, needle).is_some()
    };
    // A process that is not dumpable still shows its arguments, but its environment only to root.
    names("environ")
        || names("cmdline")
        || fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
}

/// Whether a process is a shim; its executable has no file name.
pub(crate) fn is_shim(pid: i32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(b"__shim")
}

/// Whether a process runs the program started by this path and is not a shim made from it. The process's own arguments
/// decide: after a rebuild replaces the file, the running program has another path.
pub(crate) fn is_program(pid: i32, program: &Path) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).next() == Some(program.as_os_str().as_encoded_bytes()) && !is_shim(pid)
}

/// Describes a process for the message of a failed test.
pub(crate) fn describe_process(pid: i32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("{pid} `{}`", String::from_utf8_lossy(&line).replace('\0', " ").trim_end())
}

/// Sends a signal; a process that is gone already is not an error.
pub(crate) fn send_signal(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}

/// Waits until a process is gone; false if it is still there after `limit`.
pub(crate) fn wait_gone(pid: i32, limit: Duration) -> bool {
    let Some(pid) = RawPid::from_raw(pid) else { return true };
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let mut fds = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    let limit = PollTimeout::try_from(limit).expect("BUG: the limit is too long for poll");
    poll(&mut fds, limit).expect("a process can be polled") > 0
}

/// A stopped (SIGSTOP) process; dropping this resumes it.
#[derive(Debug)]
pub struct SuspendedProcess(i32);

impl SuspendedProcess {
    pub(crate) fn stop(pid: i32) -> Self {
        send_signal(pid, Signal::SIGSTOP);
        Self(pid)
    }
}

impl Drop for SuspendedProcess {
    fn drop(&mut self) {
        send_signal(self.0, Signal::SIGCONT);
    }
}
