//! A small separate disk mounted over a folder: a tmpfs that can be filled, emptied and made read-only.
//!
//! It requires the right to mount; a test without it fails with a message.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the file that takes up the space.
const FILLER_NAME: &str = ".filler";

/// A small disk, mounted over a folder until it is dropped.
#[derive(Debug)]
pub struct TmpfsDisk {
    folder: PathBuf,
}

impl TmpfsDisk {
    /// Mounts a disk over a folder; `options` are those of `mount`, such as `size=1m` or `nr_inodes=64`.
    ///
    /// # Panics
    ///
    /// Panics if mounting is not permitted here.
    pub fn mount_over(folder: &Path, options: &str) -> Self {
        let disk = Self { folder: folder.to_owned() };
        mount(&["-t", "tmpfs", "-o", &format!("mode=700,{options}"), "tmpfs"], folder);
        disk
    }

    /// Fills the disk except for `free_bytes`, which must be a multiple of the page size.
    ///
    /// # Panics
    ///
    /// Panics if less than that is free.
    pub fn fill_except(&self, free_bytes: u64) -> &Self {
        let path = self.folder.join(FILLER_NAME);
        let mut file = File::create(&path).expect("the disk has room for one file");
        let page = [0; 4096];
        while file.write_all(&page).is_ok() {}
        let len = file.metadata().expect("a file can be looked at").len();
        file.set_len(len.checked_sub(free_bytes).expect("the disk is large enough")).expect("a file can be shortened");
        self
    }

    /// Creates files until no further one can be created.
    ///
    /// # Panics
    ///
    /// Panics if the disk never runs out of inodes.
    pub fn exhaust_inodes(&self) -> &Self {
        let folder = self.folder.join(FILLER_NAME);
        fs::create_dir(&folder).expect("the disk has room for one folder");
        let first_failure = (0..1_000_000).find(|number| File::create(folder.join(number.to_string())).is_err());
        first_failure.expect("the disk was mounted with few inodes");
        self
    }

    /// Frees the space that was taken.
    ///
    /// # Panics
    ///
    /// Panics if none was taken.
    pub fn clear(&self) {
        let filler = self.folder.join(FILLER_NAME);
        let removed = if filler.is_dir() { fs::remove_dir_all(filler) } else { fs::remove_file(filler) };
        removed.expect("what was taken can be given back");
    }

    /// Changes options of the mounted disk, such as `ro` or `nr_inodes=64`.
    ///
    /// # Panics
    ///
    /// Panics if the system refuses.
    pub fn remount(&self, options: &str) -> &Self {
        mount(&["-o", &format!("remount,{options}")], &self.folder);
        self
    }
}

impl Drop for TmpfsDisk {
    fn drop(&mut self) {
        // Lazy: files that are still open keep the disk alive, but not its mount point.
        let _ = Command::new("umount").arg("-l").arg(&self.folder).status();
    }
}

#[track_caller]
fn mount(args: &[&str], folder: &Path) {
    let output = Command::new("mount").args(args).arg(folder).output().expect("mount is needed here, install it");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "this test must be allowed to mount: run it as root, or with unshare -rm: {stderr}"
    );
}
