//! Folders that a program has closed to their owner with `chmod`: removed with everything in them, or opened
//! temporarily while something in them is restored.
//!
//! Follows no links, and opens nothing outside of the given tree.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Permissions the owner needs to change a folder's contents.
const OWNER_RWX: u32 = 0o700;
/// Permissions the owner needs to read a folder's contents.
const OWNER_RX: u32 = 0o500;
/// Flags for holding a folder that even its owner may not list.
const PATH_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes a file, a link, or a folder with all its contents; it is not an error if it does not exist.
pub fn remove_all(path: &Path) -> io::Result<()> {
    let removed = match remove_plain(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            open_recursively(CWD, path)?;
            remove_plain(path)
        }
        removed => removed,
    };
    match removed {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
        removed => removed,
    }
}

fn remove_plain(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// Moves whatever is at a path. A folder must itself be writable to be moved to another parent.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let folder = openat(CWD, from, PATH_FLAGS, Mode::empty()).ok();
    let closed = folder.as_ref().and_then(|folder| Some((folder, closed_mode(&fstat(folder).ok()?)?)));
    if let Some((folder, mode)) = closed {
        set_mode(folder, mode | OWNER_RWX)?;
    }
    let moved = fs::rename(from, to);
    if let Some((folder, mode)) = closed {
        set_mode(folder, mode)?;
    }
    moved
}

/// Folders of a tree that were closed, and are open until this is dropped.
///
/// A folder that cannot be opened stays as it is: working in it then fails with an error that names the path.
#[derive(Debug)]
pub struct OpenedDirs {
    root: PathBuf,
    /// Parents come first.
    folders: Vec<ClosedDir>,
}

#[derive(Debug)]
struct ClosedDir {
    path: PathBuf,
    inode: u64,
    mode: u32,
}

impl OpenedDirs {
    /// Opens the folders on the way from `root` to paths below it.
    pub fn open_parents<P: AsRef<Path>>(root: &Path, paths: impl IntoIterator<Item = P>) -> Self {
        let mut opened = Self { root: root.to_owned(), folders: Vec::new() };
        let mut known = BTreeSet::new();
        for path in paths {
            if let Some(folder) = path.as_ref().parent()
                && known.insert(folder.to_owned())
            {
                // If the path ends early, there is nothing below that could be opened.
                let _ = opened.open_parent(folder);
            }
        }
        opened
    }

    fn open_parent(&mut self, path: &Path) -> io::Result<()> {
        let mut at = PathBuf::new();
        visit_dirs(&self.root, path, |name, folder| {
            at.push(name);
            let found = fstat(folder)?;
            if let Some(mode) = closed_mode(&found) {
                set_mode(folder, mode | OWNER_RWX)?;
                self.folders.push(ClosedDir { path: at.clone(), inode: found.st_ino, mode });
            }
            Ok(())
        })
        .map(drop)
    }
}

impl Drop for OpenedDirs {
    /// Restores the old mode of each folder, but keeps it readable for its owner.
    fn drop(&mut self) {
        for ClosedDir { path, inode, mode } in self.folders.iter().rev() {
            // A folder that was removed or recreated already has its intended mode.
            if let Ok(folder) = visit_dirs(&self.root, path, |_, _| Ok(()))
                && fstat(&folder).is_ok_and(|found| found.st_ino == *inode)
            {
                let _ = set_mode(&folder, mode | OWNER_RX);
            }
        }
    }
}

/// Walks from a folder to one below it, only through folders, and visits each on the way.
fn visit_dirs(
    root: &Path,
    path: &Path,
    mut visit: impl FnMut(&Path, &OwnedFd) -> io::Result<()>,
) -> io::Result<OwnedFd> {
    let mut folder = openat(CWD, root, PATH_FLAGS.difference(OFlags::NOFOLLOW), Mode::empty())?;
    for component in path.components() {
        let Component::Normal(name) = component else { return Err(ErrorKind::InvalidInput.into()) };
        folder = openat(&folder, name, PATH_FLAGS, Mode::empty())?;
        visit(Path::new(name), &folder)?;
    }
    Ok(folder)
}

/// Opens a folder and all folders in it; leaves everything else as it is.
fn open_recursively(above: impl AsFd, name: &Path) -> io::Result<()> {
    let folder = match openat(above, name, PATH_FLAGS, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT) => return Ok(()),
        folder => folder?,
    };
    if let Some(mode) = closed_mode(&fstat(&folder)?) {
        set_mode(&folder, mode | OWNER_RWX)?;
    }
    let mut below = Vec::new();
    let listed = openat(&folder, c".", OFlags::DIRECTORY.union(OFlags::CLOEXEC), Mode::empty())?;
    for entry in Dir::new(listed)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(entry.file_type(), FileType::Directory | FileType::Unknown) && ![c".", c".."].contains(&name) {
            below.push(name.to_owned());
        }
    }
    below.iter().try_for_each(|name| open_recursively(&folder, Path::new(OsStr::from_bytes(name.to_bytes()))))
}

