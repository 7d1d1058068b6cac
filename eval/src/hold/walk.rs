//! Finds living descendants in the table of processes, and ends them.
//!
//! A walk is a race against processes that fork: whoever calls it repeats it until nothing is left.

use std::collections::{HashMap, HashSet};
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A living process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    pid: i32,
    parent: i32,
    /// Since boot, in ticks: tells a process from a later one with the same number.
    started: u64,
}

/// Kills everything that descends from a process, as it is at this moment, and returns how many there were.
pub(super) fn kill_below(ancestor: i32) -> usize {
    let table = entries();
    let below = below(ancestor, &table);
    below.iter().filter(|entry| signal(**entry, Signal::KILL)).count()
}

/// Kills every process whose environment holds a text, as it is at this moment, and returns how many there were.
pub(super) fn kill_marked(mark: &str) -> usize {
    let holds = |entry: &Entry| {
        let environment = fs::read(format!("/proc/{}/environ", entry.pid)).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    entries().into_iter().filter(holds).filter(|entry| signal(*entry, Signal::KILL)).count()
}

/// Kills a process.
pub(super) fn kill(pid: i32) {
    if let Some(entry) = entry(pid) {
        signal(entry, Signal::KILL);
    }
}

/// Asks a child of the caller to end.
pub(super) fn ask(pid: i32) {
    if let Some(entry) = entry(pid) {
        signal(entry, Signal::TERM);
    }
}

/// The descriptor is opened first: if the process is still the same after that, it is the one that gets the signal.
fn signal(entry: Entry, signal: Signal) -> bool {
    let descriptor = Pid::from_raw(entry.pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let is_same = |now: Entry| now.started == entry.started;
    match descriptor {
        Some(process) if self::entry(entry.pid).is_some_and(is_same) => pidfd_send_signal(process, signal).is_ok(),
        _ => false,
    }
}

fn below(ancestor: i32, table: &[Entry]) -> Vec<Entry> {
    let mut children: HashMap<i32, Vec<Entry>> = HashMap::new();
    for entry in table {
        children.entry(entry.parent).or_default().push(*entry);
    }
    let (mut found, mut seen, mut next) = (Vec::new(), HashSet::from([ancestor]), vec![ancestor]);
    while let Some(parent) = next.pop() {
        for child in children.get(&parent).into_iter().flatten().filter(|child| seen.insert(child.pid)) {
            found.push(*child);
            next.push(child.pid);
        }
    }
    found
}

fn entries() -> Vec<Entry> {
    let Ok(folder) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = folder.filter_map(|item| item.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(entry).collect()
}

fn entry(pid: i32) -> Option<Entry> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name of a program stands in brackets and may hold anything, brackets included.
fn parse(pid: i32, stat: &str) -> Option<Entry> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Entry { pid, parent: fields.get(1)?.parse().ok()?, started: fields.get(19)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_pass_for_a_parent() {
        let stat = format!("7 (a) S 1 (b)) S 5 {} 99 0", vec!["0"; 17].join(" "));
        assert_eq!(parse(7, &stat), Some(Entry { pid: 7, parent: 5, started: 99 }));
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_a_circle_ends() {
        let entry = |pid, parent| Entry { pid, parent, started: 0 };
        let table = [entry(2, 1), entry(3, 2), entry(4, 3), entry(5, 1), entry(6, 7), entry(7, 6)];
        let mut pids: Vec<i32> = below(2, &table).iter().map(|entry| entry.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [3, 4]);
        assert_eq!(below(6, &table).len(), 1);
    }
}
