//! The work trees of a repository: which one has a branch checked out or is working on it, and what is in the way of
//! files that will appear there.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice as _;

use crate::durable::read_regular_file;
use crate::objects::diff::{PathDiff, compare_trees};
use crate::objects::object_reader;
use crate::path::display_path;
use crate::{ChangeKind, GitError, Id, Repository, WorktreeChange};

/// Files that git keeps while a branch is being rebased or bisected with a detached HEAD.
const OPERATION_FILES: [(&str, &str); 3] =
    [("rebase-merge/head-name", "rebase"), ("rebase-apply/head-name", "rebase"), ("BISECT_START", "bisect")];

/// Why the work tree that has a branch checked out cannot be updated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorktreeConflict {
    /// The branch is being rebased or bisected.
    #[error("a {operation} of {branch} is in progress in {}", path.display())]
    OperationInProgress {
        /// `rebase` or `bisect`.
        operation: String,
        /// The branch.
        branch: String,
        /// The work tree.
        path: PathBuf,
    },
    /// Another work tree has the branch checked out, or will return to it.
    #[error("{branch} is in use in {}", path.display())]
    BranchInUse {
        /// The branch.
        branch: String,
        /// The work tree.
        path: PathBuf,
        /// An existing work tree of the same repository.
        from: PathBuf,
    },
    /// The work tree that had the branch checked out has switched away meanwhile.
    #[error("{} has left {branch} since: nothing was moved", path.display())]
    BranchSwitched {
        /// The branch.
        branch: String,
        /// The work tree.
        path: PathBuf,
    },
    /// An untracked file is where the result has a file.
    #[error("{} is in the way ({})", one_line_path(file), if *is_ignored { "ignored" } else { "untracked" })]
    FileInTheWay {
        /// The work tree.
        path: PathBuf,
        /// The file, relative to it.
        file: PathBuf,
        /// The path of the result that needs its place: the file, or a folder around it that becomes a file or a link.
        blocked: PathBuf,
        /// Whether it is ignored.
        is_ignored: bool,
    },
    /// Files that the result changes have uncommitted changes.
    #[error("{} has changes that are not committed: {}", path.display(), files.join(", "))]
    Dirty {
        /// The work tree.
        path: PathBuf,
        /// The first few changed files.
        files: Vec<String>,
    },
}

impl Repository {
    /// Returns all existing work trees of the repository, this one first.
    pub fn list_work_trees(&self) -> Result<Vec<Self>, GitError> {
        let mut found = vec![self.clone()];
        for (path, _) in self.list_work_tree_dirs()? {
            // A work tree that was removed or moved has nothing checked out.
            let Ok(other) = Self::discover_with(&path, self.sources) else { continue };
            let is_new = found.iter().all(|known| known.git_dir() != other.git_dir());
            if is_new && other.common_dir() == self.common_dir() {
                found.push(other);
            }
        }
        Ok(found)
    }

