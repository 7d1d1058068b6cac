//! A temporary folder that is removed with its contents on drop, in a region of the disk that others do not use.

use std::env;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use tempfile::TempDir;

const PREFIX: &str = "kit";

/// A temporary folder.
#[derive(Debug)]
pub struct ScratchDir {
    path: PathBuf,
    _parent: TempDir,
}

impl ScratchDir {
    /// Creates a folder in the system's temporary folder.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be made.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Self {
        Self::new_in(&env::temp_dir())
    }

    /// Creates a folder in another one, which determines the kind of disk it is on.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be made.
    pub fn new_in(folder: &Path) -> Self {
        let parent = tempfile::Builder::new().prefix(PREFIX).tempdir_in(folder);
        let around = parent.expect("a temporary folder can be made");
        spread_directories(around.path());
        let path = around.path().canonicalize().expect("a temporary folder has a path");
        // The file system chooses the region by the name, so the name must differ each time.
        let name = path.file_name().and_then(|name| name.to_str()).expect("BUG: a temporary folder has a plain name");
        let path = path.join(name.trim_start_matches(PREFIX));
        DirBuilder::new().mode(0o700).create(&path).expect("a folder can be made");
        Self { path, _parent: around }
    }

    /// Returns its path, which contains no symbolic link.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Asks the file system to place each subfolder far from the others, as `chattr +T` does.
///
/// An ext4 without a journal does not reuse an inode for minutes after it was freed, and scans those near a folder
/// before it creates a file in it: with all the files that tests remove, that was a third of their time in the kernel.
/// If the flag is not supported, nothing is lost.
fn spread_directories(folder: &Path) {
    let _ = File::open(folder)
        .map(|folder| ioctl_getflags(&folder).and_then(|flags| ioctl_setflags(&folder, flags | IFlags::TOPDIR)));
}
