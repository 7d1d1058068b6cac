//! A temporary folder that goes away with all that is in it, in a place of the disk that others do not use.

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
    _around: TempDir,
}

impl ScratchDir {
    /// Makes a folder among the temporary ones.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be made.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Self {
        Self::new_in(&env::temp_dir())
    }

    /// Makes a folder in another one, which says on what kind of disk it is.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be made.
    pub fn new_in(folder: &Path) -> Self {
        let around = tempfile::Builder::new().prefix(PREFIX).tempdir_in(folder);
        let around = around.expect("a temporary folder can be made");
        spread_directories(around.path());
        let path = around.path().canonicalize().expect("a temporary folder has a path");
        // The file system chooses the place by the name, so it must be another one each time.
        let name = path.file_name().and_then(|name| name.to_str()).expect("BUG: a temporary folder has a plain name");
        let path = path.join(name.trim_start_matches(PREFIX));
        DirBuilder::new().mode(0o700).create(&path).expect("a folder can be made");
        Self { path, _around: around }
    }

    /// Returns its path, in which no link is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Asks the file system to put each folder in this one far from the others, which `chattr +T` does.
///
/// An ext4 without a journal uses no inode again for minutes after it was free, and looks at each of those near a folder
/// before it makes a file in there: with all the files that tests remove, that was a third of their time in the kernel. Where
/// the flag is not known, nothing is lost.
fn spread_directories(folder: &Path) {
    let _ = File::open(folder)
        .map(|folder| ioctl_getflags(&folder).and_then(|flags| ioctl_setflags(&folder, flags | IFlags::TOPDIR)));
}
