//! Copies large files (`git lfs`), for which git has only pointers, if they are stored locally: a clone fetches none.

use std::fs;
use std::io;
use std::path::Path;

use runner_os::file_copy;

use super::RepositoryClone;
use crate::GitError;

/// Maximum folder depth: the store has two levels.
const MAX_DEPTH: usize = 4;

impl RepositoryClone<'_> {
    /// Copies the store of large files; returns their size in bytes.
    pub fn copy_large_files(&self) -> Result<u64, GitError> {
        let store = Path::new("lfs/objects");
        copy_dir(&self.source.common_dir().join(store), &self.target.common_dir().join(store), MAX_DEPTH)
    }
}

fn copy_dir(from: &Path, to: &Path, depth: usize) -> Result<u64, GitError> {
    let listed = match fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        listed => listed.map_err(GitError::io("listing", from))?,
    };
    fs::create_dir_all(to).map_err(GitError::io("making", to))?;
    let mut bytes = 0;
    for entry in listed {
        let entry = entry.map_err(GitError::io("listing", from))?;
        let old = entry.path();
        let new = to.join(entry.file_name());
        let kind = entry.file_type().map_err(GitError::io("looking at", &old))?;
        if kind.is_dir() && depth > 0 {
            bytes += copy_dir(&old, &new, depth - 1)?;
        } else if kind.is_file() {
            match file_copy::copy_file(&old, &new) {
                // A concurrent prune keeps what HEAD needs.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                copied => bytes += copied.map_err(GitError::io("copying", &old))?,
            }
        }
    }
    Ok(bytes)
}
