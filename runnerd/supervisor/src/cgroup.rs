//! Control groups (version 2): one per program, killed at once by the kernel.
//!
//! Groups are created below the daemon's own, if the daemon may divide it. Their names identify the owner, so that
//! leftovers of a dead daemon are recognized. No controller is enabled: nothing is limited here.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use nix::{
    libc,
    unistd::{AccessFlags, ForkResult, Pid, access, geteuid, write},
};
use rustix::fs::getxattr;

use crate::clock::since_boot;
use crate::{
    mark::{Mark, digest_prefix},
    table,
};

/// Prefix of the names of all groups.
const PREFIX: &str = "runnerd-";
/// Pause between two checks of a group whose processes are exiting.
const PAUSE: Duration = Duration::from_millis(5);
/// Maximum depth of nested groups that are removed with a program's group.
const MAX_DEPTH: usize = 16;

/// Why a daemon cannot create groups.
#[derive(Debug, thiserror::Error)]
pub enum NoGroupPlace {
    /// The kernel has no control groups, or not of this version.
    #[error("the system has no control groups of version 2")]
    NoGroups,
    /// The list of mounts cannot be read.
    #[error("/proc/self/mountinfo: {0}")]
    Mounts(io::Error),
    /// The daemon's own group is not visible in the mounted hierarchy.
    #[error("the control group {group} of the daemon is not mounted")]
    NotMounted {
        /// Path of the group in the hierarchy.
        group: String,
    },
    /// The daemon's own group belongs to another user.
    #[error("{} is not writable for this user", folder.display())]
    NotWritable {
        /// Path of the group's folder.
        folder: PathBuf,
    },
    /// The daemon's own group belongs to the service manager.
    #[error("{} belongs to systemd and is not delegated", folder.display())]
    NotDelegated {
        /// Path of the group's folder.
        folder: PathBuf,
    },
}

/// The folder in which a daemon creates groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPlace {
    folder: PathBuf,
    /// Distinguishes this daemon's groups from those of others in the same folder.
    prefix: String,
}

impl GroupPlace {
    /// Finds the folder, or explains why there is none. `owner` is unique to the daemon on this machine.
    pub fn find(owner: &str) -> Result<Self, NoGroupPlace> {
        let (mount, folder) = find_own_group()?;
        check_delegation(&mount, &folder)?;
        Ok(Self { folder, prefix: format!("{PREFIX}{}", digest_prefix(owner, 6)) })
    }

    /// Returns the folder of the group for the program with this mark.
    pub fn group_of(&self, mark: &Mark) -> PathBuf {
        self.folder.join(format!("{}{}", self.prefix, group_suffix(mark)))
    }

    /// Kills and removes what an earlier process of the same daemon has left here, waiting at most `within`.
    pub fn kill_leftovers(&self, within: Duration) {
        let until = since_boot() + within;
        kill_and_remove_groups(&list_groups(&self.folder, |name| name.starts_with(&self.prefix)), until);
    }
}

/// Returns the folders of all groups with this mark below the caller's own group.
pub fn groups_of(mark: &Mark) -> Vec<PathBuf> {
    let Ok((_, folder)) = find_own_group() else { return Vec::new() };
    let suffix = group_suffix(mark);
    list_groups(&folder, |name| name.starts_with(PREFIX) && name.ends_with(&suffix))
}

/// Kills every process in these groups.
pub fn kill_groups(groups: &[PathBuf]) {
    for group in groups {
        kill(group);
    }
}

/// Kills every process in these groups, and removes those that are empty by `until` (time since boot).
pub fn kill_and_remove_groups(groups: &[PathBuf], until: Duration) {
    for group in groups {
        kill_and_remove(group, until);
    }
}

/// Whether a process is in the group of the program with this mark, wherever that group is.
pub(crate) fn is_in_group_of(mark: &Mark, pid: i32) -> bool {
    let suffix = group_suffix(mark);
    let is_its = |part: &str| part.starts_with(PREFIX) && part.ends_with(&suffix);
    path_of(&pid.to_string()).is_some_and(|path| path.split('/').any(is_its))
}

