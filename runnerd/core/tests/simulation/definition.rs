//! The guard's definition: what a commit and the work tree have of it, and the accepted one in its place.

use std::collections::BTreeMap;

use runner_core::definition::{self, Definition, Departure, Guarded};
use runner_core::message::RunnerCommit;
use runner_core::policy::OnChange;

use super::daemon::{Course, Lived};
use super::loaded::{Loaded, is_definition};
use super::mistake::Mistake;
use super::repository::{Blob, Commit, Files};

/// What names the definition, unless a person changes that.
pub(crate) const DEFINITION: [&str; 2] = [JUSTFILE, "ci/"];
/// The file of it that every configuration names.
pub(crate) const JUSTFILE: &str = "justfile";

/// What stood where the accepted files are: nothing, or a file.
pub(crate) type Moved = BTreeMap<String, Option<Blob>>;

/// Returns the definition among some files.
pub(crate) fn among(files: &Files, names: &[String]) -> Definition {
    let is_part = |(path, _): &(&String, &Blob)| is_definition(names, path);
    files.iter().filter(is_part).map(|(path, blob)| (path.clone(), blob.id.to_string())).collect()
}

impl Course {
    /// Returns the definition at a commit, and what a person has accepted as the commit tells it.
    pub(crate) fn guarded(&self, at: &Loaded) -> Guarded {
        let names = &at.settings.definition;
        let committed = among(&at.files, names);
        let kept = &at.run_state.guard_definition;
        let is_runners = |commit: &&Commit| RunnerCommit::parse(&commit.message).is_ok();
        let last = self.repository.ancestors(&at.commit).find(is_runners).filter(|last| last.id != at.commit);
        let before = last.and_then(|last| Loaded::of(last).ok());
        let accepted = before.map_or_else(
            || kept.clone(),
            |before| definition::accepted(kept, &among(&before.files, &before.settings.definition), &committed),
        );
        let accepted = accepted.into_iter().filter(|(path, _)| is_definition(names, path)).collect();
        Guarded { accepted, committed }
    }

    /// Compares the work tree with what was accepted.
    pub(crate) fn departure(&self, from: &Loaded) -> Departure {
        let standing = among(&self.repository.work, &from.settings.definition);
        Departure::between(&self.guarded(from).accepted, &standing)
    }

    /// Makes the definition what the guard is to run with.
    pub(crate) fn lay_out(&mut self, from: &Loaded, with_accepted: bool) -> Lived<()> {
        self.swap_back();
        let found = self.departure(from);
        self.live.departure = self.live.departure.and(&found);
        self.may_die()?;
        if found.answer(from.settings.policy.on_change) == OnChange::Revert {
            for (path, blob) in self.accepted_files(from, &found) {
                self.stand_aside(&path);
                self.may_die()?;
                self.repository.work.extend(blob.map(|blob| (path, blob)));
            }
        }
        self.live.before_guard.get_or_insert_with(|| (self.repository.tip.clone(), self.repository.work.clone()));
        self.may_die()?;
        if with_accepted && self.mistake != Some(Mistake::GuardWithChanged) {
            let files = self.accepted_files(from, &found);
            let standing = |path: &String| self.repository.work.get(path).cloned();
            self.live.moved = Some(files.keys().map(|path| (path.clone(), standing(path))).collect());
            self.may_die()?;
            for (path, blob) in files {
                self.repository.work.remove(&path);
                self.repository.work.extend(blob.map(|blob| (path, blob)));
                self.may_die()?;
            }
        }
        Ok(())
    }

    /// Gives one file of the definition another name, in it or outside of it.
    pub(crate) fn rename_in_definition(&mut self) {
        let to = *self.random.pick(&["ci/check.sh", "ci/checks.sh", "src/check.sh", "ci/part-00.sh"]);
        let from = self.repository.work.keys().find(|path| path.starts_with("ci/") && *path != to).cloned();
        let moved = from.and_then(|from| self.repository.work.remove(&from));
        self.repository.work.extend(moved.map(|blob| (to.to_owned(), blob)));
    }

    /// Puts back what stood where the accepted files are; what a guard has made of these is kept aside.
    pub(crate) fn swap_back(&mut self) {
        for (path, blob) in self.live.moved.take().unwrap_or_default() {
            self.stand_aside(&path);
            self.repository.work.extend(blob.map(|blob| (path, blob)));
        }
    }

    fn stand_aside(&mut self, path: &str) {
        let there = self.repository.work.remove(path);
        self.witness.aside.extend(there.map(|there| there.id.to_string()));
    }

    /// Returns what was accepted at the paths that depart.
    fn accepted_files(&self, from: &Loaded, departure: &Departure) -> Moved {
        let accepted = self.guarded(from).accepted;
        let blob = |path: &String| {
            let id = accepted.get(path)?;
            let known = self.repository.ancestors(&from.commit).filter_map(|commit| commit.files.get(path));
            known.into_iter().find(|blob| *blob.id == **id).cloned()
        };
        departure.paths.iter().map(|path| (path.clone(), blob(path))).collect()
    }
}
