//! Stages the whole work tree into an index in memory, as `git add -A` would, except for what is held back and what
//! cannot be stored. Writes blobs, but neither the index file nor a reference.

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;
use gix::bstr::{BStr, BString};
use gix::index::State;
use gix::index::entry::Stage;

use super::content::{ContentStore, StoreFailure, encoding_error};
use super::hold_back::{HoldBackRule, HoldBackVerdict};
use super::scan::{ScanFinding, WorktreeScan};
use crate::index::cachetree;
use crate::index::edits::{IndexEdits, apply_edits};
use crate::{GitError, Repository};

/// An index with the contents of the work tree.
pub(crate) struct StagedIndex {
    pub(crate) state: State,
    /// Paths held back; nested repositories end in a slash.
    pub(crate) held_back: BTreeSet<BString>,
    /// Paths that git cannot store.
    pub(crate) unstorable: BTreeSet<BString>,
    /// Blobs that are new in the index.
    pub(crate) written: Vec<ObjectId>,
}

/// Result of collecting the work tree as a whole.
pub(crate) struct CollectedTree {
    pub(crate) tree: ObjectId,
    pub(crate) held_back: BTreeSet<BString>,
    pub(crate) unstorable: BTreeSet<BString>,
    /// Objects that may not be durable yet.
    pub(crate) written: Vec<ObjectId>,
}

/// Context for staging.
pub(crate) struct WorktreeStager<'a> {
    pub(crate) repo: &'a gix::Repository,
    pub(crate) repository: &'a Repository,
    pub(crate) rule: &'a HoldBackRule,
}

impl WorktreeStager<'_> {
    /// Updates `state` with what `scan` found.
    pub(crate) fn run(self, state: State, scan: WorktreeScan) -> Result<StagedIndex, GitError> {
        let held_back = BTreeSet::new();
        let unstorable = BTreeSet::new();
        let written = Vec::new();
        let mut staged = StagedIndex { state, held_back, unstorable, written };
        let mut found = scan.findings;
        self.remove_held_back(&mut found, &mut staged)?;
        remove_missing_entries(&mut staged.state, &found);
        let edits = self.store_files(&found, &scan.renormalized, &mut staged)?;
        apply_edits(&mut staged.state, edits);
        Ok(staged)
    }

    /// Removes what the rule holds back from `found`, and from the index if it was added there since HEAD.
    fn remove_held_back(
        &self,
        found: &mut BTreeMap<BString, ScanFinding>,
        staged: &mut StagedIndex,
    ) -> Result<(), GitError> {
        let submodules = declared_submodules(self.repo);
        let mut judge = self.rule.judge(self.repo, self.repository)?;
        for (path, is_repository) in list_new_paths(found) {
            if is_repository && submodules.contains(&path) {
                continue;
            }
            let mut name = path.clone();
            if is_repository {
                name.push(b'/');
            }
            let HoldBackVerdict::HeldBack(name) = judge.judge_path(name.as_ref())? else { continue };
            found.remove(&path);
            remove_entry(&mut staged.state, path.as_ref());
            staged.held_back.insert(name);
        }
        Ok(())
    }

    fn store_files(
        &self,
        found: &BTreeMap<BString, ScanFinding>,
        renormalized: &BTreeSet<BString>,
        staged: &mut StagedIndex,
    ) -> Result<IndexEdits, GitError> {
        let mut contents = ContentStore::new(self.repo, self.repository, &staged.state)?;
        let mut edits = IndexEdits::new();
        for (path, finding) in found {
            if matches!(finding, ScanFinding::Removed) {
                continue;
            }
            if contents.has_text_encoding(path.as_ref()) {
                return Err(encoding_error(self.repository, path.as_ref()));
            }
            let known =
                staged.state.entry_by_path_and_stage(path.as_ref(), Stage::Unconflicted).map(|entry| entry.mode);
            let stored = match known.filter(|_| renormalized.contains(path)) {
                Some(known) => contents.store_renormalized(path.as_ref(), known),
                None => contents.store_file(path.as_ref(), known, &staged.state),
            };
            match stored {
                Ok(stored) => {
                    staged.written.push(stored.id);
                    edits.insert(path.clone(), Some(stored));
                }
                Err(StoreFailure::Missing) => drop(edits.insert(path.clone(), None)),
                Err(StoreFailure::Unstorable) => {
                    staged.unstorable.insert(path.clone());
                    if *finding == ScanFinding::Unmerged {
                        edits.insert(path.clone(), None);
                    }
                }
                Err(StoreFailure::Failed(error)) => return Err(error),
            }
        }
        Ok(edits)
    }
}

/// Returns the paths that HEAD lacks, and whether each is a repository.
fn list_new_paths(found: &BTreeMap<BString, ScanFinding>) -> Vec<(BString, bool)> {
    let new = found.iter().filter_map(|(path, finding)| match finding {
        ScanFinding::New => Some((path.clone(), false)),
        ScanFinding::NewRepository => Some((path.clone(), true)),
        _ => None,
    });
    new.collect()
}

/// Removed attribute files must not affect what is stored next, so removals come first.
fn remove_missing_entries(state: &mut State, found: &BTreeMap<BString, ScanFinding>) {
    let gone: Vec<&BString> =
        found.iter().filter(|(_, finding)| **finding == ScanFinding::Removed).map(|(path, _)| path).collect();
    for path in &gone {
        cachetree::invalidate_path(state, path.as_ref());
    }
    let gone: BTreeSet<&BStr> = gone.into_iter().map(AsRef::as_ref).collect();
    if !gone.is_empty() {
        state.remove_entries(|_, path, _| gone.contains(path));
    }
}

fn remove_entry(state: &mut State, path: &BStr) {
    cachetree::invalidate_path(state, path);
    if state.entry_range(path).is_some() {
        state.remove_entries(|_, entry, _| entry == path);
    }
}

/// Returns the paths that `.gitmodules` names.
pub(crate) fn declared_submodules(repo: &gix::Repository) -> BTreeSet<BString> {
    let Ok(Some(modules)) = repo.open_modules_file() else {
        return BTreeSet::new();
    };
    modules.names().filter_map(|name| modules.path(name).ok()).collect()
}
