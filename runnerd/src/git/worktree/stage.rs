//! Puts everything that the work tree holds into an index in memory, as `git add -A` would, but for what is held back
//! and what cannot be stored. Writes blobs; neither the index file nor a reference.

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;
use gix::bstr::{BStr, BString};
use gix::index::State;
use gix::index::entry::Stage;

use super::content::{Contents, Refused, recoded};
use super::hold_back::{HoldBack, Verdict};
use super::scan::{Finding, Scan};
use crate::git::index::cachetree;
use crate::git::index::edits::{Edits, apply};
use crate::git::{GitError, Repository};

/// An index that says what the work tree holds.
pub(in crate::git) struct Staged {
    pub(in crate::git) state: State,
    /// Paths held back; those of repositories end in a slash.
    pub(in crate::git) held_back: BTreeSet<BString>,
    /// Paths that git cannot store.
    pub(in crate::git) unstorable: BTreeSet<BString>,
    /// Blobs that are in the index now and were not before.
    pub(in crate::git) written: Vec<ObjectId>,
}

/// What became of the work tree as a whole.
pub(in crate::git) struct Collected {
    pub(in crate::git) tree: ObjectId,
    pub(in crate::git) held_back: BTreeSet<BString>,
    pub(in crate::git) unstorable: BTreeSet<BString>,
    /// Objects that are not on disk for sure.
    pub(in crate::git) written: Vec<ObjectId>,
}

/// What has to be known to stage.
pub(in crate::git) struct Staging<'a> {
    pub(in crate::git) repo: &'a gix::Repository,
    pub(in crate::git) paths: &'a Repository,
    pub(in crate::git) rule: &'a HoldBack,
}

impl Staging<'_> {
    /// Brings `state` to what `scan` saw.
    pub(in crate::git) fn run(self, state: State, scan: Scan) -> Result<Staged, GitError> {
        let (held_back, unstorable, written) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        let mut staged = Staged { state, held_back, unstorable, written };
        let mut found = scan.found;
        self.hold_back(&mut found, &mut staged);
        drop_gone(&mut staged.state, &found);
        let edits = self.store((&found, &scan.renormalised), &mut staged)?;
        apply(&mut staged.state, edits);
        Ok(staged)
    }

    /// Takes what the rule holds back out of `found`, and out of the index what was put there since HEAD.
    fn hold_back(&self, found: &mut BTreeMap<BString, Finding>, staged: &mut Staged) {
        let submodules = declared_submodules(self.repo);
        for (path, is_repository) in candidates(found) {
            if is_repository && submodules.contains(&path) {
                continue;
            }
            let mut name = path.clone();
            if is_repository {
                name.push(b'/');
            }
            if self.rule.judge(self.paths, name.as_ref()) != Verdict::HeldBack {
                continue;
            }
            found.remove(&path);
            forget(&mut staged.state, path.as_ref());
            staged.held_back.insert(name);
        }
    }

    fn store(
        &self,
        (found, renormalised): (&BTreeMap<BString, Finding>, &BTreeSet<BString>),
        staged: &mut Staged,
    ) -> Result<Edits, GitError> {
        let mut contents = Contents::new(self.repo, self.paths, &staged.state)?;
        let mut edits = Edits::new();
        for (path, finding) in found {
            if matches!(finding, Finding::Gone) {
                continue;
            }
            if contents.is_recoded(path.as_ref()) {
                return Err(recoded(self.paths, path.as_ref()));
            }
            let known =
                staged.state.entry_by_path_and_stage(path.as_ref(), Stage::Unconflicted).map(|entry| entry.mode);
            let stored = match known.filter(|_| renormalised.contains(path)) {
                Some(known) => contents.renormalised(path.as_ref(), known),
                None => contents.store(path.as_ref(), known, &staged.state),
            };
            match stored {
                Ok(stored) => {
                    staged.written.push(stored.id);
                    edits.insert(path.clone(), Some(stored));
                }
                Err(Refused::Gone) => drop(edits.insert(path.clone(), None)),
                Err(Refused::Unstorable) => {
                    staged.unstorable.insert(path.clone());
                    if *finding == Finding::Unmerged {
                        edits.insert(path.clone(), None);
                    }
                }
                Err(Refused::Fault(error)) => return Err(error),
            }
        }
        Ok(edits)
    }
}

/// Returns the paths that HEAD lacks, and whether each is a repository.
fn candidates(found: &BTreeMap<BString, Finding>) -> Vec<(BString, bool)> {
    let new = found.iter().filter_map(|(path, finding)| match finding {
        Finding::New => Some((path.clone(), false)),
        Finding::NewRepository => Some((path.clone(), true)),
        _ => None,
    });
    new.collect()
}

/// Attribute files that are gone must not govern what is stored next, so removals come first.
fn drop_gone(state: &mut State, found: &BTreeMap<BString, Finding>) {
    let gone: Vec<&BString> =
        found.iter().filter(|(_, finding)| **finding == Finding::Gone).map(|(path, _)| path).collect();
    for path in &gone {
        cachetree::forget(state, path.as_ref());
    }
    let gone: BTreeSet<&BStr> = gone.into_iter().map(AsRef::as_ref).collect();
    if !gone.is_empty() {
        state.remove_entries(|_, path, _| gone.contains(path));
    }
}

fn forget(state: &mut State, path: &BStr) {
    cachetree::forget(state, path);
    if state.entry_range(path).is_some() {
        state.remove_entries(|_, entry, _| entry == path);
    }
}

/// Returns the paths that `.gitmodules` names.
pub(in crate::git) fn declared_submodules(repo: &gix::Repository) -> BTreeSet<BString> {
    let Ok(Some(modules)) = repo.open_modules_file() else {
        return BTreeSet::new();
    };
    modules.names().filter_map(|name| modules.path(name).ok()).collect()
}
