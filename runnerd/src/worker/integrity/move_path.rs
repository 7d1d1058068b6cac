//! Moves a file or folder to another path, possibly on another file system, without ever losing it.
//!
//! Within a file system this is one rename, whatever the size. Across file systems it is copied next to its new place,
//! flushed, renamed, and only then removed from the old place: after a crash it is complete in one of the two.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use runner_os::dir_permissions;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};

use crate::repo::disk::RealDisk;
use crate::repo::durable;
use crate::worker::cleanup;
use crate::worker::context::EffectError;

/// Size limit in bytes of a copy: the holes of a sparse file could fill the disk.
const MAX_COPIED: u64 = 1 << 30;

/// Moves a file, a link or a folder with its contents; `to` must not exist.
pub(crate) fn move_path(from: &Path, to: &Path) -> Result<(), EffectError> {
    match dir_permissions::rename(from, to) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::CrossesDevices => move_across_devices(from, to)?,
        Err(error) => return Err(EffectError::io_error("moving", from)(error)),
    }
    sync_parent(to)?;
    sync_parent(from)
}

/// Flushes the directory that contains a path.
pub(crate) fn sync_parent(path: &Path) -> Result<(), EffectError> {
    Ok(durable::with_disk(&RealDisk).sync_folder(path.parent().unwrap_or(path))?)
}

fn move_across_devices(from: &Path, to: &Path) -> Result<(), EffectError> {
    let copy = temporary_path(to);
    // Left by an interrupted attempt.
    cleanup::remove_path(&copy)?;
    BoundedCopy { bytes_left: MAX_COPIED }.copy_path(from, &copy).map_err(EffectError::io_error("copying", from))?;
    fs::rename(&copy, to).map_err(EffectError::io_error("moving", &copy))?;
    sync_parent(to)?;
    cleanup::remove_path(from)
}

fn temporary_path(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".moving");
    path.with_file_name(name)
}

/// A copy in progress.
struct BoundedCopy {
    /// Bytes that may still be copied.
    bytes_left: u64,
}

impl BoundedCopy {
    fn copy_path(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let metadata = fs::symlink_metadata(from)?;
        if metadata.is_symlink() {
            symlink(fs::read_link(from)?, to)?;
        } else if metadata.is_dir() {
            self.copy_directory(from, to)?;
            fs::set_permissions(to, Permissions::from_mode(metadata.mode() & 0o7777))?;
        } else if metadata.is_file() {
            self.copy_file(from, to)?;
        } else {
            return Err(io::Error::other("neither a file nor a directory, on another file system than its new place"));
        }
        // Its timestamp distinguishes a file from one written since.
        copy_times(to, &metadata)
    }

    fn copy_directory(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            self.copy_path(&from.join(&name), &to.join(&name))?;
        }
        File::open(to)?.sync_all()
    }

    fn copy_file(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let source = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(from)?;
        let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
        let mode = source.metadata()?.mode() & 0o7777;
        // One byte beyond the limit shows that it is exceeded: the file may grow meanwhile.
        let copied = io::copy(&mut source.take(self.bytes_left + 1), &mut target)?;
        self.bytes_left = self.bytes_left.checked_sub(copied).ok_or_else(|| {
            io::Error::other(format!("it has more than the {MAX_COPIED} bytes that are copied to another file system"))
        })?;
        target.set_permissions(Permissions::from_mode(mode))?;
        target.sync_all()
    }
}

fn copy_times(path: &Path, metadata: &Metadata) -> io::Result<()> {
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let last_modification = Timespec { tv_sec: metadata.mtime(), tv_nsec: metadata.mtime_nsec() };
    let times = Timestamps { last_access, last_modification };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a folder with a link, an executable file and a file of some years ago.
    fn create_tree(folder: &Path) -> PathBuf {
        let from = folder.join("from");
        fs::create_dir_all(from.join("inner")).unwrap();
        symlink("/nowhere", from.join("link")).unwrap();
        fs::write(from.join("inner/run"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(from.join("inner/run"), Permissions::from_mode(0o755)).unwrap();
        from
    }

    fn tree_state(at: &Path) -> (PathBuf, Vec<u8>, u32, i64) {
        let run = fs::metadata(at.join("inner/run")).unwrap();
        (fs::read_link(at.join("link")).unwrap(), fs::read(at.join("inner/run")).unwrap(), run.mode(), run.mtime_nsec())
    }

    #[test]
    fn what_is_moved_to_another_file_system_is_there_as_it_was_and_here_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let from = create_tree(folder.path());
        let to = folder.path().join("to");
        let before = tree_state(&from);
        // Left by a killed attempt.
        fs::create_dir(temporary_path(&to)).unwrap();
        move_across_devices(&from, &to).unwrap();
        assert_eq!(tree_state(&to), before);
        assert!(fs::symlink_metadata(&from).is_err() && fs::symlink_metadata(temporary_path(&to)).is_err());
    }

    #[test]
    fn file_with_a_hole_larger_than_is_copied_stays_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        File::create(&from).unwrap().set_len(3).unwrap();
        let error = BoundedCopy { bytes_left: 2 }.copy_path(&from, &folder.path().join("to")).unwrap_err();
        assert!(error.to_string().contains("more than"), "{error}");
        assert!(from.exists());
    }
}