    /// Returns `rebase` or `bisect` if this work tree is doing that to the branch `name`.
    pub fn find_branch_operation(&self, name: &str) -> Option<&'static str> {
        let branch = format!("refs/heads/{name}");
        let names = |text: &str| [branch.as_str(), name].contains(&text.trim());
        let noted =
            |file: &str| read_regular_file(&self.git_dir().join(file)).is_ok_and(|text| names(&text.to_str_lossy()));
        OPERATION_FILES.iter().find(|(file, _)| noted(file)).map(|(_, operation)| *operation)
    }

    /// Finds what prevents this work tree, which is at commit `old`, from moving to commit `new`.
    ///
    /// Changed files are allowed if both commits have the same there, and untracked files unless they are where a file
    /// of `new` will appear.
    pub fn find_work_tree_conflict(
        &self,
        branch: &str,
        old: &Id,
        new: &Id,
    ) -> Result<Option<WorktreeConflict>, GitError> {
        let path = || self.work_dir().to_owned();
        if let Some(operation) = self.operation() {
            let operation = operation.to_string();
            let branch = branch.to_owned();
            return Ok(Some(WorktreeConflict::OperationInProgress { operation, branch, path: path() }));
        }
        let differing = self.compare_commits(old, new)?;
        let changes = self.list_changes()?;
        let updated: BTreeSet<&[u8]> = differing.iter().map(|difference| difference.path.as_slice()).collect();
        let dirty = changes
            .iter()
            .filter(|change| change.kind != ChangeKind::Untracked && overlaps_any(&updated, &change.path));
        let files: Vec<String> = dirty.map(WorktreeChange::display_path).take(10).collect();
        if !files.is_empty() {
            return Ok(Some(WorktreeConflict::Dirty { path: path(), files }));
        }
        let untracked = |file: &[u8]| changes.iter().any(|change| is_at_or_above(&change.path, file));
        let in_the_way = list_added_paths(&differing)
            .into_iter()
            .find_map(|added| Some((self.find_file_in_the_way(added, old).transpose()?, added)));
        let Some((file, added)) = in_the_way else { return Ok(None) };
        let file = file?;
        let place = |path: &[u8]| PathBuf::from(OsStr::from_bytes(path));
        let is_below = file.strip_prefix(added).is_some_and(|below| below.starts_with(b"/"));
        let blocked = place(if is_below { added } else { &file });
        let is_ignored = !untracked(&file);
        Ok(Some(WorktreeConflict::FileInTheWay { path: path(), file: place(&file), blocked, is_ignored }))
    }

    /// Returns the submodules whose folders will be out of date after the work tree has moved from `old` to `new`: git
    /// does not write their files.
    pub fn find_moved_submodules(&self, old: &Id, new: &Id) -> Result<Vec<String>, GitError> {
        let differing = self.compare_commits(old, new)?;
        let is_submodule = |difference: &PathDiff| difference.new.is_some_and(|(mode, _)| mode.is_commit());
        Ok(differing.iter().filter(|diff| is_submodule(diff)).map(|diff| display_path(&diff.path)).collect())
    }

    fn compare_commits(&self, old: &Id, new: &Id) -> Result<Vec<PathDiff>, GitError> {
        let repo = self.open()?;
        let read = || {
            let old = object_reader::read_commit_tree(&repo, old.object_id())?;
            let new = object_reader::read_commit_tree(&repo, new.object_id())?;
            compare_trees(&repo, &old, &new)
        };
        read().map_err(GitError::gix("comparing commits", self.git_dir()))
    }

    /// Returns a path at, below or above `path` that exists and is not from the commit `old`.
    fn find_file_in_the_way(&self, path: &[u8], old: &Id) -> Result<Option<Vec<u8>>, GitError> {
        let above = path.find_iter(b"/").map(|slash| &path[..slash]);
        for folder in above {
            match self.absolute_path(folder).symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Ok(_) if self.has_path(old, folder)? => return Ok(None),
                Ok(_) => return Ok(Some(folder.to_owned())),
                Err(_) => return Ok(None),
            }
        }
        match self.absolute_path(path).symlink_metadata() {
            Ok(found) if found.is_dir() => self.find_foreign_file(path, old),
            Ok(_) => Ok(Some(path.to_owned())),
            Err(_) => Ok(None),
        }
    }

    /// Returns the first file in a folder that is not from the commit `old`.
    fn find_foreign_file(&self, folder: &[u8], old: &Id) -> Result<Option<Vec<u8>>, GitError> {
        let place = self.absolute_path(folder);
        for entry in fs::read_dir(&place).map_err(GitError::io("listing", &place))? {
            let entry = entry.map_err(GitError::io("listing", &place))?;
            let path = [folder, b"/", entry.file_name().as_encoded_bytes()].concat();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let foreign = match is_folder {
                true => self.find_foreign_file(&path, old)?,
                false if self.has_path(old, &path)? => None,
                false => Some(path),
            };
            if foreign.is_some() {
                return Ok(foreign);
            }
        }
        Ok(None)
    }

    fn has_path(&self, commit: &Id, path: &[u8]) -> Result<bool, GitError> {
        let repo = self.open()?;
        let found = || {
            object_reader::find_at_path(
                &repo,
                object_reader::read_commit_tree(&repo, commit.object_id())?.id,
                path.as_bstr(),
            )
        };
        Ok(found().map_err(GitError::gix("looking up a file of a commit", self.git_dir()))?.is_some())
    }
}

/// Returns the paths that only the newer of two commits has. A file that becomes a link is reported as removed and added.
fn list_added_paths(differing: &[PathDiff]) -> Vec<&[u8]> {
    let removed: BTreeSet<&[u8]> = differing
        .iter()
        .filter(|difference| difference.new.is_none())
        .map(|difference| difference.path.as_slice())
        .collect();
    let appearing = differing.iter().filter(|difference| difference.old.is_none());
    appearing.map(|difference| difference.path.as_slice()).filter(|path| !removed.contains(path)).collect()
}

/// Whether a path is one of a set, or above or below one.
fn overlaps_any(paths: &BTreeSet<&[u8]>, path: &[u8]) -> bool {
    let below = [path, b"/"].concat();
    let mut above = path.find_iter(b"/").map(|slash| &path[..slash]);
    let has_below = || paths.range(below.as_slice()..).next().is_some_and(|next| next.starts_with(&below));
    paths.contains(path) || above.any(|folder| paths.contains(folder)) || has_below()
}

/// Returns a path in one line.
fn one_line_path(path: &Path) -> String {
    let text = path.display().to_string();
    if text.contains(char::is_control) { format!("{text:?}") } else { text }
}

/// Whether a path of the status is the file itself or a folder that contains it.
fn is_at_or_above(change: &[u8], file: &[u8]) -> bool {
    change == file || change.ends_with(b"/") && file.starts_with(change)
}
