//! Reverts an advance or a checkout that did not complete in a work tree. Saves everything first, and removes only what
//! git has written.

use std::collections::BTreeSet;
use std::io::Read as _;

use gix::objs::tree::EntryKind;

use super::path_guard::GuardedPath;
use crate::objects::diff::{PathDiff, compare_trees};
use crate::objects::object_reader;
use crate::path::display_path;
use crate::repository::program::GitCommand;
use crate::{GitError, HoldBackRule, Id, Identity, Repository, SnapshotRequest};

impl Repository {
    /// Reverts what an incomplete advance changed in this work tree, whose branch is at `old`.
    ///
    /// The files in which the commits differ had no changes when the advance started, so what they hold is its own. A
    /// person may have changed them since: everything is saved first, and an added file is removed only if it is as the
    /// advance wrote it.
    pub fn undo_advance(&self, old: &Id, new: &Id) -> Result<(), GitError> {
        self.undo_update(old, new, "land", &[])
    }

    /// Reverts what an incomplete checkout of `new` changed in this work tree, whose HEAD is at `old`. Files that had
    /// been changed before it, which git does not overwrite, stay as they are.
    pub fn undo_checkout(&self, old: &Id, new: &Id, dirty: &[String]) -> Result<(), GitError> {
        let changes = self.list_changes()?;
        if changes.iter().all(|change| dirty.contains(&change.display_path())) {
            return Ok(());
        }
        self.undo_update(old, new, "checkout", dirty)
    }

    fn undo_update(&self, old: &Id, new: &Id, rescue: &str, dirty: &[String]) -> Result<(), GitError> {
        self.rescue_before_undo(new, rescue)?;
        let repo = self.open()?;
        let read = || {
            let old = object_reader::read_commit_tree(&repo, old.object_id())?;
            let new = object_reader::read_commit_tree(&repo, new.object_id())?;
            compare_trees(&repo, &old, &new)
        };
        let mut differing = read().map_err(GitError::gix("comparing commits", self.git_dir()))?;
        differing.retain(|diff| !dirty.contains(&display_path(&diff.path)));
        let old_paths: BTreeSet<&[u8]> =
            differing.iter().filter(|diff| diff.old.is_some()).map(|diff| diff.path.as_slice()).collect();
        let added: Vec<&PathDiff> =
            differing.iter().filter(|diff| diff.old.is_none() && !old_paths.contains(diff.path.as_slice())).collect();
        // Compares by the attributes the files were written with, which are reverted too.
        let foreign = self.find_foreign_files(&differing)?;
        self.with_stale_lock_retry(|| {
            GitCommand::new(self, "read-tree").args(["-m", "-i", &old.to_string()]).run().map(drop)
        })?;
        let changed: BTreeSet<Vec<u8>> = self.list_changes()?.into_iter().map(|change| change.path).collect();
        for difference in added {
            self.remove_added(&repo, difference, &foreign)?;
        }
        let mut list = Vec::new();
        for difference in differing.iter().filter(|diff| diff.old.is_some() && changed.contains(diff.path.as_slice())) {
            let is_there = self.absolute_path(&difference.path).symlink_metadata().is_ok();
            if !is_there || !self.is_foreign(&repo, difference, &foreign)? {
                list.extend_from_slice(&[difference.path.as_slice(), b"\0"].concat());
            }
        }
        if !list.is_empty() {
            GitCommand::new(self, "checkout-index").args(["--force", "-u", "-z", "--stdin"]).input(list).run()?;
        }
        // The refresh reports differing files; that is no failure.
        GitCommand::new(self, "update-index").args(["-q", "--refresh"]).output().map(drop)
    }

