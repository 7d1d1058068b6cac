//! PID namespaces: what is started in one sees no process outside of it, and dies with its first process.
//!
//! Mounts that are made here are those of the namespace alone. The first process itself is in `init`.

use std::{fs, io, path::Path};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
    unistd::{AccessFlags, access, getegid, geteuid},
};
use serde::{Deserialize, Serialize};

/// Bytes and files of the file system that covers a folder: none but its root.
const EMPTY_TMPFS_OPTIONS: &str = "mode=0555,size=4k,nr_inodes=1";

const NOTHING: Option<&str> = None;

/// How a PID namespace is had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NamespaceMode {
    /// By privilege.
    Privileged,
    /// Inside a user namespace in which the user is itself and nobody else: set-user-id programs have no effect there,
    /// and files of all others seem to belong to `nobody`.
    WithUser,
}

/// Makes the namespaces for the caller's next child, which will be the first process there.
///
/// The caller must be dumpable, or the files that map users are not its own.
pub(crate) fn unshare_for_child(namespaces: NamespaceMode) -> io::Result<()> {
    match namespaces {
        NamespaceMode::Privileged => Ok(unshare(CloneFlags::CLONE_NEWPID)?),
        NamespaceMode::WithUser => {
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
pub(crate) fn mount_own_proc() -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_SLAVE, NOTHING)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, NOTHING)
}

/// Covers a folder, whatever name leads to it, with an empty one that nobody can write to, in the mounts of the calling
/// process.
///
/// Whoever has no privileges here cannot take the cover away. In a user namespace of its own a program gets copies of all
/// mounts, and the kernel locks those together. A mount point cannot be renamed, but a folder above it could be, with
/// another one put in its place for the daemon to find: so those above, too, are bound to themselves, after the cover, so
/// that it is in the copies. The caller's folder is still below the mounts from before and must be entered anew.
pub(crate) fn cover_folder(folder: &Path, namespaces: NamespaceMode) -> nix::Result<()> {
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("none"), folder, Some("tmpfs"), flags, Some(EMPTY_TMPFS_OPTIONS))?;
    match namespaces {
        // Root can take any mount away.
        NamespaceMode::Privileged => Ok(()),
        NamespaceMode::WithUser => folder.ancestors().skip(1).take_while(|above| can_be_renamed(above)).try_for_each(bind_to_itself),
    }
}

/// Asked with the rights of the user, not with those that the first process has in its namespace.
fn can_be_renamed(folder: &Path) -> bool {
    folder.parent().is_some_and(|parent| access(parent, AccessFlags::W_OK).is_ok())
}

fn bind_to_itself(folder: &Path) -> nix::Result<()> {
    mount(Some(folder), folder, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)
}
