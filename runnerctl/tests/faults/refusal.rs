//! System calls of the daemon or of a shim that fail for a while, by attaching `strace` to the running process.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::stage::FaultStage;

/// Time limit for strace to detach.
const DETACH_LIMIT: Duration = Duration::from_secs(2);

/// Failing calls; they succeed again when this is dropped.
pub(crate) struct SyscallRefusal {
    strace: Child,
    /// Kept open: strace would die if it wrote to a closed pipe.
    _words: BufReader<ChildStderr>,
}

impl SyscallRefusal {
    /// Makes calls of these kinds fail with an error, in the daemon and all processes that it starts.
    pub(crate) fn start(stage: &FaultStage, calls: &str, error: &str) -> Self {
        Self::attach(stage.daemon().pid(), calls, &format!("error={error}"))
    }

    /// Applies strace options to calls of a process and all processes that it starts.
    pub(crate) fn attach(pid: i32, calls: &str, what: &str) -> Self {
        let mut command = Command::new("strace");
        command.args(["-f", "-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:{what}")]);
        command.args(["-o", "/dev/null"]).args(["-p", &pid.to_string()]);
        let mut strace = command.stderr(Stdio::piped()).spawn().expect("strace can be started");
        let mut words = BufReader::new(strace.stderr.take().expect("BUG: standard error is a pipe"));
        let is_attached = words.by_ref().lines().map_while(Result::ok).any(|line| line.contains("attached"));
        assert!(is_attached, "strace does not attach to the daemon");
        Self { strace, _words: words }
    }
}

impl Drop for SyscallRefusal {
    fn drop(&mut self) {
        // Detaches in an orderly way: a killed strace could leave a call without its result.
        if let Ok(pid) = i32::try_from(self.strace.id()) {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGINT);
        }
        let began = Instant::now();
        while matches!(self.strace.try_wait(), Ok(None))
            && is_traced(self.strace.id())
            && began.elapsed() < DETACH_LIMIT
        {
            thread::sleep(Duration::from_millis(20));
        }
        // If the daemon has died of it, there may be nothing left to detach from. And a thread that starts a program
        // cannot be stopped before its child continues, which waits for strace: the kernel detaches from both.
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}

/// Whether a process traces any thread.
fn is_traced(pid: u32) -> bool {
    let tracer = format!("\nTracerPid:\t{pid}\n");
    let list = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let threads = list("/proc".into()).flat_map(|process| list(process.join("task")));
    let mut states = threads.filter_map(|thread| fs::read_to_string(thread.join("status")).ok());
    states.any(|status| status.contains(&tracer))
}