/// Whether a process is in the group of any program that the caller is not in.
pub(crate) fn is_in_any_group(pid: i32) -> bool {
    let own = path_of("self").unwrap_or_default();
    let is_foreign = |path: String| {
        let below = Path::new(&path).strip_prefix(&own).unwrap_or(Path::new(&path)).components();
        below.into_iter().any(|part| part.as_os_str().as_encoded_bytes().starts_with(PREFIX.as_bytes()))
    };
    path_of(&pid.to_string()).is_some_and(is_foreign)
}

/// The group of one program.
pub(crate) struct ControlGroup {
    folder: PathBuf,
    members: File,
}

impl ControlGroup {
    /// Creates the group; takes over an existing empty one.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let open = || {
            // Kernels before 5.14 have no such file.
            fs::metadata(folder.join("cgroup.kill"))?;
            File::options().write(true).open(folder.join("cgroup.procs"))
        };
        match open() {
            Ok(members) => Ok(Self { folder: folder.to_owned(), members }),
            Err(error) => {
                let _ = fs::remove_dir(folder);
                Err(error)
            }
        }
    }

    /// Opens the same group again.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { folder: self.folder.clone(), members: self.members.try_clone()? })
    }

    /// Moves the calling process, and thus its future children, into the group. Does not allocate.
    pub(crate) fn enter(&self) -> nix::Result<()> {
        write(&self.members, b"0").map(drop)
    }

    /// Forks a process that is in the group from the start.
    ///
    /// Entering it later takes until all processors have noticed: ten milliseconds and more.
    #[expect(unsafe_code, reason = "no library calls clone3")]
    pub(crate) fn fork(&self) -> io::Result<ForkResult> {
        const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
        let folder = File::open(&self.folder)?;
        let order = libc::clone_args {
            flags: CLONE_INTO_CGROUP,
            exit_signal: libc::SIGCHLD.unsigned_abs().into(),
            cgroup: folder.as_raw_fd().unsigned_abs().into(),
            pidfd: 0,
            child_tid: 0,
            parent_tid: 0,
            stack: 0,
            stack_size: 0,
            tls: 0,
            set_tid: 0,
            set_tid_size: 0,
        };
        // SAFETY: as for `fork`: the caller has one thread, which it has made sure of, and the child a copy of its memory.
        // The library does not learn the child's number, which it needs for locks and signals between threads alone.
        let number = unsafe { libc::syscall(libc::SYS_clone3, &raw const order, size_of::<libc::clone_args>()) };
        match i32::try_from(number) {
            Ok(0) => Ok(ForkResult::Child),
            Ok(child) if child > 0 => Ok(ForkResult::Parent { child: Pid::from_raw(child) }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Kills every process in the group.
    pub(crate) fn kill(&self) {
        kill(&self.folder);
    }

    /// Whether no process in the group is alive.
    pub(crate) fn is_empty(&self) -> bool {
        is_empty(&self.folder)
    }

    /// Returns the ids of the processes in the group, excluding nested groups.
    pub(crate) fn members(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Removes the group, which must be empty. If that fails, the next start of a daemon here removes it.
    pub(crate) fn remove(&self) {
        remove(&self.folder, MAX_DEPTH);
    }
}

fn kill(folder: &Path) {
    // A group that is gone needs no kill; processes of one that refuses it are found by the walk.
    let _ = File::options().write(true).open(folder.join("cgroup.kill")).and_then(|mut file| file.write_all(b"1"));
}

fn is_empty(folder: &Path) -> bool {
    match fs::read_to_string(folder.join("cgroup.events")) {
        Ok(events) => events.lines().any(|line| line == "populated 0"),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Removes a group with the groups that a program may have created inside it.
fn remove(folder: &Path, depth: usize) {
    if depth > 0 {
        for inner in list_groups(folder, |_| true) {
            remove(&inner, depth - 1);
        }
    }
    let _ = fs::remove_dir(folder);
}

fn kill_and_remove(folder: &Path, until: Duration) {
    kill(folder);
    while !is_empty(folder) && since_boot() < until {
        thread::sleep(PAUSE);
    }
    remove(folder, MAX_DEPTH);
}

fn list_groups(folder: &Path, is_selected: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let items = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = items.filter(|item| item.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter(|item| item.file_name().to_str().is_some_and(&is_selected)).map(|item| item.path()).collect()
}

fn group_suffix(mark: &Mark) -> String {
    format!("-{}", digest_prefix(mark.as_str(), 8))
}

/// Returns where control groups of version 2 are mounted, and the folder of the caller's own group there.
fn find_own_group() -> Result<(PathBuf, PathBuf), NoGroupPlace> {
    let path = path_of("self").ok_or(NoGroupPlace::NoGroups)?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(NoGroupPlace::Mounts)?;
    let mut found = mounts.lines().filter_map(parse_mount);
    found
        .find_map(|(root, mount)| {
            let below = Path::new(&path).strip_prefix(root).ok()?;
            let is_inside = !below.components().any(|part| part.as_os_str() == "..");
            is_inside.then(|| (mount.into(), Path::new(mount).join(below)))
        })
        .ok_or(NoGroupPlace::NotMounted { group: path })
}

/// Reads the path of a process in the version 2 hierarchy.
fn path_of(pid: &str) -> Option<String> {
    let groups = table::read_text(pid, "cgroup").ok()?;
    groups.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}

/// Parses a line of `mountinfo`: for a mount of version 2, returns its root and mount point.
fn parse_mount(line: &str) -> Option<(&str, &str)> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(3);
    kind.starts_with("cgroup2 ").then_some((fields.next()?, fields.next()?))
}

/// Checks that the group is the caller's: a service manager may empty or remove its own groups at any time.
fn check_delegation(mount: &Path, folder: &Path) -> Result<(), NoGroupPlace> {
    if !geteuid().is_root() {
        let is_writable = |path: &Path| access(path, AccessFlags::W_OK).is_ok();
        let is_ours = is_writable(folder) && is_writable(&folder.join("cgroup.procs"));
        return if is_ours { Ok(()) } else { Err(NoGroupPlace::NotWritable { folder: folder.to_owned() }) };
    }
    let is_delegated = |folder: &Path| {
        ["trusted.delegate", "user.delegate"].iter().any(|name| {
            let mut value = [0; 1];
            getxattr(folder, *name, &mut value).is_ok_and(|length| value[..length] == *b"1")
        })
    };
    let mut chain = folder.ancestors().take_while(|folder| folder.starts_with(mount));
    if !Path::new("/run/systemd/system").exists() || chain.any(is_delegated) {
        return Ok(());
    }
    Err(NoGroupPlace::NotDelegated { folder: folder.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_version_2_are_told_from_others() {
        let unified = "33 27 0:28 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(parse_mount(unified), Some(("/", "/sys/fs/cgroup/unified")));
        assert_eq!(parse_mount("34 27 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"), None);
        assert_eq!(parse_mount("35 27 0:30 / /tmp rw - tmpfs cgroup2 rw"), None);
    }

    #[test]
    fn groups_of_two_daemons_and_of_two_programs_have_different_names() {
        let place =
            |owner: &str| GroupPlace { folder: "/g".into(), prefix: format!("{PREFIX}{}", digest_prefix(owner, 6)) };
        let name = |owner, mark| place(owner).group_of(&Mark::new(mark)).display().to_string();
        assert_ne!(name("a", "m"), name("b", "m"));
        assert_ne!(name("a", "m"), name("a", "n"));
        assert!(name("a", "m").starts_with("/g/runnerd-"));
        assert!(name("a", "m").ends_with(&group_suffix(&Mark::new("m"))));
    }

    #[test]
    fn process_outside_of_every_group_is_in_none() {
        let own = nix::unistd::getpid().as_raw();
        assert!(!is_in_group_of(&Mark::new("nobody's"), own));
    }
}
