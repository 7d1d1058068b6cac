//! Lock files that a killed git left behind. Removes only what provably nobody uses; the rest is an obstacle with a name.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{GitError, Repository};

impl Repository {
    /// Removes the locks on index, HEAD, the current branch and packed references that no living process can be using,
    /// and returns their paths.
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
        paths
    }

    /// git closes a lock file while it waits, for an editor say; so a git in this repository counts as much as an open
    /// file.
    fn may_be_in_use(&self, lock: &Path) -> bool {
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

fn has_open(process: &Path, file: &Path) -> bool {
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok()).any(|open| open == file)
}

fn is_git(process: &Path) -> bool {
    fs::read_to_string(process.join("comm")).is_ok_and(|name| name.starts_with("git"))
}
