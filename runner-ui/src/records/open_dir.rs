//! An open folder: its contents are reached one name at a time, never through a symbolic link.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Dir, Mode, OFlags, open, openat};

/// An open folder.
#[derive(Debug)]
pub(super) struct OpenDir(OwnedFd);

impl OpenDir {
    /// Opens the folder at a path, which is trusted.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Opens a subfolder.
    pub(super) fn open_dir(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(openat(&self.0, checked_name(name)?, flags, Mode::empty())?))
    }

    /// Opens a regular file.
    pub(super) fn open_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.0, checked_name(name)?, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Returns the names of its entries; names that are not UTF-8 are omitted.
    pub(super) fn names(&self) -> Vec<String> {
        let Ok(entries) = Dir::read_from(&self.0) else { return Vec::new() };
        entries.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned)).collect()
    }
}

/// Refuses anything that is not a single path component.
fn checked_name(name: &str) -> io::Result<&str> {
    let is_name = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    if is_name { Ok(name) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_reached_by_a_link_or_by_a_path() {
        let temp_dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(temp_dir.path().join("in/side")).unwrap();
        fs::write(temp_dir.path().join("secret"), "s").unwrap();
        fs::write(temp_dir.path().join("in/file"), "f").unwrap();
        symlink(temp_dir.path().join("secret"), temp_dir.path().join("in/link")).unwrap();
        symlink(temp_dir.path(), temp_dir.path().join("in/out")).unwrap();
        let folder = OpenDir::open(&temp_dir.path().join("in")).unwrap();
        assert!(folder.open_file("file").is_ok() && folder.open_dir("side").is_ok());
        for name in ["link", "side", "../secret", "..", ".", "", "/etc/passwd", "out/secret"] {
            assert!(folder.open_file(name).is_err(), "{name}");
        }
        for name in ["out", "..", ".", "", "/", "side/.."] {
            assert!(folder.open_dir(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_pipe_is_no_file_and_nobody_waits_for_it() {
        let temp_dir = tempfile::tempdir().unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, temp_dir.path().join("pipe"), rustix::fs::FileType::Fifo, Mode::RWXU, 0)
            .unwrap();
        assert!(OpenDir::open(temp_dir.path()).unwrap().open_file("pipe").is_err());
    }
}
