//! A repository driven by one daemon at a time, though daemons with state folders of their own know nothing of each other.
//!
//! The claim is a lock on git's own folder: it leaves no file behind, ends with the process, and cannot be given to
//! anybody by replacing a file. It keeps out daemons, not programs: an agent does not look at it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Why a repository cannot be driven now.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClaimError {
    /// Another daemon drives a run of it.
    #[error("another daemon{} drives a run of this repository and has locked {}", by(*holder), path.display())]
    Taken {
        /// Git's folder.
        path: PathBuf,
        /// The process that has it, where the system tells.
        holder: Option<u32>,
    },
    /// The folder cannot be locked.
    #[error("locking {}", path.display())]
    Folder {
        /// Git's folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// A repository that no other daemon drives; dropping it lets the next one.
#[derive(Debug)]
pub(super) struct Claim {
    _folder: File,
}

impl Claim {
    /// Takes the claim without waiting. `folder` is git's, which all linked work trees share.
    pub(super) fn take(folder: &Path) -> Result<Self, ClaimError> {
        let failed = |source| ClaimError::Folder { path: folder.to_owned(), source };
        let file = File::open(folder).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            // Not every file system knows locks; the daemon's own files tell whether this one does.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(source)) => return Err(failed(source)),
            Err(TryLockError::WouldBlock) => {
                return Err(ClaimError::Taken { path: folder.to_owned(), holder: holder(&file) });
            }
        }
        Ok(Self { _folder: file })
    }
}

/// Returns the process that the system names for a lock.
fn holder(file: &File) -> Option<u32> {
    let end = format!(":{}", file.metadata().ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = fields.get(1) == Some(&"FLOCK") && fields.get(5).is_some_and(|inode| inode.ends_with(&end));
        fields.get(4).filter(|_| is_it)?.parse().ok()
    })
}

fn by(holder: Option<u32>) -> String {
    holder.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_claim_is_refused_with_the_holder_and_the_first_one_ends_when_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let first = Claim::take(folder.path()).unwrap();
        let refused = Claim::take(folder.path()).unwrap_err().to_string();
        assert!(refused.contains(&folder.path().display().to_string()), "{refused}");
        assert!(refused.contains(&format!("(pid {})", std::process::id())), "{refused}");
        drop(first);
        Claim::take(folder.path()).unwrap();
    }
}
