//! Repairs HEAD and a branch after a session removed or garbled them, using the commits they pointed to.
//!
//! Leaves HEAD detached at the last commit in the reflogs; what belongs where is decided in `rescue`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice as _;
use gix::refs::FullName;
use runner_os::dir_permissions;

use crate::durable::{read_log_end, replace_file};
use crate::git_dir_snapshot::GitDirSnapshot;
use crate::objects::object_reader;
use crate::repository::engine::RefStore;
use crate::repository::program::GitCommand;
use crate::{GitError, Id, Repository};

/// Number of entries at the end of a reflog searched for an existing commit.
const LOG_ENTRIES: usize = 100;

impl Repository {
    /// Describes what is wrong with HEAD, `branch` or the packed references, if git cannot read it.
    pub fn find_unreadable_ref(&self, branch: &str) -> Result<Option<String>, GitError> {
        let repo = self.open()?;
        if self.choose_ref_store(&repo) != RefStore::Files {
            return Ok(None);
        }
        if repo.refs.cached_packed_buffer().is_err() {
            return Ok(Some("the packed references were garbled".to_owned()));
        }
        if !is_readable(&self.git_dir().join("HEAD"), true)? {
            return Ok(Some("HEAD was removed or garbled".to_owned()));
        }
        let file = self.branch_file(branch);
        if file.symlink_metadata().is_ok() && !is_readable(&file, false)? {
            return Ok(Some(format!("branch {branch} was garbled")));
        }
        let is_lost = match self.find_branch_tip(branch) {
            Ok(Some(tip)) => !has_commit(&repo, tip)?,
            Ok(None) => false,
            Err(GitError::Corrupt { .. }) => true,
            Err(error) => return Err(error),
        };
        Ok(is_lost.then(|| format!("branch {branch} names a commit that is not there")))
    }

    /// Makes references readable again, and detaches HEAD at the last known commit of `branch`, or else at `from`.
    ///
    /// Does nothing if HEAD resolves to a commit. Only overwrites what holds no reference.
    pub fn repair_refs(&self, branch: &str, from: &Id, before: Option<&GitDirSnapshot>) -> Result<(), GitError> {
        let repo = self.open()?;
        if self.choose_ref_store(&repo) != RefStore::Files {
            return Ok(());
        }
        if let (Err(_), Some(before)) = (repo.refs.cached_packed_buffer(), before) {
            self.restore_packed_refs(before)?;
        }
        let unreadable = self.find_unreadable_ref(branch)?;
        if unreadable.is_none() && self.head()?.commit().is_some() {
            return Ok(());
        }
        let head = self.git_dir().join("HEAD");
        let file = self.branch_file(branch);
        let is_garbled = file.symlink_metadata().is_ok() && !is_readable(&file, false)?;
        // An unreadable branch is what is being repaired here: its reflog, or else `from`, takes its place.
        let known = self.find_branch_tip(branch).ok().flatten().filter(|_| !is_garbled);
        let known = known.map(|tip| Ok(has_commit(&repo, tip)?.then_some(tip))).transpose()?.flatten();
        remove_foreign_ref(&head, true)?;
        remove_foreign_ref(&file, known.is_none())?;
        let tip = match known {
            Some(tip) => tip,
            None => self.find_last_logged(&repo, branch)?.unwrap_or(*from),
        };
        self.detach_head(&tip)
    }

    /// Detaches HEAD at a commit, and leaves index and work tree as they are.
    pub fn detach_head(&self, commit: &Id) -> Result<(), GitError> {
        if self.choose_ref_store(&self.open()?) != RefStore::Files {
            return GitCommand::new(self, "update-ref")
                .args(["--no-deref", "HEAD", &commit.to_string()])
                .run()
                .map(drop);
        }
        let head = self.git_dir().join("HEAD");
        replace_file(&head, format!("{commit}\n").as_bytes(), 0o644).map_err(GitError::io("writing", &head))
    }

