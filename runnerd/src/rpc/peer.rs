//! Who is at the other end of a connection: which user, and whether a person or a process inside an iteration.
//!
//! Decided once, when the connection is accepted; what each may call is in `access.rs`.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
use nix::unistd::{Pid, getpid};
use runner_process::read_text_of_process;
use tokio::net::UnixStream;

use super::ancestry::{self, AgentSign, ProcessDescent};

/// Number of walks that may be started because the processes changed meanwhile.
const MAX_WALKS: u32 = 3;

/// The process at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its user id.
    pub uid: u32,
    /// Its process id when it connected.
    pub pid: Option<i32>,
    /// What it may do.
    pub role: PeerRole,
    /// Evidence that it is not a person, if any.
    pub sign: Option<AgentSign>,
}

/// The rights of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerRole {
    /// May call everything.
    Person,
    /// May only read: it runs inside an iteration, or it cannot be determined whether it does.
    Agent,
}

impl Peer {
    /// Inspects the process that made the connection; reads `/proc`, which takes well under a millisecond.
    ///
    /// # Errors
    ///
    /// Fails if the system does not identify the peer.
    pub(super) fn from_stream(stream: &UnixStream) -> io::Result<Self> {
        let credentials = stream.peer_cred()?;
        let pid = credentials.pid().filter(|pid| *pid > 0);
        // A process outside the daemon's PID namespace and those below it has no process id here.
        let sign = pid.map_or(Some(AgentSign::OtherNamespace), |pid| find_sign(stream, Pid::from_raw(pid)));
        let role = if sign.is_none() { PeerRole::Person } else { PeerRole::Agent };
        Ok(Self { uid: credentials.uid(), pid, role, sign })
    }
}

fn find_sign(stream: &UnixStream, pid: Pid) -> Option<AgentSign> {
    if pid == getpid() {
        return None;
    }
    // Opened before the walk and checked after it, so that the process id cannot have been reused in between.
    let handle = getsockopt(stream, PeerPidfd);
    find_process_sign(pid).or_else(|| (!still_has_pid(pid, handle)).then_some(AgentSign::Unreadable))
}

/// Returns the evidence that a process other than this one is not a person's.
pub(super) fn find_process_sign(pid: Pid) -> Option<AgentSign> {
    let descent =
        (0..MAX_WALKS).map(|_| ancestry::trace_descent(pid)).find(|descent| *descent != ProcessDescent::Vanished);
    match descent {
        Some(ProcessDescent::Outside) => None,
        Some(ProcessDescent::Inside(sign)) => Some(sign),
        _ => Some(AgentSign::Unreadable),
    }
}

/// Whether the process that connected still has its process id.
fn still_has_pid(pid: Pid, handle: Result<OwnedFd, Errno>) -> bool {
    match handle {
        Ok(handle) => read_text_of_process("self", &format!("fdinfo/{}", handle.as_raw_fd()))
            .is_ok_and(|info| info.lines().any(|line| line.strip_prefix("Pid:").is_some_and(|is| is_pid(is, pid)))),
        // Kernels before 6.5 cannot tell.
        Err(error) => error == Errno::ENOPROTOOPT,
    }
}

fn is_pid(text: &str, pid: Pid) -> bool {
    text.trim().parse() == Ok(pid.as_raw())
}
