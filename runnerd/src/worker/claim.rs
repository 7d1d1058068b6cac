//! Ensures that only one daemon drives a repository, even if daemons with separate state folders know nothing of each
//! other.
//!
//! The claim is a lock on git's own folder: it leaves no file behind, ends with the process, and cannot be transferred
//! by replacing a file. It keeps out daemons, not programs: agents do not check it.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use runner_core::run::blocker::Transience;
use runner_os::retryable::Retryable;

/// Another daemon drives a run of the repository.
#[derive(Debug, thiserror::Error)]
#[error("another daemon{} drives a run of this repository and has locked {}", pid_suffix(*holder), path.display())]
pub(crate) struct RepoLocked {
    /// Git's folder, which is locked.
    path: PathBuf,
    /// The process that holds the lock, if the system reports it.
    holder: Option<u32>,
}

impl Retryable for RepoLocked {
    fn transience(&self) -> Transience {
        // A held lock implies a live holder.
        Transience::Passing
    }

    fn remedy(&self) -> Option<String> {
        Some("end the run of the other daemon".to_owned())
    }
}

/// Exclusive right to drive a repository; dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct RepoClaim {
    _folder: Option<File>,
}

impl RepoClaim {
    /// Takes the claim without waiting. `folder` is git's, which all linked work trees share.
    ///
    /// A folder that cannot be locked, because it is gone or its file system does not support locks, excludes no one:
    /// whatever is done in it reports the fault.
    pub(crate) fn acquire(folder: &Path) -> Result<Self, RepoLocked> {
        let Ok(file) = File::open(folder) else { return Ok(Self { _folder: None }) };
        match file.try_lock() {
            Ok(()) => Ok(Self { _folder: Some(file) }),
            Err(TryLockError::Error(_)) => Ok(Self { _folder: None }),
            Err(TryLockError::WouldBlock) => Err(RepoLocked { path: folder.to_owned(), holder: find_holder(&file) }),
        }
    }
}

/// Whether another daemon drives a run of the repository with this git folder.
pub fn is_claimed_by_another(folder: &Path) -> bool {
    // This daemon may hold it for a moment, for a person's request.
    RepoClaim::acquire(folder).is_err_and(|taken| taken.holder != Some(std::process::id()))
}

/// Returns the process that the system reports as the holder of a lock.
fn find_holder(file: &File) -> Option<u32> {
    let suffix = format!(":{}", file.metadata().ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_own_lock =
            fields.get(1) == Some(&"FLOCK") && fields.get(5).is_some_and(|inode| inode.ends_with(&suffix));
        fields.get(4).filter(|_| is_own_lock)?.parse().ok()
    })
}

fn pid_suffix(holder: Option<u32>) -> String {
    holder.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_claim_is_refused_with_the_holder_and_the_first_one_ends_when_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let first = RepoClaim::acquire(folder.path()).unwrap();
        let refused = RepoClaim::acquire(folder.path()).unwrap_err().to_string();
        assert!(refused.contains(&folder.path().display().to_string()), "{refused}");
        assert!(refused.contains(&format!("(pid {})", std::process::id())), "{refused}");
        drop(first);
        RepoClaim::acquire(folder.path()).unwrap();
    }
}
