//! Starts the program itself, the leader of everything that will descend from it.
//!
//! Holds the one piece of unsafe code of this module: what must happen between fork and exec.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::process::CommandExt as _,
    },
    process::{ChildStdin, Command, Stdio},
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    sys::{
        prctl,
        signal::{SigHandler, SigSet, Signal, signal},
    },
    unistd::{Pid, getpid, getppid, setsid},
};

use super::{mark, wire::Order};

/// A program that runs.
pub(super) struct Leader {
    pub pid: Pid,
    /// Its standard input, which never blocks.
    pub stdin: ChildStdin,
}

/// Starts the ordered program with `output` as its standard output and standard error.
///
/// It starts in the caller's folder, is the leader of a session of its own, without a terminal, and holds no descriptor
/// but 0, 1 and 2, provided that every other one of the caller's is closed on exec.
pub(super) fn start(order: &Order, output: BorrowedFd<'_>) -> io::Result<Leader> {
    let mut command = Command::new(&order.program);
    if let Some((name, arguments)) = order.argv.split_first() {
        command.arg0(name).args(arguments);
    }
    command
        .env_clear()
        .envs(order.env.iter().map(|(name, value)| (name, value)))
        .env(mark::VARIABLE, &order.mark)
        .stdin(Stdio::piped())
        .stdout(output.try_clone_to_owned()?)
        .stderr(output.try_clone_to_owned()?);
    let shim = getpid();
    prepare(&mut command, move || detach(shim));
    let mut child = command.spawn()?;
    let stdin = child.stdin.take().expect("BUG: standard input is a pipe");
    set_nonblocking(stdin.as_fd())?;
    let pid = i32::try_from(child.id()).expect("BUG: the kernel's process numbers are positive i32");
    Ok(Leader { pid: Pid::from_raw(pid), stdin })
}

fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

/// Registers what the new process does before it becomes the program.
#[expect(unsafe_code, reason = "a session, the death signal and signal dispositions are set between fork and exec")]
fn prepare(command: &mut Command, mut detach: impl FnMut() -> nix::Result<()> + Send + Sync + 'static) {
    // SAFETY: the shim has one thread, so the fork holds no lock that another thread took; `detach` makes system calls
    // alone and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            detach()?;
            for disposition in Signal::iterator() {
                // Refused for SIGKILL and SIGSTOP, which have no other. An ignored signal would be inherited.
                // SAFETY: the default needs no handler.
                let _ = signal(disposition, SigHandler::SigDfl);
            }
            SigSet::empty().thread_set_mask()?;
            Ok(())
        });
    }
}

/// Leaves the shim's session, but not its life: the leader dies with the shim, also if the shim died before this line.
fn detach(shim: Pid) -> nix::Result<()> {
    setsid()?;
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    if getppid() == shim { Ok(()) } else { Err(Errno::ESRCH) }
}
