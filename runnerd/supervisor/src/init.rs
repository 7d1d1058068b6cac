//! The first process of a PID namespace, a child of the shim: starts the leader, reaps orphans, and reports how the
//! leader ended. When it dies, the kernel kills all others in the namespace.
//!
//! It decides nothing: commands, deadline and kill are up to the shim.

use std::{
    env, io,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::Path,
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::{
        prctl,
        signal::Signal,
        socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair},
    },
    unistd::{ForkResult, Pid, fork, getpid},
};
use rustix::process::{WaitOptions, wait};
use serde::{Deserialize, Serialize};

use crate::{
    cgroup::ControlGroup,
    leader::{self, LeaderPlan},
    namespace,
    pidfd::PidFd,
    shim, table,
    wire::{self, EndCause, ShimOrder, StartStep},
};

/// Size limit in bytes of a message from init.
const MAX_MESSAGE: usize = 256;

/// The first process of a program's namespace, as seen by the shim.
pub(crate) struct InitProcess {
    pub pid: Pid,
    messages: OwnedFd,
}

/// One datagram from init to shim.
#[derive(Debug, Serialize, Deserialize)]
enum InitMessage {
    /// The leader is running; its process id inside the namespace.
    Started { leader: i32 },
    /// Nothing was started.
    Refused { step: StartStep, errno: i32 },
    /// The leader ended.
    Ended(EndCause),
}

/// Starts the first process of the namespaces that were prepared for the caller's next child, and the leader through
/// it.
///
/// The second value is the leader's process id outside; `None` if it had ended by the time it was looked up.
pub(crate) fn start_init(plan: LeaderPlan<'_>) -> Result<(InitProcess, Option<Pid>), (StartStep, io::Error)> {
    let in_namespace = |error: io::Error| (StartStep::Namespace, error);
    let (messages, sender) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
        .map_err(|errno| in_namespace(errno.into()))?;
    let shim = PidFd::open(getpid().as_raw(), || true).map_err(in_namespace)?.expect("BUG: the caller is alive");
    let group = plan.group;
    let pid = fork_into(group, |group| init_main(LeaderPlan { group, ..plan }, &shim, &sender));
    let pid = pid.map_err(|errno| in_namespace(errno.into()))?;
    drop(sender);
    let init = InitProcess { pid, messages };
    match init.next_message(MsgFlags::empty()) {
        Some(InitMessage::Started { leader }) => {
            let outside = number_outside(pid, leader);
            Ok((init, outside))
        }
        Some(InitMessage::Refused { step, errno }) => Err((step, io::Error::from_raw_os_error(errno))),
        Some(InitMessage::Ended(_)) | None => Err(in_namespace(Errno::ESRCH.into())),
    }
}

impl InitProcess {
    /// Returns how the leader ended, once.
    pub(crate) fn leader_exit(&self) -> Option<EndCause> {
        match self.next_message(MsgFlags::MSG_DONTWAIT)? {
            InitMessage::Ended(cause) => Some(cause),
            InitMessage::Started { .. } | InitMessage::Refused { .. } => None,
        }
    }

    /// Becomes readable when [`leader_exit`](Self::leader_exit) has something to return.
    pub(crate) fn messages(&self) -> &OwnedFd {
        &self.messages
    }

    fn next_message(&self, flags: MsgFlags) -> Option<InitMessage> {
        let mut word = [0; MAX_MESSAGE];
        loop {
            match recv(self.messages.as_raw_fd(), &mut word, flags) {
                Err(Errno::EINTR) => {}
                Ok(length) => return serde_json::from_slice(&word[..length]).ok(),
                Err(_) => return None,
            }
        }
    }
}

