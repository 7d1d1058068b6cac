//! The control of tests about ending processes: the same program without a runner, of which only the leader is killed.
//!
//! Such a test proves something only if doing less than the product does would leave something alive.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc;
use std::thread;

use nix::sys::signal::Signal;

use crate::processes;
use crate::{Home, PATIENCE, Repo};

/// An unsupervised program of `misbehave.py` in its own home. On drop, its remaining processes are killed.
#[derive(Debug)]
pub struct UnsupervisedProgram {
    child: Child,
    repo: Repo,
    home: Home,
}

impl UnsupervisedProgram {
    /// Starts a program and waits until it says that `count` of its processes are ready.
    ///
    /// # Panics
    ///
    /// Panics if they do not become ready.
    pub fn start(behaviour: &str, count: usize) -> Self {
        let home = Home::new();
        let repo = home.repo("bare");
        let mut command = repo.command("python3");
        command.arg(repo.script().folder().join("misbehave.py")).args(behaviour.split_whitespace());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("python3 can be started");
        let output = child.stdout.take().expect("BUG: standard output is a pipe");
        let bare = Self { child, repo, home };
        await_ready(output, count);
        bare
    }

    /// Kills the program itself and returns whether any of its processes is still alive.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be killed.
    pub fn leaks_after_kill(&mut self) -> bool {
        self.child.kill().expect("the program can be killed");
        self.leaks_after_end()
    }

    /// Lets the program end on its own and returns whether any of its processes is still alive.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be waited for.
    pub fn leaks_after_end(&mut self) -> bool {
        self.child.wait().expect("the program can be waited for");
        self.repo.script().is_any_alive()
    }
}

impl Drop for UnsupervisedProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in self.home.processes() {
            processes::send_signal(pid, Signal::SIGKILL);
            processes::wait_gone(pid, PATIENCE);
        }
    }
}

fn await_ready(output: ChildStdout, count: usize) {
    let (sender, ready) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        // Keep reading: a program whose output pipe is closed would die of it.
        for _ in lines.filter(|line| line.starts_with("PID ")) {
            let _ = sender.send(());
        }
    });
    for _ in 0..count {
        ready.recv_timeout(PATIENCE).expect("the program gets ready");
    }
}
