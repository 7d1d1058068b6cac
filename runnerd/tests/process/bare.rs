//! The control of the kill tests: the same programs under a parent that kills only its direct child.
//!
//! A kill test proves something only if its program would survive a weaker kill.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use crate::kit::{WatchedProcess, agent};

/// A program without a shim.
pub(crate) struct BareProgram {
    child: Child,
    processes: Vec<WatchedProcess>,
}

impl BareProgram {
    /// Starts it and waits until `count` processes are ready.
    pub(crate) fn start(call: &str, count: usize) -> Self {
        let argv = agent(call);
        let mut child =
            Command::new(&argv[0]).args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let processes = lines.filter_map(|line| WatchedProcess::from_line(&line.unwrap())).take(count).collect();
        Self { child, processes }
    }

    /// Kills the program itself, and returns how many processes survive.
    pub(crate) fn left_after_kill(mut self) -> usize {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.count_left()
    }

    /// Lets the program exit, and returns how many processes survive.
    pub(crate) fn left_after_end(mut self) -> usize {
        self.child.wait().unwrap();
        self.count_left()
    }

    fn count_left(&self) -> usize {
        let left: Vec<&WatchedProcess> = self.processes.iter().filter(|process| !process.is_dead()).collect();
        for process in &left {
            process.kill();
        }
        left.len()
    }
}
