//! Whether a process descends from an iteration, determined from `/proc`.
//!
//! Signs, any of which suffices: a mark on the process itself (variable, limit, control group); the variable on an
//! ancestor; a supervising shim or this daemon among the ancestors; a PID namespace that is not the daemon's. That a
//! process cannot gain privileges is not a sign: it is true of many a person's shell. A process that sheds them all is
//! not recognized: this is a guard rail, not a boundary.

use std::io;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::{Pid, getpid};
use protocol::startup::MARK_VARIABLE;
use runner_process::{Mark, read_of_process as read, read_text_of_process as read_text};

/// Evidence that a peer is not a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentSign {
    /// It has a mark, or descends from a program of a run.
    Iteration,
    /// It is in another PID namespace than the daemon.
    OtherNamespace,
    /// It cannot be inspected.
    Unreadable,
}

/// First argument of the process that supervises an agent or a guard.
const SHIM_ARGUMENT: &[u8] = b"__shim";
/// Maximum number of ancestors that are followed.
const MAX_ANCESTORS: usize = 128;

/// Where a process comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessDescent {
    /// Not from an iteration.
    Outside,
    /// From an iteration, as far as can be determined.
    Inside(AgentSign),
    /// A process ended during the walk.
    Vanished,
}

/// Follows the ancestors of a process other than this one.
pub(super) fn trace_descent(peer: Pid) -> ProcessDescent {
    match is_in_own_namespace(peer) {
        Ok(true) => {}
        Ok(false) => return ProcessDescent::Inside(AgentSign::OtherNamespace),
        Err(_) => return classify_unreadable(peer),
    }
    // The limit and the group are inherited, so the peer has those of its ancestors.
    if Mark::is_any_on(peer.as_raw()) {
        return ProcessDescent::Inside(AgentSign::Iteration);
    }
    let mut pid = peer;
    for _ in 0..MAX_ANCESTORS {
        if pid == getpid() {
            return ProcessDescent::Inside(AgentSign::Iteration);
        }
        match has_own_sign(pid) {
            Ok(true) => return ProcessDescent::Inside(AgentSign::Iteration),
            Ok(false) => {}
            // An ancestor of another user cannot be part of an iteration; the peer itself can hide.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && pid != peer => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return ProcessDescent::Inside(AgentSign::Unreadable);
            }
            Err(_) => return classify_unreadable(pid),
        }
        match read_parent(pid) {
            Ok(Some(parent)) => pid = parent,
            Ok(None) => return ProcessDescent::Outside,
            Err(_) => return classify_unreadable(pid),
        }
    }
    ProcessDescent::Inside(AgentSign::Iteration)
}

/// Whether a process has as many process ids as this one: each PID namespace below that of `/proc` adds one.
fn is_in_own_namespace(pid: Pid) -> io::Result<bool> {
    Ok(namespace_depth(&read_text(pid, "status")?) == namespace_depth(&read_text("self", "status")?))
}

fn namespace_depth(status: &str) -> Option<usize> {
    Some(status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_ascii_whitespace().count())
}

/// Judges a process without a readable entry: either it ended, or `/proc` hides processes of other users.
fn classify_unreadable(pid: Pid) -> ProcessDescent {
    if kill(pid, None) == Err(Errno::EPERM) { ProcessDescent::Outside } else { ProcessDescent::Vanished }
}

fn has_own_sign(pid: Pid) -> io::Result<bool> {
    let arguments = read(pid, "cmdline")?;
    Ok(arguments.split(|byte| *byte == 0).nth(1) == Some(SHIM_ARGUMENT) || has_mark(&read(pid, "environ")?))
}

fn has_mark(environment: &[u8]) -> bool {
    let name = MARK_VARIABLE.as_bytes();
    environment
        .split(|byte| *byte == 0)
        .any(|entry| entry.strip_prefix(name).is_some_and(|value| value.first() == Some(&b'=')))
}

/// Returns the parent; `None` for the first process of the system or the namespace.
fn read_parent(pid: Pid) -> io::Result<Option<Pid>> {
    let stat = read(pid, "stat")?;
    let parent = parse_parent(&stat).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok((parent > 0).then(|| Pid::from_raw(parent)))
}

/// Parses the fourth field. The second is the program's name in parentheses and may hold any byte, further parentheses
/// included.
fn parse_parent(stat: &[u8]) -> Option<i32> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_parentheses_does_not_hide_the_parent() {
        assert_eq!(parse_parent(b"17 (a) R 1 (b) S 42 17 17 0"), Some(42));
        assert_eq!(parse_parent(b"17 (\xff) ) S 42 17 17 0"), Some(42));
        assert_eq!(parse_parent(b"17 (a"), None);
    }

    #[test]
    fn a_process_has_a_number_for_each_namespace() {
        assert_eq!(namespace_depth("Name:\ta\nNSpid:\t17\nNSsid:\t1\n"), Some(1));
        assert_eq!(namespace_depth("NSpid:\t17\t2\n"), Some(2));
        assert_eq!(namespace_depth("Name:\ta\n"), None);
        assert!(is_in_own_namespace(getpid()).unwrap());
    }

    #[test]
    fn only_the_variable_itself_is_a_mark() {
        assert!(has_mark(b"PATH=/bin\0RUNNERD_MARK=r1\0"));
        assert!(has_mark(b"RUNNERD_MARK="));
        assert!(!has_mark(b"X=RUNNERD_MARK=r1\0RUNNERD_MARKER=1\0"));
    }

    #[test]
    fn the_parent_of_this_process_is_the_one_that_the_system_names() {
        assert_eq!(read_parent(getpid()).unwrap(), Some(nix::unistd::getppid()));
    }
}
