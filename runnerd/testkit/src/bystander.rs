//! A process that is unrelated to any run and must outlive all of them.

use std::fs;
use std::process::{Child, Command, Stdio};

use nix::sys::prctl;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

/// Attempts to get a process id before another process takes it.
const MAX_TRIES: u32 = 200;

/// A process unrelated to the daemon. It is killed on drop.
#[derive(Debug)]
pub struct BystanderProcess {
    child: Child,
}

impl BystanderProcess {
    /// Makes this process a subreaper, so that it notices when the process id of an orphan is free again.
    ///
    /// # Panics
    ///
    /// Panics if the system refuses.
    pub fn become_subreaper() {
        prctl::set_child_subreaper(true).expect("a process can be a subreaper");
    }

    /// Starts a bystander with the process id of a dead orphan, once that id is free; with any other id if the system
    /// does not let the caller choose.
    ///
    /// # Panics
    ///
    /// Panics if many attempts fail to get the id.
    pub fn with_pid(pid: u32) -> Self {
        let orphan = i32::try_from(pid).expect("BUG: a process id is an i32");
        let _ = waitpid(Pid::from_raw(orphan), None);
        for _ in 0..MAX_TRIES {
            let is_chosen = fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).is_ok();
            let bystander = Self::start();
            if !is_chosen || bystander.child.id() == pid {
                return bystander;
            }
        }
        panic!("the number {pid} cannot be had");
    }

    /// Returns whether the process is alive.
    ///
    /// # Panics
    ///
    /// Panics if its status cannot be read.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("a child can be looked at").is_none()
    }

    fn start() -> Self {
        let mut command = Command::new("/bin/sleep");
        command
            .arg("600")
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self { child: command.spawn().expect("a process can be started") }
    }
}

impl Drop for BystanderProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