/// Whether the owner has the permissions in `needed`; what is someone else's counts as fine, as it is not this user's to
/// open.
pub fn owner_has(found: &Metadata, needed: u32) -> bool {
    found.mode() & needed == needed || !is_own(found.uid())
}

/// Returns the mode of a closed folder of this user's.
fn closed_mode(found: &Stat) -> Option<u32> {
    let mode = found.st_mode & 0o7777;
    (mode & OWNER_RWX != OWNER_RWX && is_own(found.st_uid)).then_some(mode)
}

fn is_own(owner: u32) -> bool {
    geteuid().is_root() || owner == geteuid().as_raw()
}

/// Uses the descriptor, so that whatever now has the folder's name is left alone.
fn set_mode(folder: &OwnedFd, mode: u32) -> io::Result<()> {
    fs::set_permissions(format!("/proc/self/fd/{}", folder.as_raw_fd()), Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use runner_testkit::run_unprivileged;

    use super::*;

    fn close(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    /// Creates a folder `tree/a/b` with a file in it.
    fn tree() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::write(tree.join("a/b/file"), "bytes").unwrap();
        (folder, tree)
    }

    #[test]
    fn tree_with_closed_folders_is_removed_and_what_its_links_lead_to_is_not_touched() {
        run_unprivileged(|| {
            let (folder, tree) = tree();
            let outside = folder.path().join("outside");
            fs::create_dir(&outside).unwrap();
            fs::write(outside.join("file"), "theirs").unwrap();
            symlink(&outside, tree.join("a/b/link")).unwrap();
            for (path, mode) in [(tree.join("a/b"), 0o000), (tree.join("a"), 0o555), (outside.clone(), 0o555)] {
                close(&path, mode);
            }
            fs::remove_dir_all(&tree).unwrap_err();
            remove_all(&tree).unwrap();
            assert!(!tree.exists());
            assert_eq!((mode(&outside), fs::read_to_string(outside.join("file")).unwrap()), (0o555, "theirs".into()));
            remove_all(&outside).unwrap();
        });
    }

    #[test]
    fn file_or_link_is_removed_as_itself_and_nothing_is_no_failure() {
        let (folder, tree) = tree();
        let link = folder.path().join("link");
        symlink(&tree, &link).unwrap();
        for path in [link.clone(), tree.join("a/b/file"), tree.join("none"), link.join("file/below")] {
            remove_all(&path).unwrap();
        }
        assert!(fs::symlink_metadata(&link).is_err() && tree.join("a/b").is_dir() && !tree.join("a/b/file").exists());
    }

    #[test]
    fn what_cannot_be_removed_is_a_failure() {
        run_unprivileged(|| {
            let (_folder, tree) = tree();
            close(&tree.join("a"), 0o555);
            let error = remove_all(&tree.join("a/b")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "the folder around is not its own to open");
            remove_all(&tree).unwrap();
        });
    }

    #[test]
    fn opened_folders_can_be_written_to_and_have_their_modes_afterwards() {
        run_unprivileged(|| {
            let (_folder, tree) = tree();
            close(&tree.join("a/b"), 0o000);
            close(&tree.join("a"), 0o555);
            let opened = OpenedDirs::open_parents(&tree, ["a/b/file", "a/b/new", "a/none/at/all"]);
            fs::remove_file(tree.join("a/b/file")).unwrap();
            fs::write(tree.join("a/b/new"), "put back").unwrap();
            drop(opened);
            assert_eq!((mode(&tree.join("a")), mode(&tree.join("a/b"))), (0o555, 0o500));
            assert_eq!(fs::read_to_string(tree.join("a/b/new")).unwrap(), "put back");
            remove_all(&tree).unwrap();
        });
    }

    #[test]
    fn no_folder_is_opened_through_a_link_and_one_that_was_replaced_keeps_its_mode() {
        let (_folder, tree) = tree();
        symlink("a", tree.join("link")).unwrap();
        close(&tree.join("a/b"), 0o555);
        let opened = OpenedDirs::open_parents(&tree, ["link/b/file"]);
        assert_eq!(mode(&tree.join("a/b")), 0o555);
        drop(opened);
        let opened = OpenedDirs::open_parents(&tree, ["a/b/file"]);
        fs::rename(tree.join("a/b"), tree.join("a/old")).unwrap();
        fs::create_dir(tree.join("a/b")).unwrap();
        close(&tree.join("a/b"), 0o755);
        drop(opened);
        assert_eq!(mode(&tree.join("a/b")), 0o755);
    }

    #[test]
    fn closed_folder_is_moved_as_it_is() {
        run_unprivileged(|| {
            let (folder, tree) = tree();
            close(&tree.join("a/b"), 0o555);
            let to = folder.path().join("to");
            fs::rename(tree.join("a/b"), &to).unwrap_err();
            rename(&tree.join("a/b"), &to).unwrap();
            assert_eq!((mode(&to), fs::read_to_string(to.join("file")).unwrap()), (0o555, "bytes".into()));
            remove_all(&to).unwrap();
        });
    }
}
