//! Detects the death of processes from outside: a lock held by a program and all its descendants is free once none is
//! left.
//!
//! The kernel keeps track, whatever the processes do to session, parents, environment or name.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use runner_testkit::Home;

/// Shell prefix that makes every command after it hold the lock on `$kit/files/alive`.
pub(crate) const HOLD_LOCK: &str = "exec 9< \"$kit/files/alive\"; flock -s 9; ";
/// Polling interval for conditions that send no notification.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Waits until the lock is free and returns how long that took; `None` if it is still held after `limit`.
pub(crate) fn time_to_death(lock: &Path, limit: Duration) -> io::Result<Option<Duration>> {
    let began = Instant::now();
    let mut file = File::options().read(true).write(true).open(lock)?;
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(_) => return Ok(Some(began.elapsed())),
            Err((back, _)) if began.elapsed() < limit => file = back,
            Err(_) => return Ok(None),
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until a condition holds; returns false if it does not within `limit`.
pub(crate) fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < limit {
        if condition() {
            return true;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    false
}

/// Returns the live shims of a home.
pub(crate) fn find_shims(home: &Home) -> Vec<i32> {
    let is_shim = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"__shim")
    };
    home.processes().into_iter().filter(is_shim).collect()
}

/// Kills a process; no error if it is gone already.
pub(crate) fn kill_process(pid: i32) {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
}

/// Kills everything that belongs to a home and waits until it is gone.
pub(crate) fn kill_all(home: &Home) {
    wait_until(Duration::from_secs(10), || {
        let alive = home.processes();
        for pid in &alive {
            kill_process(*pid);
        }
        alive.is_empty()
    });
}

/// Returns the peak resident size of a process, in MiB.
///
/// # Panics
///
/// Panics if the process is gone.
pub(crate) fn peak_mib(pid: i32) -> f64 {
    f64::from(read_status(pid, "VmHWM:")) / 1024.0
}

/// Returns the resident size of a process, in MiB.
pub(crate) fn resident_mib(pid: i32) -> f64 {
    f64::from(read_status(pid, "VmRSS:")) / 1024.0
}

/// Reads a number from the process's `/proc/PID/status`; sizes are in KiB.
fn read_status(pid: i32, name: &str) -> u32 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is alive");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel tells it");
    line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("it is a number")
}

/// Returns the path of the script of misbehaving programs.
pub(crate) fn agent_script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../runnerd/tests/agents/agent.py")
}
