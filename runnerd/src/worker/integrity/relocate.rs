//! Moves what stands at a path to another one, which may be on another file system, and loses it nowhere on the way.
//!
//! On one file system that is one rename, however large it is. To another one it is copied beside its new place, flushed,
//! renamed, and only then removed from its old one: whoever dies in between finds it in one of the two places, whole.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};

use crate::folders;
use crate::repo::disk::RealDisk;
use crate::repo::durable;
use crate::worker::clear;
use crate::worker::context::Obstacle;

/// Most bytes that are copied: what a file with holes has more of than the disk would fill the disk.
const MAX_COPIED: u64 = 1 << 30;

/// Moves a file, a link or a folder with all that is in it; nothing may stand at `to`.
pub(crate) fn relocate(from: &Path, to: &Path) -> Result<(), Obstacle> {
    match folders::rename(from, to) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::CrossesDevices => across(from, to)?,
        Err(error) => return Err(Obstacle::system("moving", from)(error)),
    }
    sync_folder_of(to)?;
    sync_folder_of(from)
}

/// Flushes the names beside a path.
pub(crate) fn sync_folder_of(path: &Path) -> Result<(), Obstacle> {
    Ok(durable::on(&RealDisk).sync_folder(path.parent().unwrap_or(path))?)
}

fn across(from: &Path, to: &Path) -> Result<(), Obstacle> {
    let copy = beside(to);
    // Of a try that was cut short.
    clear::remove(&copy)?;
    Copying { left: MAX_COPIED }.copy(from, &copy).map_err(Obstacle::system("copying", from))?;
    fs::rename(&copy, to).map_err(Obstacle::system("moving", &copy))?;
    sync_folder_of(to)?;
    clear::remove(from)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".moving");
    path.with_file_name(name)
}

/// A copy under way.
struct Copying {
    /// Bytes that may still be copied.
    left: u64,
}

impl Copying {
    fn copy(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let found = fs::symlink_metadata(from)?;
        if found.is_symlink() {
            symlink(fs::read_link(from)?, to)?;
        } else if found.is_dir() {
            self.copy_folder(from, to)?;
            fs::set_permissions(to, Permissions::from_mode(found.mode() & 0o7777))?;
        } else if found.is_file() {
            self.copy_file(from, to)?;
        } else {
            return Err(io::Error::other("neither a file nor a folder, on another file system than its new place"));
        }
        // By its time a file is told from one that was written since.
        keep_time(to, &found)
    }

    fn copy_folder(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            self.copy(&from.join(&name), &to.join(&name))?;
        }
        File::open(to)?.sync_all()
    }

    fn copy_file(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let source = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(from)?;
        let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
        let mode = source.metadata()?.mode() & 0o7777;
        // One byte more than may be copied tells that it is too many: it may grow meanwhile.
        let copied = io::copy(&mut source.take(self.left + 1), &mut target)?;
        self.left = self.left.checked_sub(copied).ok_or_else(|| {
            io::Error::other(format!("it has more than the {MAX_COPIED} bytes that are copied to another file system"))
        })?;
        target.set_permissions(Permissions::from_mode(mode))?;
        target.sync_all()
    }
}

fn keep_time(path: &Path, found: &Metadata) -> io::Result<()> {
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let last_modification = Timespec { tv_sec: found.mtime(), tv_nsec: found.mtime_nsec() };
    let times = Timestamps { last_access, last_modification };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a link, an executable file and a file of some years ago.
    fn furnished(folder: &Path) -> PathBuf {
        let from = folder.join("from");
        fs::create_dir_all(from.join("inner")).unwrap();
        symlink("/nowhere", from.join("link")).unwrap();
        fs::write(from.join("inner/run"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(from.join("inner/run"), Permissions::from_mode(0o755)).unwrap();
        from
    }

    fn stands(at: &Path) -> (PathBuf, Vec<u8>, u32, i64) {
        let run = fs::metadata(at.join("inner/run")).unwrap();
        (fs::read_link(at.join("link")).unwrap(), fs::read(at.join("inner/run")).unwrap(), run.mode(), run.mtime_nsec())
    }

    #[test]
    fn what_is_moved_to_another_file_system_is_there_as_it_was_and_here_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (furnished(folder.path()), folder.path().join("to"));
        let before = stands(&from);
        // Left by one that died.
        fs::create_dir(beside(&to)).unwrap();
        across(&from, &to).unwrap();
        assert_eq!(stands(&to), before);
        assert!(fs::symlink_metadata(&from).is_err() && fs::symlink_metadata(beside(&to)).is_err());
    }

    #[test]
    fn file_with_a_hole_larger_than_is_copied_stays_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        File::create(&from).unwrap().set_len(3).unwrap();
        let error = Copying { left: 2 }.copy(&from, &folder.path().join("to")).unwrap_err();
        assert!(error.to_string().contains("more than"), "{error}");
        assert!(from.exists());
    }
}
