//! How much disk space workspaces take, and how much is left.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::sys::statvfs::statvfs;
use protocol::doctor::SPARE_WORKSPACES;

/// Size in bytes of a block in the system's count for a file.
const BLOCK_BYTES: u64 = 512;

/// Returns the bytes that a folder takes on its disk. Never follows links; files that disappear meanwhile count as
/// zero.
pub fn directory_bytes(folder: &Path) -> u64 {
    let mut bytes = 0_u64;
    let mut pending = vec![folder.to_owned()];
    while let Some(path) = pending.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        bytes = bytes.saturating_add(metadata.blocks().saturating_mul(BLOCK_BYTES));
        if metadata.is_dir() {
            pending.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    bytes
}

/// Returns the bytes that are free where a path is, or will be; `None` if the system does not report it.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let existing = path.ancestors().find(|path| path.exists())?;
    let filesystem = statvfs(existing).ok()?;
    Some(filesystem.blocks_available().saturating_mul(filesystem.fragment_size()))
}

/// Returns a warning if the disk lacks space for a few more workspaces of this size.
pub fn low_disk_warning(workspace: &Path) -> Option<String> {
    let taken = directory_bytes(workspace);
    let free = free_bytes(workspace)?;
    let megabytes = |bytes: u64| bytes / 1_000_000;
    (free < taken.saturating_mul(SPARE_WORKSPACES)).then(|| {
        format!(
            "the workspace takes {} MB, and {} MB are free on its disk; `runnerctl gc` removes those of runs that are over",
            megabytes(taken),
            megabytes(free)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_takes_what_its_files_take_and_nothing_behind_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let empty = directory_bytes(folder.path());
        fs::write(folder.path().join("file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/usr", folder.path().join("link")).unwrap();
        let full = directory_bytes(folder.path());
        assert!(full >= empty + 100_000 && full < empty + 200_000, "{empty} {full}");
        assert!(free_bytes(&folder.path().join("not/there")).is_some());
    }
}
