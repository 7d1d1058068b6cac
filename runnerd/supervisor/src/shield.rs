//! How daemon and shim protect themselves. Nothing here sends a signal.

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

/// Added to the out-of-memory score of a contained program, so that it is killed before others.
const OOM_EXTRA: i32 = 500;
/// The kernel's upper bound.
const OOM_MAX: i32 = 1000;

/// Shields the daemon, before it has a second thread.
///
/// A write beyond the file size limit then fails instead of killing the process, and other processes of the same user
/// see neither its environment nor its descriptors, which include the lines to its shims.
pub fn shield_daemon() -> nix::Result<()> {
    prctl::set_dumpable(false)?;
    SigSet::from(Signal::SIGXFSZ).thread_block()
}

/// Shields the shim from signals that ask a process to exit, and returns the descriptor that reports exited children.
pub(crate) fn shield_shim() -> nix::Result<SignalFd> {
    SigSet::all().thread_set_mask()?;
    SignalFd::with_flags(&SigSet::from(Signal::SIGCHLD), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// Makes writes return instead of blocking.
pub(crate) fn set_nonblocking(fd: &impl AsFd) -> nix::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).map(drop)
}

/// The caller's out-of-memory score: raised while a child that is to inherit it is forked, as far as the system allows.
pub(crate) struct OomScore {
    /// Opened before the process becomes non-dumpable, after which it cannot open this file either.
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
