//! How daemon and shim shield themselves. Nothing here sends a signal.

use std::{
    fs::File,
    io::Read as _,
    os::{fd::AsFd, unix::fs::FileExt as _},
};

use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    sys::{
        prctl,
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
    },
};

/// How much sooner than others a contained program is taken when the system runs out of memory.
const OOM_EXTRA: i32 = 500;
/// The kernel's upper bound.
const OOM_MAX: i32 = 1000;

/// Shields the daemon, before it has a second thread.
///
/// A write beyond the limit on file sizes then fails instead of ending the process, and other processes of the same
/// user see neither its environment nor its descriptors, the lines to its shims among them.
pub fn shield_daemon() -> nix::Result<()> {
    prctl::set_dumpable(false)?;
    SigSet::from(Signal::SIGXFSZ).thread_block()
}

/// Shields the shim from signals that ask a process to end, and returns the descriptor that tells of ended children.
pub(crate) fn shield_shim() -> nix::Result<SignalFd> {
    SigSet::all().thread_set_mask()?;
    SignalFd::with_flags(&SigSet::from(Signal::SIGCHLD), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// Makes writes return instead of waiting.
pub(crate) fn set_nonblocking(fd: &impl AsFd) -> nix::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).map(drop)
}

/// The caller's place among those that the system ends when memory runs out: raised while a child is born that is to
/// inherit it. As far as the system allows.
pub(crate) struct OomScore {
    /// Opened before the process is closed to others, which also takes this file from it.
    file: Option<(File, i32)>,
}

impl OomScore {
    pub(crate) fn open() -> Self {
        let open = || {
            let mut file = File::options().read(true).write(true).open("/proc/self/oom_score_adj").ok()?;
            let mut text = String::new();
            file.read_to_string(&mut text).ok()?;
            Some((file, text.trim().parse().ok()?))
        };
        Self { file: open() }
    }

    pub(crate) fn raise(&self) {
        self.set(OOM_EXTRA);
    }

    pub(crate) fn restore(&self) {
        self.set(0);
    }

    fn set(&self, extra: i32) {
        if let Some((file, own)) = &self.file {
            let _ = file.write_at((own + extra).min(OOM_MAX).to_string().as_bytes(), 0);
        }
    }
}
