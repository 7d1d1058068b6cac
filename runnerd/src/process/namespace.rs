//! PID namespaces: what is started in one sees no process outside of it, and dies with its first process.
//!
//! The calls only; the first process itself is in `init`.

use std::{fs, io};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
    unistd::{getegid, geteuid},
};
use serde::{Deserialize, Serialize};

/// How a PID namespace is had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Namespaces {
    /// By privilege.
    Privileged,
    /// Inside a user namespace in which the user is itself and nobody else: set-user-id programs have no effect there,
    /// and files of all others seem to belong to `nobody`.
    WithUser,
}

/// Makes the namespaces for the caller's next child, which will be the first process there.
///
/// The caller must be dumpable, or the files that map users are not its own.
pub(super) fn unshare_for_child(namespaces: Namespaces) -> io::Result<()> {
    match namespaces {
        Namespaces::Privileged => Ok(unshare(CloneFlags::CLONE_NEWPID)?),
        Namespaces::WithUser => {
            let (user, group) = (geteuid(), getegid());
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID)?;
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
            fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
        }
    }
}

/// Gives the calling process, the first of its PID namespace, mounts of its own, and among them the `/proc` of that
/// namespace. Mounts that are made outside later still appear; those made inside do not leave.
pub(super) fn mount_own_proc() -> nix::Result<()> {
    const NOTHING: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_SLAVE, NOTHING)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, NOTHING)
}