/// Runs `child` in a forked process that exits with its result; `child` receives the group that it must still enter.
#[expect(
    unsafe_code,
    reason = "the first process of a namespace must be forked, and must not run the parent's cleanup"
)]
fn fork_into<'g>(
    group: Option<&'g ControlGroup>,
    child: impl FnOnce(Option<&'g ControlGroup>) -> i32,
) -> nix::Result<Pid> {
    let (forked, group) = match group.map(ControlGroup::fork) {
        Some(Ok(forked)) => (forked, None),
        // If the kernel or a filter lacks clone3, the child enters the group itself.
        // SAFETY: a shim has one thread, which it has made sure of, so no lock is held by another one, and the child may do
        // whatever the parent may.
        Some(Err(_)) | None => (unsafe { fork() }?, group),
    };
    match forked {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let code = child(group);
            // SAFETY: ends the process, and nothing else.
            unsafe { nix::libc::_exit(code) }
        }
    }
}

/// Runs the first process from its start to its exit code.
fn init_main(plan: LeaderPlan<'_>, shim: &PidFd, to_shim: &OwnedFd) -> i32 {
    match start_leader(plan, shim, to_shim) {
        Ok(leader) => {
            send_status(to_shim, &InitMessage::Started { leader: leader.as_raw() });
            reap_children(leader, to_shim);
            0
        }
        Err((step, error)) => {
            let errno = error.raw_os_error().unwrap_or(Errno::EINVAL as i32);
            send_status(to_shim, &InitMessage::Refused { step, errno });
            1
        }
    }
}

fn start_leader(plan: LeaderPlan<'_>, shim: &PidFd, to_shim: &OwnedFd) -> Result<Pid, (StartStep, io::Error)> {
    let in_namespace = |errno: Errno| (StartStep::Namespace, errno.into());
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(in_namespace)?;
    // In here, the process id of an outside parent cannot be queried.
    if shim.wait(Duration::ZERO) {
        return Err(in_namespace(Errno::ESRCH));
    }
    if let Some(group) = plan.group {
        group.enter().map_err(|errno| (StartStep::Cgroup, errno.into()))?;
    }
    let outputs = plan.outputs.map(|output| output.as_raw_fd());
    let open = [to_shim.as_raw_fd(), outputs[0], outputs[1], plan.stdin.as_raw_fd()];
    shim::close_all_but(&open).map_err(|error| (StartStep::Namespace, error))?;
    namespace::mount_own_proc().map_err(in_namespace)?;
    hide_folder(plan.order)?;
    let leader = leader::start_leader(LeaderPlan { group: None, ..plan }).map_err(|error| (StartStep::Exec, error))?;
    // Copies kept here would keep the output open after its last writer.
    for output in outputs {
        let _ = nix::unistd::close(output);
    }
    Ok(leader)
}

/// Hides a folder from everything started later, and enters the program's folder again among the new mounts.
fn hide_folder(order: &ShimOrder) -> Result<(), (StartStep, io::Error)> {
    let (Some(folder), Some(namespaces)) = (&order.hidden, order.namespaces) else { return Ok(()) };
    namespace::cover_folder(Path::new(folder), namespaces).map_err(|errno| (StartStep::Hide, errno.into()))?;
    env::set_current_dir(&order.cwd).map_err(|error| (StartStep::Folder, error))
}

/// Reaps children until none is left, and reports how the leader ended.
fn reap_children(leader: Pid, to_shim: &OwnedFd) {
    while let Ok(Some((pid, status))) = wait(WaitOptions::empty()) {
        if pid.as_raw_pid() == leader.as_raw() {
            send_status(to_shim, &InitMessage::Ended(EndCause::from_status(status)));
        }
    }
}

/// Sends a message to the shim. Errors are ignored: if the shim is gone, this process dies with it.
fn send_status(to: &OwnedFd, message: &InitMessage) {
    let _ = send(to.as_fd().as_raw_fd(), &wire::to_line(message), MsgFlags::MSG_NOSIGNAL);
}

/// Finds the leader's process id outside the namespace. Orphans become children of init, too: the id inside tells them
/// apart.
fn number_outside(init: Pid, inside: i32) -> Option<Pid> {
    let mut children = table::children(init.as_raw()).ok()?;
    children.find(|child| table::number_inside(child.pid) == Some(inside)).map(|child| Pid::from_raw(child.pid))
}
