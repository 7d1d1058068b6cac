//! Processes that belong to a home, found by what they carry of it: environment, arguments or working directory.

use std::fs;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use memchr::memmem;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{Pid as RawPid, PidfdFlags, pidfd_open};

/// Returns the ids of the live processes whose environment, arguments or working directory name the folder, but for the caller.
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
    // A process that hides shows its arguments all the same, but its environment to root alone.
    names("environ")
        || names("cmdline")
        || fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
}

/// Whether a process is a shim, which is made of a program that has no file.
pub(crate) fn is_shim(pid: i32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(b"__shim")
}

/// Whether a process is a program that was started by this path, and no shim that is made of it. What it says of itself counts:
/// a build that puts another file in the place of the program gives a process that runs another path.
pub(crate) fn is_program(pid: i32, program: &Path) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).next() == Some(program.as_os_str().as_encoded_bytes()) && !is_shim(pid)
}

/// Describes a process for the message of a failed test.
pub(crate) fn describe_process(pid: i32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("{pid} `{}`", String::from_utf8_lossy(&line).replace('\0', " ").trim_end())
}

/// Sends a signal; a process that is gone already is no failure.
pub(crate) fn send_signal(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}

/// Waits until a process is gone; false if it stays.
pub(crate) fn wait_gone(pid: i32, limit: Duration) -> bool {
    let Some(pid) = RawPid::from_raw(pid) else { return true };
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let mut fds = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    let limit = PollTimeout::try_from(limit).expect("BUG: the limit is too long for poll");
    poll(&mut fds, limit).expect("a process can be polled") > 0
}

/// A process that does nothing until this is dropped.
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