    /// Saves the contents of this work tree before an update is reverted.
    fn rescue_before_undo(&self, new: &Id, rescue: &str) -> Result<(), GitError> {
        let hold_back = HoldBackRule::nested_only();
        let request = SnapshotRequest {
            name: &format!("refs/runner/rescue/{rescue}/{}", new.short(12)),
            message: "What was in the work tree when a landing or a checkout that was cut off was put back",
            author: self.identity().unwrap_or_else(Identity::runner),
            hold_back: &hold_back,
            restore_target: Some(*new),
        };
        self.create_snapshot(&request).map(drop)
    }

    /// Returns the files whose content on disk, as git would store it, differs from what the update writes or removes.
    fn find_foreign_files(&self, differing: &[PathDiff]) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let new: BTreeSet<&[u8]> =
            differing.iter().filter(|diff| diff.new.is_some()).map(|diff| diff.path.as_slice()).collect();
        let removed = differing.iter().map(|diff| diff.path.to_vec()).filter(|path| !new.contains(path.as_slice()));
        let line = |difference: &PathDiff| {
            let (mode, blob) = difference.new?;
            Some([format!("{:o} {blob}\t", mode.value()).as_bytes(), difference.path.as_slice(), b"\0"].concat())
        };
        let lines: Vec<u8> = differing.iter().filter_map(line).flatten().collect();
        let folder = tempfile::tempdir().map_err(GitError::io("making a folder in", &tempfile::env::temp_dir()))?;
        let index = folder.path().join("index");
        let git = |name| GitCommand::new(self, name).env("GIT_INDEX_FILE", &index);
        git("update-index").args(["-z", "--index-info"]).input(lines).run()?;
        // The refresh reports differing files; that is no failure.
        git("update-index").args(["-q", "--refresh"]).output()?;
        let listed = git("diff-files").args(["-z", "--name-only"]).run()?;
        let listed = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec);
        Ok(listed.chain(removed).collect())
    }

    /// Removes a file that an advance added, and the folders this leaves empty, if it holds all or the beginning of
    /// what was written.
    fn remove_added(
        &self,
        repo: &gix::Repository,
        difference: &PathDiff,
        foreign: &BTreeSet<Vec<u8>>,
    ) -> Result<(), GitError> {
        let Some((mode, _)) = difference.new else { return Ok(()) };
        let path = difference.path.as_slice();
        let file = self.absolute_path(path);
        let Some(guarded_path) = GuardedPath::open(self.work_dir(), path).map_err(GitError::io("looking at", &file))?
        else {
            return Ok(());
        };
        let name = display_path(path);
        if self.is_foreign(repo, difference, foreign)? {
            tracing::debug!(file = name, "not removed: no landing has written it");
            return Ok(());
        }
        if guarded_path
            .remove_with_parents(mode.kind() == EntryKind::Commit)
            .map_err(GitError::io("removing", &file))?
        {
            tracing::debug!(file = name, "restored");
        }
        Ok(())
    }

    /// Whether a file holds neither all of what the update writes there, nor the beginning, as a crash leaves it.
    fn is_foreign(
        &self,
        repo: &gix::Repository,
        difference: &PathDiff,
        foreign: &BTreeSet<Vec<u8>>,
    ) -> Result<bool, GitError> {
        let path = difference.path.as_slice();
        if !foreign.contains(path) {
            return Ok(false);
        }
        let reading = GitError::io("reading what a landing has begun in", self.work_dir());
        let Some((_, blob)) = difference.new.filter(|(mode, _)| mode.kind() != EntryKind::Commit) else {
            return Ok(true);
        };
        let opened =
            GuardedPath::open(self.work_dir(), path).map_err(GitError::io("looking at", &self.absolute_path(path)))?;
        let Some(Ok(Some(file))) = opened.map(|guarded_path| guarded_path.open_file()) else { return Ok(true) };
        let whole = object_reader::read_blob(repo, blob)
            .map_err(GitError::gix("reading a file of a commit", self.git_dir()))?;
        let mut content = Vec::new();
        let most = whole.len() as u64 + 1;
        file.take(most).read_to_end(&mut content).map_err(reading)?;
        Ok(content.len() >= whole.len() || !whole.starts_with(&content))
    }
}
