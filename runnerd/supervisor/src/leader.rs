//! Starts the program itself, the leader of everything that will descend from it.
//!
//! Holds the one piece of unsafe code of this module: what must happen between fork and exec.

use std::{
    io,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::process::CommandExt as _,
    },
    process::{Command, Stdio},
};

use nix::{
    errno::Errno,
    libc,
    sys::{
        prctl,
        signal::{SigHandler, SigSet, Signal, signal},
    },
    unistd::{Pid, getpid, getppid, setsid},
};

use crate::{cgroup::ControlGroup, mark, wire::ShimOrder};

/// What a leader is started with.
pub(crate) struct LeaderPlan<'a> {
    pub order: &'a ShimOrder,
    pub stdin: OwnedFd,
    /// Its standard output and standard error.
    pub outputs: [BorrowedFd<'a>; 2],
    /// The control group in which it starts.
    pub group: Option<&'a ControlGroup>,
}

/// Starts the ordered program.
///
/// It starts in the caller's folder, leads its own session without a terminal, and has no descriptors except 0, 1 and
/// 2, provided that all others of the caller are closed on exec.
pub(crate) fn start_leader(plan: LeaderPlan<'_>) -> io::Result<Pid> {
    let LeaderPlan { order, stdin, outputs: [output, error], group } = plan;
    let mut command = Command::new(&order.program);
    if let Some((name, arguments)) = order.argv.split_first() {
        command.arg0(name).args(arguments);
    }
    command
        .env_clear()
        .envs(order.env.iter().map(|(name, value)| (name, value)))
        .env(mark::VARIABLE, &order.mark)
        .stdin(Stdio::from(stdin))
        .stdout(output.try_clone_to_owned()?)
        .stderr(error.try_clone_to_owned()?);
    let group = group.map(ControlGroup::try_clone).transpose()?;
    let parent = getpid();
    prepare_child(&mut command, move || {
        group.as_ref().map_or(Ok(()), ControlGroup::enter)?;
        detach_from_parent(parent)
    });
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).expect("BUG: the kernel's process numbers are positive i32");
    Ok(Pid::from_raw(pid))
}

/// Registers what the new process does before it executes the program.
#[expect(unsafe_code, reason = "a session, the death signal and signal dispositions are set between fork and exec")]
fn prepare_child(command: &mut Command, mut detach: impl FnMut() -> nix::Result<()> + Send + Sync + 'static) {
    // SAFETY: shim and init have one thread, which the shim has made sure of before it forked, so the fork holds no
    // lock that another thread took; `detach` only makes system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            detach()?;
            for disposition in Signal::iterator() {
                // Refused for SIGKILL and SIGSTOP, which have no other. An ignored signal would be inherited.
                // SAFETY: the default needs no handler.
                let _ = signal(disposition, SigHandler::SigDfl);
            }
            for disposition in libc::SIGRTMIN()..=libc::SIGRTMAX() {
                // SAFETY: the default needs no handler.
                libc::signal(disposition, libc::SIG_DFL);
            }
            SigSet::empty().thread_set_mask()?;
            Ok(())
        });
    }
}

/// Leaves the parent's session, but not its lifetime: the leader dies with its parent, even if that died before this
/// line.
fn detach_from_parent(parent: Pid) -> nix::Result<()> {
    setsid()?;
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    if getppid() == parent { Ok(()) } else { Err(Errno::ESRCH) }
}
