//! Detects and reverts what a process may not change, after every process; work that would be lost is saved.

use std::collections::BTreeMap;

use runner_core::files::layout::{self, PathOwnership, path_ownership};
use runner_core::scope::{Scope, ScopeChange};
use runner_core::tree;

use super::daemon::{SimulatedRun, StepResult};
use super::loaded::LoadedState;
use super::mistake::PlantedMistake;
use super::repository::{FileMap, StoredBlob, differing};

/// What was found and reverted.
#[derive(Debug, Clone, Default)]
pub(crate) struct MischiefFinding {
    /// How history was rewritten.
    pub(crate) history: Option<String>,
    /// Where HEAD was, if the branch still contained From.
    pub(crate) elsewhere: Option<String>,
    /// The runner's paths that were changed.
    pub(crate) reverted: Vec<String>,
    /// Paths that a reviewer wrote.
    pub(crate) wrote: Vec<String>,
}

/// Which process ended, and the task tree to restore; `None` leaves whatever the process left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AfterProcess<'a> {
    pub(crate) phase: &'static str,
    pub(crate) iter: u32,
    pub(crate) tree: Option<&'a str>,
}

impl SimulatedRun {
    /// Detects and reverts what a process may not change. A repetition finds the same.
    pub(crate) fn undo(&mut self, from: &LoadedState, after: AfterProcess<'_>) -> StepResult<MischiefFinding> {
        let mut found = self.live.found.get(after.phase).cloned().unwrap_or_default();
        if found.elsewhere.is_none() {
            found.history = found.history.or_else(|| self.rewritten(from));
        }
        if found.history.is_none() {
            found.elsewhere = found.elsewhere.or_else(|| self.elsewhere());
        }
        let is_astray = found.history.is_some() || found.elsewhere.is_some();
        if !is_astray {
            found.reverted.extend(self.wrong_files(from, after).into_keys());
            found.reverted.sort();
            found.reverted.dedup();
        }
        self.live.found.insert(after.phase, found.clone());
        self.may_die()?;
        // A guard that runs again after a death may write on top of restored files.
        if is_astray && !self.is_as_at(from) {
            self.rescue(from, after)?;
        }
        if self.mistake == Some(PlantedMistake::PutNothingBack) {
            return Ok(found);
        }
        for (path, right) in self.wrong_files(from, after) {
            self.may_die()?;
            if let Some(blob) = self.repository.work.remove(&path) {
                self.witness.aside.insert(blob.id.to_string());
            }
            if let Some(right) = right {
                self.repository.work.insert(path, right);
            }
        }
        Ok(found)
    }

    /// Restores what differs from From outside of the scope, except these paths.
    pub(crate) fn restore_outside(
        &mut self,
        from: &LoadedState,
        after: AfterProcess<'_>,
        exempt: &[String],
    ) -> StepResult<Vec<String>> {
        let scope = Scope::new(&from.config);
        let mut restored = self.live.outside.get(after.phase).cloned().unwrap_or_default();
        let work = &self.repository.work;
        let held_back = self.repository.held_back();
        let changes = differing(&from.files, work).filter(|path| !held_back.iter().any(|held| held == path));
        let change = |path: &str| ScopeChange {
            path: path.to_owned(),
            at_from: from.files.contains_key(path),
            is_there: work.contains_key(path),
        };
        let mut paths = scope.paths_to_restore(&changes.map(change).collect::<Vec<_>>());
        paths.retain(|path| !exempt.contains(path));
        if paths.is_empty() || self.mistake == Some(PlantedMistake::PutNothingBack) {
            return Ok(restored);
        }
        restored.extend_from_slice(&paths);
        restored.sort();
        restored.dedup();
        self.coverage.insert(format!("outside after {}", after.phase));
        self.live.outside.insert(after.phase, restored.clone());
        self.may_die()?;
        self.keep_everything(after)?;
        for path in paths {
            let removed = self.repository.work.remove(&path);
            self.witness.aside.extend(removed.map(|removed| removed.id.to_string()));
            self.repository.work.extend(from.files.get(&path).map(|blob| (path.clone(), blob.clone())));
            self.may_die()?;
        }
        Ok(restored)
    }

    fn is_as_at(&self, from: &LoadedState) -> bool {
        self.repository.strayed.is_none() && self.repository.tip == from.commit && self.repository.changes().is_empty()
    }

    fn rewritten(&self, from: &LoadedState) -> Option<String> {
        if let Some(strayed) = self.repository.strayed.filter(|strayed| !strayed.contains("HEAD")) {
            return Some(strayed.to_owned());
        }
        let is_within = self.repository.ancestors(&self.repository.tip).any(|commit| commit.id == from.commit);
        (!is_within).then(|| "the branch does not contain the commit at which the session began".to_owned())
    }

    fn elsewhere(&self) -> Option<String> {
        self.repository.strayed.map(str::to_owned)
    }

    /// Saves everything under a reference, then sets HEAD, branch and work tree to From.
    fn rescue(&mut self, from: &LoadedState, after: AfterProcess<'_>) -> StepResult<()> {
        self.keep_everything(after)?;
        self.repository.restore(&from.commit);
        Ok(())
    }

    /// Saves tip and work tree under a reference.
    pub(crate) fn keep_everything(&mut self, after: AfterProcess<'_>) -> StepResult<()> {
        if self.mistake != Some(PlantedMistake::RestoreWithoutRescue) {
            let tip = self.repository.tip.clone();
            let files = self.repository.work.clone();
            let rescue = self.repository.store(Some(tip), &format!("rescue: {}", after.phase), files);
            self.repository.keep(&format!("refs/runner/rescue/{:04}", after.iter), &rescue);
            self.may_die()?;
        }
        Ok(())
    }

    /// Compares `.runner/` with From: returns the expected content of each differing path.
    pub(crate) fn wrong_files(
        &self,
        from: &LoadedState,
        after: AfterProcess<'_>,
    ) -> BTreeMap<String, Option<StoredBlob>> {
        let is_runners = |path: &&str| path.starts_with(".runner/") && *path != layout::TREE;
        let differing = differing(&from.files, &self.repository.work).filter(is_runners);
        let wrong = differing.filter(|path| !self.is_right(path, &from.files));
        let mut wrong: BTreeMap<String, Option<StoredBlob>> =
            wrong.map(|path| (path.to_owned(), from.files.get(path).cloned())).collect();
        if let Some(text) = after.tree.map(|text| StoredBlob::of(text.as_bytes()))
            && self.repository.work.get(layout::TREE).is_none_or(|blob| blob.id != text.id)
        {
            wrong.insert(layout::TREE.to_owned(), Some(text));
        }
        wrong
    }

    /// Whether a differing path may differ in this way.
    fn is_right(&self, path: &str, from: &FileMap) -> bool {
        let blob = self.repository.work.get(path);
        match (path_ownership(path.strip_prefix(".runner/").unwrap_or(path)), from.get(path), blob) {
            (PathOwnership::Agent | PathOwnership::Ignored, _, _) => true,
            (PathOwnership::AppendOnly, Some(old), Some(now)) => now.bytes.starts_with(&old.bytes),
            (PathOwnership::AppendOnly, None, Some(_)) => true,
            (PathOwnership::AppendOnly, _, None) | (PathOwnership::Runner, _, _) => false,
        }
    }

    /// Returns the tree to restore after a guard: the session's if it is legal, otherwise that of From.
    pub(crate) fn standing_tree(from: &LoadedState, legal: Option<&protocol::tree::TaskTree>) -> String {
        tree::canonical(legal.unwrap_or(&from.tree))
    }
}
