//! The guard's definition: its files in a commit and in the work tree, and putting the accepted files in their place.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use runner_config::ChangePolicy;
use runner_config::RepoConfig;
use runner_core::guard::definition::{DefinitionDiff, DefinitionState, GuardDefinition, is_in_definition};
use runner_core::guard::watched_files::{self, WatchConfig, WatchQuery, WatchedFiles, find_watched};

use super::daemon::{SimulatedRun, StepResult};
use super::loaded::LoadedState;
use super::mistake::PlantedMistake;
use super::people::is_last_word;
use super::repository::{FileMap, SimulatedCommit, StoredBlob, differing};

/// The globs that name the definition by default; a person can change them.
pub(crate) const DEFINITION: [&str; 2] = ["/justfile", "/ci/**"];
/// The definition file that every configuration names.
pub(crate) const JUSTFILE: &str = "justfile";

/// What was at the path of an accepted file: nothing, or a file.
pub(crate) type MovedFiles = BTreeMap<String, Option<StoredBlob>>;

/// Returns the definition files among these files.
pub(crate) fn among(files: &FileMap, names: &[String]) -> GuardDefinition {
    let is_part = |(path, _): &(&String, &StoredBlob)| is_in_definition(names, path);
    files.iter().filter(is_part).map(|(path, blob)| (path.clone(), blob.id.to_string())).collect()
}

/// Returns what is watched at a commit, the first of these, given its settings and the runner's last commit.
pub(crate) fn watched_at<'c>(
    from: &LoadedState,
    ancestors: impl Iterator<Item = &'c SimulatedCommit> + Clone,
) -> Option<WatchedFiles> {
    let last = ancestors.clone().find(|commit| is_last_word(commit));
    let before = last.filter(|last| last.id != from.commit).map(LoadedState::of).transpose().ok()?;
    let changed = before.as_ref().map(|before| differing(&before.files, &from.files).map(str::to_owned).collect());
    let query = WatchQuery {
        now: set(from),
        before: Some(set(before.as_ref().unwrap_or(from))),
        changed: &changed.unwrap_or_default(),
        matches: is_in_definition,
    };
    let Ok(watched) =
        find_watched(&query, &mut FilesAt { files: &from.files, ancestors: &ancestors.collect::<Vec<_>>() });
    Some(watched)
}

/// Returns what a run that begins with these files watches.
pub(crate) fn watched_from_start(files: &FileMap, config: &RepoConfig) -> WatchedFiles {
    let accepted = GuardDefinition::new();
    let query = WatchQuery {
        now: watch_config(config, &accepted),
        before: None,
        changed: &BTreeSet::new(),
        matches: is_in_definition,
    };
    let Ok(watched) = find_watched(&query, &mut FilesAt { files, ancestors: &[] });
    watched
}

fn set(loaded: &LoadedState) -> WatchConfig<'_> {
    watch_config(&loaded.config, &loaded.run_state.guard_definition)
}

fn watch_config<'a>(config: &'a RepoConfig, accepted: &'a GuardDefinition) -> WatchConfig<'a> {
    WatchConfig { command: &config.guard.command, configured: config.guard.definition_globs(), accepted }
}

/// The files of a commit, and the earlier files of which some were accepted.
struct FilesAt<'a> {
    files: &'a FileMap,
    ancestors: &'a [&'a SimulatedCommit],
}

impl watched_files::CommitFiles for FilesAt<'_> {
    type Error = Infallible;

    fn form_at(&mut self, path: &str) -> Result<Option<String>, Infallible> {
        Ok(self.files.get(path).map(|blob| blob.id.to_string()))
    }

    fn all_forms(&mut self) -> Result<GuardDefinition, Infallible> {
        Ok(self.files.iter().map(|(path, blob)| (path.clone(), blob.id.to_string())).collect())
    }

    fn is_submodule(&mut self, _: &str) -> Result<bool, Infallible> {
        Ok(false)
    }

    fn read_content(&mut self, form: &str) -> Result<Vec<u8>, Infallible> {
        let files = std::iter::once(self.files).chain(self.ancestors.iter().map(|commit| &*commit.files));
        let found = files.flat_map(FileMap::values).find(|blob| &*blob.id == form);
        Ok(found.map(|blob| blob.bytes.to_vec()).unwrap_or_default())
    }
}

