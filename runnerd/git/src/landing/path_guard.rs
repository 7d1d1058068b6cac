//! Resolves a path below a folder through real folders only: a symbolic link on the way makes it unreachable. What may
//! be removed is decided elsewhere.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use gix::bstr::ByteSlice as _;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

/// Flags for opening a folder.
const DIR_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Flags for opening a file; nonblocking in case it has become a pipe.
const FILE_FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// A path that was resolved.
#[derive(Debug)]
pub(super) struct GuardedPath<'p> {
    /// Every folder from the root to the parent, each with the name of the next component.
    dirs: Vec<(OwnedFd, &'p [u8])>,
}

impl<'p> GuardedPath<'p> {
    /// Opens the folders leading to a path; `None` if one is missing or is not a folder.
    pub(super) fn open(root: &Path, path: &'p [u8]) -> io::Result<Option<Self>> {
        let mut folder = openat(CWD, root, DIR_FLAGS.difference(OFlags::NOFOLLOW), Mode::empty())?;
        let mut dirs = Vec::new();
        let mut rest = path;
        while let Some(slash) = rest.find_byte(b'/') {
            let name = &rest[..slash];
            let next = match openat(&folder, name, DIR_FLAGS, Mode::empty()) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                next => next?,
            };
            dirs.push((std::mem::replace(&mut folder, next), name));
            rest = &rest[slash + 1..];
        }
        dirs.push((folder, rest));
        Ok(Some(Self { dirs }))
    }

    /// Opens the plain file at the path; `None` if it does not exist or is something else.
    pub(super) fn open_file(&self) -> io::Result<Option<File>> {
        let Some((folder, name)) = self.dirs.last() else { return Ok(None) };
        let file = match openat(folder, *name, FILE_FLAGS, Mode::empty()) {
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::ACCESS) => return Ok(None),
            file => File::from(file?),
        };
        Ok(Some(file).filter(|file| file.metadata().is_ok_and(|found| found.is_file())))
    }

    /// Removes the path (a folder only if it is empty) and the parent folders that this leaves empty. Returns whether
    /// anything could be removed.
    pub(super) fn remove_with_parents(&self, is_folder: bool) -> io::Result<bool> {
        let Some(((folder, name), above)) = self.dirs.split_last() else { return Ok(false) };
        let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        match unlinkat(folder, *name, flags) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => return Ok(false),
            removed => removed?,
        }
        for (folder, name) in above.iter().rev() {
            if unlinkat(folder, *name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn open_path<'p>(root: &Path, path: &'p str) -> Option<GuardedPath<'p>> {
        GuardedPath::open(root, path.as_bytes()).expect("it can be looked at")
    }

    #[test]
    fn what_is_there_goes_with_the_folders_that_it_leaves_empty() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("a/b/c")).expect("folders");
        fs::write(folder.path().join("a/b/c/file"), "").expect("a file");
        fs::write(folder.path().join("a/other"), "").expect("a file");
        assert!(
            open_path(folder.path(), "a/b/c/file").expect("is reached").remove_with_parents(false).expect("is removed")
        );
        assert!(!folder.path().join("a/b").exists() && folder.path().join("a/other").exists());
        assert!(
            !open_path(folder.path(), "a/none").expect("is reached").remove_with_parents(false).expect("is nothing")
        );
        assert!(!open_path(folder.path(), "a").expect("is reached").remove_with_parents(true).expect("is not empty"));
    }

    #[test]
    fn no_link_on_the_way_is_followed_and_none_at_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("theirs")).expect("a folder");
        fs::create_dir_all(at("ours")).expect("a folder");
        fs::write(at("theirs/file"), "theirs").expect("a file");
        symlink("../theirs", at("ours/way")).expect("a link");
        symlink("../theirs/file", at("ours/end")).expect("a link");
        assert!(open_path(&at("ours"), "way/file").is_none());
        let end = GuardedPath::open(&at("ours"), b"end").expect("a look").expect("is reached");
        assert!(end.open_file().expect("a look").is_none());
        assert!(end.remove_with_parents(false).expect("the link goes") && at("theirs/file").exists());
    }
}
