//! PID namespaces: a program started in one sees no process outside, and dies with the namespace's first process.
//!
//! Mounts made here belong to the namespace alone. The first process itself is in `init`.

use std::{fs, io, path::Path};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
    unistd::{AccessFlags, access, getegid, geteuid},
};
use serde::{Deserialize, Serialize};

/// Mount options of the file system that covers a folder: no space for anything but its root.
const EMPTY_TMPFS_OPTIONS: &str = "mode=0555,size=4k,nr_inodes=1";

const NOTHING: Option<&str> = None;

/// How a PID namespace is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NamespaceMode {
    /// With the privileges of root.
    Privileged,
    /// Inside a user namespace that maps only the user: set-user-id programs have no effect there, and files of all
    /// others seem to belong to `nobody`.
    WithUser,
}

/// Creates the namespaces for the caller's next child, which will be the first process there.
///
/// The caller must be dumpable, or it does not own the files that map users.
pub(crate) fn unshare_for_child(namespaces: NamespaceMode) -> io::Result<()> {
    match namespaces {
        NamespaceMode::Privileged => Ok(unshare(CloneFlags::CLONE_NEWPID)?),
        NamespaceMode::WithUser => {
            let user = geteuid();
            let group = getegid();
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID)?;
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
            fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
        }
    }
}

/// Gives the calling process, the first of its PID namespace, its own mounts, including the `/proc` of that namespace.
/// Later outside mounts still appear inside; inside mounts do not appear outside.
pub(crate) fn mount_own_proc() -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_SLAVE, NOTHING)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, NOTHING)
}

/// Covers a folder, whatever path leads to it, with an empty read-only one, in the mounts of the calling process.
///
/// A process without privileges cannot remove the cover. In its own user namespace, a program gets copies of all
/// mounts, which the kernel locks together. A mount point cannot be renamed, but a folder above it could be, and
/// another one put in its place for the daemon to find. The folders above are therefore bound to themselves, after the
/// cover, so that it is in the copies. The caller's current folder still refers to the mounts from before and must be
/// entered again.
pub(crate) fn cover_folder(folder: &Path, namespaces: NamespaceMode) -> nix::Result<()> {
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("none"), folder, Some("tmpfs"), flags, Some(EMPTY_TMPFS_OPTIONS))?;
    match namespaces {
        // Root can remove any mount.
        NamespaceMode::Privileged => Ok(()),
        NamespaceMode::WithUser => {
            folder.ancestors().skip(1).take_while(|above| can_be_renamed(above)).try_for_each(bind_to_itself)
        }
    }
}

/// Checked with the rights of the user, not with those that the first process has in its namespace.
fn can_be_renamed(folder: &Path) -> bool {
    folder.parent().is_some_and(|parent| access(parent, AccessFlags::W_OK).is_ok())
}

fn bind_to_itself(folder: &Path) -> nix::Result<()> {
    mount(Some(folder), folder, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)
}