impl SimulatedRun {
    /// Returns what is watched at a commit; `None` if it cannot be read.
    fn watched(&self, at: &LoadedState) -> Option<WatchedFiles> {
        let ancestors: Vec<&SimulatedCommit> = self.repository.ancestors(&at.commit).collect();
        watched_at(at, ancestors.iter().copied())
    }

    /// Returns the definition at a commit, and what the commit says a person has accepted.
    pub(crate) fn guarded(&self, at: &LoadedState) -> DefinitionState {
        let WatchedFiles { globs, accepted, is_absence_accepted, checks, .. } = self.watched(at).unwrap_or_default();
        let committed = checks.normalize_forms(&accepted, among(&at.files, &globs), is_in_definition);
        DefinitionState { accepted, committed, is_absence_accepted }
    }

    /// Compares the work tree with the accepted definition.
    pub(crate) fn departure(&self, from: &LoadedState) -> DefinitionDiff {
        let globs = self.watched(from).unwrap_or_default().globs;
        let current = among(&self.repository.work, &globs);
        self.guarded(from).diff_from_accepted(&current)
    }

    /// Writes the definition that the guard must run with.
    pub(crate) fn lay_out(&mut self, from: &LoadedState, with_accepted: bool) -> StepResult<()> {
        self.swap_back();
        let found = self.departure(from);
        self.live.departure = self.live.departure.merged_with(&found);
        self.may_die()?;
        if found.effective_policy(from.policy.on_change) == ChangePolicy::Revert {
            for (path, blob) in self.accepted_files(from, &found) {
                self.stand_aside(&path);
                self.may_die()?;
                self.repository.work.extend(blob.map(|blob| (path, blob)));
            }
        }
        self.live.before_guard.get_or_insert_with(|| (self.repository.tip.clone(), self.repository.work.clone()));
        self.may_die()?;
        if with_accepted && self.mistake != Some(PlantedMistake::GuardWithChanged) {
            let files = self.accepted_files(from, &found);
            let work_blob = |path: &String| self.repository.work.get(path).cloned();
            self.live.moved = Some(files.keys().map(|path| (path.clone(), work_blob(path))).collect());
            self.may_die()?;
            for (path, blob) in files {
                self.repository.work.remove(&path);
                self.repository.work.extend(blob.map(|blob| (path, blob)));
                self.may_die()?;
            }
        }
        Ok(())
    }

    /// Renames one file of the definition, inside or outside it.
    pub(crate) fn rename_in_definition(&mut self) {
        let to = *self.random.pick(&["ci/check.sh", "ci/checks.sh", "src/check.sh", "ci/part-00.sh"]);
        let from = self.repository.work.keys().find(|path| path.starts_with("ci/") && *path != to).cloned();
        let moved = from.and_then(|from| self.repository.work.remove(&from));
        self.repository.work.extend(moved.map(|blob| (to.to_owned(), blob)));
    }

    /// Restores the files that were replaced by the accepted ones; what a guard made of the accepted ones is kept.
    pub(crate) fn swap_back(&mut self) {
        for (path, blob) in self.live.moved.take().unwrap_or_default() {
            self.stand_aside(&path);
            self.repository.work.extend(blob.map(|blob| (path, blob)));
        }
    }

    fn stand_aside(&mut self, path: &str) {
        let removed = self.repository.work.remove(path);
        self.witness.aside.extend(removed.map(|removed| removed.id.to_string()));
    }

    /// Returns the accepted content of the differing paths.
    fn accepted_files(&self, from: &LoadedState, departure: &DefinitionDiff) -> MovedFiles {
        let accepted = self.guarded(from).accepted;
        let blob = |path: &String| {
            let id = accepted.get(path)?;
            let known = self.repository.ancestors(&from.commit).filter_map(|commit| commit.files.get(path));
            known.into_iter().find(|blob| *blob.id == **id).cloned()
        };
        departure.paths.iter().map(|path| (path.clone(), blob(path))).collect()
    }
}
