//! How daemon and shim shield themselves. Nothing here sends a signal.

use nix::sys::{
    prctl,
    signal::{SigSet, Signal},
    signalfd::{SfdFlags, SignalFd},
};

/// Shields the daemon, before it has a second thread.
///
/// A write beyond the limit on file sizes then fails instead of ending the process, and other processes of the same
/// user see neither its environment nor its descriptors, the live pipes of shims among them.
pub fn shield_daemon() -> nix::Result<()> {
    prctl::set_dumpable(false)?;
    SigSet::from(Signal::SIGXFSZ).thread_block()
}

/// Shields the shim from signals that ask a process to end, and returns the descriptor that tells of ended children.
pub(super) fn shield_shim() -> nix::Result<SignalFd> {
    SigSet::all().thread_set_mask()?;
    SignalFd::with_flags(&SigSet::from(Signal::SIGCHLD), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}
