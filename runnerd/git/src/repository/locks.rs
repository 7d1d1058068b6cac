//! Lock files and temporary files that a killed process left behind. Removes only what no live process can be using;
//! any other lock is reported by name. Code that writes references or the index does so through
//! [`Repository::with_stale_lock_retry`].

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use runner_os::temp_file;

use crate::durable::remove_path;
use crate::{GitError, Repository};

/// Folders that hold the references of runs.
const RUN_REF_DIRS: [&str; 2] = ["refs/heads/runner", "refs/runner"];
/// Maximum folder depth below these, as in `refs/runner/moved/<run>/<iter>/heads/<name>`; a name has few levels of its
/// own.
const MAX_DEPTH: u32 = 16;
/// Folders of git's own in which files are written next to those they replace.
const WRITABLE_DIRS: [&str; 5] = ["", "info", "hooks", "objects", "objects/info"];

impl Repository {
    /// Runs an attempt that takes a lock, and retries once if the lock in its way cannot be in use.
    ///
    /// Fails with [`GitError::Locked`] if the lock may be in use.
    pub(crate) fn with_stale_lock_retry<T>(&self, attempt: impl Fn() -> Result<T, GitError>) -> Result<T, GitError> {
        match attempt() {
            Err(GitError::Locked { path }) if self.clear_stale_lock(&path)? => attempt(),
            done => done,
        }
    }

    /// Removes what killed processes have left in git's own folder and in `others`, and returns the paths: temporary
    /// files, and the locks on index, HEAD, the current branch, packed references and all references of runs.
    ///
    /// Fails with [`GitError::Locked`] if a lock is in use, or if that cannot be determined on this system.
    pub fn clear_leftovers(&self, others: &[PathBuf]) -> Result<Vec<PathBuf>, GitError> {
        let mut cleared = Vec::new();
        for lock in self.lock_paths() {
            if self.clear_stale_lock(&lock)? {
                cleared.push(lock);
            }
        }
        cleared.extend(self.clear_temporary_files(others)?);
        Ok(cleared)
    }

    /// Removes the temporary files that killed processes have left in git's own folder and in `others`, and returns the
    /// paths.
    pub(crate) fn clear_temporary_files(&self, others: &[PathBuf]) -> Result<Vec<PathBuf>, GitError> {
        let mut cleared = self.find_temporary_files(others);
        // A file being written is in no one's way.
        cleared.retain(|file| !self.may_be_in_use(file));
        cleared.iter().try_for_each(|file| remove_path(file))?;
        Ok(cleared)
    }

    /// Removes a lock that cannot be in use, and returns whether it did.
    pub(crate) fn clear_stale_lock(&self, lock: &Path) -> Result<bool, GitError> {
        if lock.symlink_metadata().is_err() {
            return Ok(false);
        }
        if self.may_be_in_use(lock) {
            return Err(GitError::Locked { path: lock.to_owned() });
        }
        match fs::remove_file(lock) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            removed => removed.map_err(GitError::io("removing", lock)).map(|()| true),
        }
    }

    /// Returns the temporary files of the runner and of its library. Follows no link to a folder.
    fn find_temporary_files(&self, others: &[PathBuf]) -> Vec<PathBuf> {
        let own = Some(self.git_dir()).filter(|folder| *folder != self.common_dir());
        let folders = own.into_iter().map(Path::to_owned).chain(WRITABLE_DIRS.map(|name| self.common_dir().join(name)));
        // The captured configuration is written from there.
        let laid_out = self.pinned.is_some().then(|| self.rules_file("").parent().map(Path::to_owned)).flatten();
        let folders = folders.chain(laid_out).chain(others.iter().cloned());
        let folders = folders.filter(|folder| folder.symlink_metadata().is_ok_and(|found| found.is_dir()));
        let entries = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let is_temporary = |entry: &fs::DirEntry| {
            temp_file::is_temp_name(&entry.file_name()) || is_partial_object(&entry.path(), self.common_dir())
        };
        entries
            .filter(is_temporary)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
            .map(|entry| entry.path())
            .collect()
    }

    /// Returns all existing lock files, in use or left behind.
    pub fn list_locks(&self) -> Vec<PathBuf> {
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
        // A branch is locked before it is checked out; the references next to it never are.
        for folder in RUN_REF_DIRS {
            collect_locks(&self.common_dir().join(folder), MAX_DEPTH, &mut paths);
        }
        paths
    }

    /// git closes a lock file while it waits, for an editor for example, so a running git in this repository counts as
    /// much as an open file. Neither is visible for another user's processes, so any git of the file's owner counts.
    pub(crate) fn may_be_in_use(&self, file: &Path) -> bool {
        let (Ok(processes), Ok(found)) = (fs::read_dir("/proc"), file.symlink_metadata()) else {
            return true;
        };
        let is_process = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes()[0].is_ascii_digit());
        processes.flatten().map(|entry| entry.path()).filter(is_process).any(|process| {
            has_open_file(&process, file) || is_git_process(&process) && self.may_run_inside(&process, found.uid())
        })
    }

    fn may_run_inside(&self, process: &Path, owner: u32) -> bool {
        match fs::read_link(process.join("cwd")) {
            Ok(folder) => folder.starts_with(self.work_dir()) || folder.starts_with(self.common_dir()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                process.metadata().is_ok_and(|found| found.uid() == owner)
            }
            Err(_) => false,
        }
    }
}

/// The library writes an object next to the object folders before it gets its name.
fn is_partial_object(file: &Path, common_dir: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().as_bytes();
    file.parent() == Some(&common_dir.join("objects")) && name.len() == 10 && name.starts_with(b".tmp")
}

/// Collects the lock files in a folder of references.
fn collect_locks(folder: &Path, depth: u32, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => collect_locks(&path, depth - 1, paths),
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|extension| extension == "lock") => {
                paths.push(path);
            }
            _ => {}
        }
    }
}

fn has_open_file(process: &Path, file: &Path) -> bool {
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok()).any(|open| open == file)
}

fn is_git_process(process: &Path) -> bool {
    fs::read_to_string(process.join("comm")).is_ok_and(|name| name.starts_with("git"))
}
