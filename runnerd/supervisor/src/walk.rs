//! Sends signals to all descendants of the calling process, found from parent to child.
//!
//! A walk races with processes that fork and exit, so nothing here claims to be complete: the shim repeats it until the
//! kernel says that no child is left. A process that loses its parent becomes a child of the caller, which is a
//! subreaper, or of a subreaper below it: it is still a descendant of the caller. If a control group or a namespace
//! does the killing, a walk counts before it, and verifies after it.

use std::collections::{HashMap, HashSet};

use nix::{
    sys::signal::{Signal as NixSignal, killpg},
    unistd::{Pid, getpid},
};
use rustix::process::Signal;

use crate::{
    pidfd::PidFd,
    table::{self, ProcessEntry},
};

/// Number of SIGTERM passes: a process born during one is seen by the next.
const TERM_PASSES: u32 = 3;

/// Asks the process group `group` and every other descendant except `spared`, once each, to exit.
///
/// SIGCONT follows, because a stopped process would not see the request. The group's leader must be an unreaped child
/// of the caller: otherwise the group id could have been reused.
pub(crate) fn terminate(group: Option<Pid>, spared: Option<Pid>) {
    if let Some(group) = group {
        // An empty group is not an error: its leader is a zombie.
        let _ = killpg(group, NixSignal::SIGTERM);
        let _ = killpg(group, NixSignal::SIGCONT);
    }
    let matches =
        |entry: &ProcessEntry| group.is_none_or(|group| entry.group != group.as_raw()) && !is_process(entry, spared);
    let mut pids = HashSet::new();
    for _ in 0..TERM_PASSES {
        let mut others = list_descendants();
        others.retain(|entry| matches(entry) && pids.insert((entry.pid, entry.started)));
        if others.is_empty() {
            break;
        }
        for entry in others {
            signal_process(&entry, &[Signal::TERM, Signal::CONT]);
        }
    }
}

/// Sends SIGINT to one descendant; SIGCONT follows, because a stopped process would not see it.
pub(crate) fn interrupt(process: Option<Pid>) {
    for entry in list_descendants().iter().filter(|entry| is_process(entry, process)) {
        signal_process(entry, &[Signal::INT, Signal::CONT]);
    }
}

fn is_process(entry: &ProcessEntry, pid: Option<Pid>) -> bool {
    pid.is_some_and(|pid| pid.as_raw() == entry.pid)
}

/// Returns the living descendants found in one pass.
pub(crate) fn list_descendants() -> Vec<ProcessEntry> {
    find_descendants(|_| ())
}

/// Kills every descendant found in one pass, and returns them.
///
/// A child is killed as soon as it is seen: processes that keep replacing themselves, each the orphan of the one
/// before, are too short-lived for anything later.
pub fn kill_descendants() -> Vec<ProcessEntry> {
    let own = getpid();
    let is_child = |entry: &ProcessEntry| entry.parent == own.as_raw();
    let found = find_descendants(|entry| {
        if is_child(entry) {
            // Its process id cannot be reused until the caller reaps it.
            let _ = nix::sys::signal::kill(Pid::from_raw(entry.pid), NixSignal::SIGKILL);
        }
    });
    for entry in found.iter().filter(|entry| !is_child(entry)) {
        signal_process(entry, &[Signal::KILL]);
    }
    found
}

/// Sends signals to a process if it is still the one that was seen. One that may not be signalled stays in the table,
/// where the caller sees it again.
pub fn signal_process(entry: &ProcessEntry, signals: &[Signal]) {
    let is_same = || table::entry(entry.pid).is_some_and(|now| now.started == entry.started);
    if let Ok(Some(process)) = PidFd::open(entry.pid, is_same) {
        for signal in signals {
            let _ = process.signal(*signal);
        }
    }
}

/// Finds the living descendants of the caller, and calls `at_once` for every process as soon as it is read, whether or
/// not it is a descendant.
///
/// A process that cannot be read now is read again in the next pass.
fn find_descendants(at_once: impl Fn(&ProcessEntry)) -> Vec<ProcessEntry> {
    let listed = |of| table::children(of).into_iter().flatten().inspect(&at_once).collect();
    if table::lists_children() {
        living_descendants(getpid(), listed)
    } else {
        living_descendants(getpid(), index_table(&at_once))
    }
}

/// Reads the entries of all processes once, and returns a lookup of the children of one.
fn index_table(at_once: impl Fn(&ProcessEntry)) -> impl FnMut(i32) -> Vec<ProcessEntry> {
    let mut children: HashMap<i32, Vec<ProcessEntry>> = HashMap::new();
    for entry in table::entries().into_iter().flatten().inspect(at_once) {
        children.entry(entry.parent).or_default().push(entry);
    }
    move |of| children.remove(&of).unwrap_or_default()
}

fn living_descendants(root: Pid, mut children: impl FnMut(i32) -> Vec<ProcessEntry>) -> Vec<ProcessEntry> {
    let mut found = Vec::new();
    let mut parents = vec![root.as_raw()];
    let mut seen = HashSet::from([root.as_raw()]);
    while let Some(parent) = parents.pop() {
        // A process that moves to another parent meanwhile may be seen twice.
        for entry in children(parent).into_iter().filter(|entry| seen.insert(entry.pid)) {
            parents.push(entry.pid);
            found.extend(Some(entry).filter(|entry| !entry.is_zombie));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        process::{Command, Stdio},
    };

    use super::*;

    fn process(pid: i32, parent: i32) -> ProcessEntry {
        ProcessEntry { pid, parent, group: pid, started: 0, is_zombie: false }
    }

    fn pids_below(root: i32, table: &[ProcessEntry]) -> Vec<i32> {
        let children = |parent| table.iter().copied().filter(|entry| entry.parent == parent).collect();
        let mut pids: Vec<i32> =
            living_descendants(Pid::from_raw(root), children).iter().map(|entry| entry.pid).collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn living_descendants_at_any_depth_are_found_and_relatives_are_not() {
        let mut zombie = process(7, 2);
        zombie.is_zombie = true;
        let table = [process(2, 1), process(3, 2), process(4, 3), process(5, 1), process(6, 5), zombie, process(8, 7)];
        assert_eq!(pids_below(2, &table), [3, 4, 8]);
    }

    #[test]
    fn table_with_a_circle_ends() {
        assert_eq!(pids_below(2, &[process(2, 3), process(3, 2)]), [3]);
    }

    #[test]
    fn lists_of_children_and_the_whole_table_show_the_same_descendants() {
        // The shell waits for a child, which waits for its own child.
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", "sh -c 'cat; :'; :"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut shell = shell.unwrap();
        shell.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        // The echo comes from the last of them.
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let root = Pid::from_raw(i32::try_from(shell.id()).unwrap());
        let listed = living_descendants(root, |of| table::children(of).unwrap().collect());
        let whole = living_descendants(root, index_table(|_| ()));
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(whole.len(), 2, "{whole:?}");
        assert_eq!(listed, whole);
    }
}