    /// Removes the entries of HEAD's reflog and the branch's that name incomplete commits: git cannot pack with them.
    pub fn prune_reflogs(&self, branch: &str) -> Result<(), GitError> {
        let limits = ["expire", "--stale-fix", "--expire=never", "--expire-unreachable=never", "HEAD"];
        GitCommand::new(self, "reflog").args(limits).arg(format!("refs/heads/{branch}")).run().map(drop)
    }

    fn branch_file(&self, branch: &str) -> PathBuf {
        self.common_dir().join("refs/heads").join(branch)
    }

    /// Returns the newest existing commit in the reflogs of the branch and of HEAD.
    fn find_last_logged(&self, repo: &gix::Repository, branch: &str) -> Result<Option<Id>, GitError> {
        let logs = [self.common_dir().join("logs/refs/heads").join(branch), self.git_dir().join("logs/HEAD")];
        for log in &logs {
            // An unreadable reflog yields nothing: the other one is tried, and in the end the caller's commit is used.
            let text = read_log_end(log).unwrap_or_default();
            let entries = text.lines().rev().take(LOG_ENTRIES);
            for id in entries.filter_map(|line| line.split(|byte| *byte == b' ').nth(1)?.to_str().ok()?.parse().ok()) {
                if has_commit(repo, id)? {
                    return Ok(Some(id));
                }
            }
        }
        Ok(None)
    }
}

/// Whether a commit exists and can be read; fails if another object is in its place, which is not the same as missing.
fn has_commit(repo: &gix::Repository, id: Id) -> Result<bool, GitError> {
    let found =
        object_reader::read_commit(repo, id.object_id()).map_err(GitError::gix("reading a commit", repo.git_dir()));
    match found {
        Ok(_) => Ok(true),
        Err(error @ GitError::HashMismatch { .. }) => Err(error),
        Err(_) => Ok(false),
    }
}

/// Whether a file holds a reference: an object id, or, with `symbolic`, the name of another one.
///
/// Transient errors, such as a failing disk or a lack of file descriptors, prove nothing: an intact reference would be
/// overwritten.
fn is_readable(file: &Path, symbolic: bool) -> Result<bool, GitError> {
    let found = match file.symlink_metadata() {
        Ok(found) => found,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(false),
        Err(error) => return Err(GitError::io("looking at", file)(error)),
    };
    if !found.is_file() || found.len() > 4096 {
        return Ok(false);
    }
    let text = match fs::read(file) {
        Ok(text) => text,
        // A session can remove the read permission.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(false),
        Err(error) => return Err(GitError::io("reading", file)(error)),
    };
    let text = text.trim_ascii_end().to_str_lossy();
    Ok(match text.strip_prefix("ref:") {
        Some(name) => {
            symbolic && FullName::try_from(name.trim()).is_ok_and(|name| name.as_bstr().starts_with(b"refs/"))
        }
        None => text.parse::<Id>().is_ok_and(|id| id.to_string().bytes().any(|digit| digit != b'0')),
    })
}

/// Removes a folder, or a garbled file, from the place of a reference's file.
fn remove_foreign_ref(file: &Path, is_garbled: bool) -> Result<(), GitError> {
    match file.symlink_metadata() {
        Ok(found) if found.is_dir() || is_garbled => dir_permissions::remove_all(file),
        _ => Ok(()),
    }
    .map_err(GitError::io("removing", file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_that_the_system_refuses_to_show_is_not_taken_for_garbled() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("HEAD");
        assert!(!is_readable(&file, true).unwrap(), "none is there");
        fs::write(&file, "ref: refs/heads/main\n").unwrap();
        assert!(is_readable(&file, true).unwrap());
        fs::write(&file, "\0\0").unwrap();
        assert!(!is_readable(&file, true).unwrap(), "it is garbled");
        is_readable(&folder.path().join("x".repeat(300)), true).unwrap_err();
    }
}
