//! Lock files that a killed git left behind. Removes only what provably nobody uses; the rest is an obstacle with a name.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::git::{GitError, Repository};

/// Where the references of runs are.
const RUNS: [&str; 2] = ["refs/heads/runner", "refs/runner"];
/// Folders below these, as in `refs/runner/rescue/<run>/<iter>`.
const MAX_DEPTH: u32 = 3;

impl Repository {
    /// Removes the locks on index, HEAD, the current branch, packed references and all references of runs that no living
    /// process can be using, and returns their paths.
    ///
    /// Fails with [`GitError::Locked`] if one is in use, or if that cannot be found out on this system.
    pub fn clear_stale_locks(&self) -> Result<Vec<PathBuf>, GitError> {
        let mut cleared = Vec::new();
        for lock in self.lock_paths() {
            if lock.symlink_metadata().is_err() {
                continue;
            }
            if self.may_be_in_use(&lock) {
                return Err(GitError::Locked { path: lock });
            }
            match fs::remove_file(&lock) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => {
                    removed.map_err(GitError::io("removing", &lock))?;
                    cleared.push(lock);
                }
            }
        }
        Ok(cleared)
    }

    /// Returns the lock files that are there, in use or left behind.
    pub fn locks(&self) -> Vec<PathBuf> {
        self.lock_paths().into_iter().filter(|lock| lock.symlink_metadata().is_ok()).collect()
    }

    fn lock_paths(&self) -> Vec<PathBuf> {
        let mut paths = vec![
            self.git_dir().join("index.lock"),
            self.git_dir().join("HEAD.lock"),
            self.common_dir().join("packed-refs.lock"),
        ];
        if let Ok(head) = self.head()
            && let Some(branch) = head.branch()
        {
            paths.push(self.common_dir().join(format!("refs/heads/{branch}.lock")));
        }
        // A branch is locked before it is checked out, and what is kept beside it never is.
        for folder in RUNS {
            add_locks(&self.common_dir().join(folder), MAX_DEPTH, &mut paths);
        }
        paths
    }

    /// git closes a lock file while it waits, for an editor say; so a git in this repository counts as much as an open
    /// file.
    pub(in crate::git) fn may_be_in_use(&self, lock: &Path) -> bool {
        let Ok(processes) = fs::read_dir("/proc") else {
            return true;
        };
        let is_process = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes()[0].is_ascii_digit());
        processes
            .flatten()
            .map(|entry| entry.path())
            .filter(is_process)
            .any(|process| has_open(&process, lock) || is_git(&process) && self.is_inside(&process))
    }

    fn is_inside(&self, process: &Path) -> bool {
        let Ok(folder) = fs::read_link(process.join("cwd")) else {
            return false;
        };
        folder.starts_with(self.work_dir()) || folder.starts_with(self.common_dir())
    }
}

/// Adds the lock files of a folder of references.
fn add_locks(folder: &Path, depth: u32, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => add_locks(&path, depth - 1, paths),
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|extension| extension == "lock") => {
                paths.push(path);
            }
            _ => {}
        }
    }
}

fn has_open(process: &Path, file: &Path) -> bool {
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok()).any(|open| open == file)
}

fn is_git(process: &Path) -> bool {
    fs::read_to_string(process.join("comm")).is_ok_and(|name| name.starts_with("git"))
}
