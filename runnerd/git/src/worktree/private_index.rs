//! A private index for the git program, which trusts whatever an index says: it holds what the runner itself knows, and
//! the names from the index in the git folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;

use gix::ObjectId;
use gix::bstr::BString;
use gix::index::State;
use gix::index::entry::{Flags, Mode};
use tempfile::TempDir;

use super::hold_back::HoldBackRule;
use super::preload::IndexPreload;
use super::runner_dir::RunnerDirDiff;
use super::scan::{ScanFinding, WorktreeScan, stat_if_unchanged};
use super::stage::{StagedIndex, WorktreeStager};
use super::stat_cache::TrackedFiles;
use crate::fs_clock::FlushTime;
use crate::index;
use crate::index::cachetree;
use crate::index::edits::apply_edits;
use crate::index::index_flags::{HIDING_FLAGS, UNKNOWN_STAT};
use crate::repository::program::GitCommand;
use crate::{GitError, Repository};

/// A private index, in a folder that is removed with it.
pub(crate) struct PrivateIndex<'a> {
    pub(crate) repo: &'a gix::Repository,
    pub(crate) tracked: TrackedFiles<'a>,
    pub(crate) file: PathBuf,
    /// Files that git cannot convert and whose bytes differ from the commit's.
    pub(crate) unconvertible: BTreeSet<BString>,
    /// All files that git is prevented from reading, because it gives up on them.
    skipped: BTreeSet<BString>,
    flush: Option<FlushTime>,
    _folder: TempDir,
}

impl<'a> PrivateIndex<'a> {
    /// Creates the index, and makes git read each file that is unknown or no longer looks as it did: git itself
    /// compares times by the second.
    pub(crate) fn create(repo: &'a gix::Repository, mut tracked: TrackedFiles<'a>) -> Result<Self, GitError> {
        IndexPreload::run(repo, tracked.repository, &mut tracked.state);
        let folder = tempfile::tempdir().map_err(GitError::io("making a directory in", &tempfile::env::temp_dir()))?;
        let mut state = tracked.state_for_git();
        let unread = state.entries().iter().filter(|entry| entry.stat == UNKNOWN_STAT).count();
        let flush = tracked.repository.flush_before_reading(unread)?;
        add_left_out(&tracked, &mut state);
        add_intent_entries(repo, &tracked, &mut state);
        let skipped = skip_runner_dir(tracked.repository, &mut state);
        let file = folder.path().join("index");
        let unconvertible = BTreeSet::new();
        let mut index = Self { repo, tracked, file, unconvertible, skipped, flush, _folder: folder };
        index.write(&state)?;
        if !index.refresh()? {
            index.skip_unconvertible(&mut state)?;
        }
        index.record_stats()?;
        Ok(index)
    }

    /// Makes git read the files; false if it gave up on one.
    fn refresh(&self) -> Result<bool, GitError> {
        let outcome = self.refresh_command().output()?;
        Ok(matches!(outcome.status.code(), Some(0 | 1)))
    }

    /// Prepares git to read the files; it exits with 1 if some have changed.
    fn refresh_command(&self) -> GitCommand<'a> {
        let git = GitCommand::new(self.tracked.repository, "update-index").env("GIT_INDEX_FILE", &self.file);
        git.args(["-q", "--unmerged", "--refresh"])
    }

    /// Prevents git from reading the files it gives up on.
    fn skip_unconvertible(&mut self, state: &mut State) -> Result<(), GitError> {
        let unread = state.entries().iter().enumerate().filter(|(_, entry)| entry.stat == UNKNOWN_STAT);
        let unread: Vec<usize> = unread.map(|(position, _)| position).collect();
        for position in self.tracked.repository.find_unstorable_entries(self.repo, state, &unread)? {
            let path = state.entries()[position].path(state).to_owned();
            let entry = &mut state.entries_mut()[position];
            entry.flags.insert(Flags::ASSUME_VALID);
            if stat_if_unchanged(self.repo, &self.tracked.repository.absolute_path(&path), entry).is_none() {
                self.unconvertible.insert(path.clone());
            }
            self.skipped.insert(path);
        }
        self.write(state)?;
        self.refresh_command().run_optional().map(drop)
    }

    /// Takes over what git has read, and tells git about files with the exact bytes of the commit.
    fn record_stats(&mut self) -> Result<(), GitError> {
        let mut state = self.read()?;
        let mut updates = Vec::new();
        for (position, entry) in state.entries().iter().enumerate() {
            let path = entry.path(&state);
            let Ok(at) = self.tracked.state.entry_index_by_path(path) else { continue };
            let known = &self.tracked.state.entries()[at];
            if known.flags.contains(Flags::UPTODATE) || entry.id != known.id {
                continue;
            }
            let stat = if entry.stat == UNKNOWN_STAT {
                let stat = stat_if_unchanged(self.repo, &self.tracked.repository.absolute_path(path), known);
                // git would read a file again when it writes the index if the file looks as recorded.
                let is_read = !self.skipped.contains(path);
                updates.extend(stat.filter(|_| is_read).map(|stat| (position, stat)));
                stat
            } else {
                Some(entry.stat)
            };
            let Some(stat) = stat else { continue };
            let known = &mut self.tracked.state.entries_mut()[at];
            known.stat = stat;
            known.flags.set(Flags::UPTODATE, self.flush.is_some_and(|flush| flush.is_stat_reliable(&stat)));
        }
        if updates.is_empty() {
            return Ok(());
        }
        for (position, stat) in updates {
            state.entries_mut()[position].stat = stat;
        }
        self.write(&state)
    }

    /// Returns what git has staged.
    pub(crate) fn into_staged_state(self) -> Result<State, GitError> {
        let mut state = self.read()?;
        state.remove_entries(|_, _, entry| entry.flags.contains(Flags::INTENT_TO_ADD));
        for path in &self.skipped {
            if let Ok(at) = state.entry_index_by_path(path.as_ref()) {
                state.entries_mut()[at].flags.remove(Flags::ASSUME_VALID);
            }
        }
        for entry in state.entries_mut() {
            let is_reliable = self.flush.is_some_and(|flush| flush.is_stat_reliable(&entry.stat));
            entry.flags.set(Flags::UPTODATE, is_reliable && entry.stat != UNKNOWN_STAT);
        }
        Ok(state)
    }

    /// Adds the differences in the runner's folder, which is hidden from git, to what git has staged.
    pub(crate) fn stage_runner_dir(&self, rule: &HoldBackRule) -> Result<StagedIndex, GitError> {
        let paths = self.tracked.repository;
        let scan = WorktreeScan::from_findings(self.diff_runner_dir()?);
        let staged = WorktreeStager { repo: self.repo, repository: paths, rule }.run(self.read()?, scan)?;
        self.write(&staged.state)?;
        Ok(staged)
    }

    /// Returns the differences in the runner's folder.
    pub(crate) fn diff_runner_dir(&self) -> Result<BTreeMap<BString, ScanFinding>, GitError> {
        let tracked = &self.tracked;
        let added = tracked.index_diff.added.iter().filter(|path| tracked.repository.is_runner_path(path));
        let gone = added.filter(|path| tracked.repository.absolute_path(path).symlink_metadata().is_err());
        let gone = gone.map(|path| (path.clone(), ScanFinding::Removed));
        Ok(RunnerDirDiff::compare(self.repo, tracked.repository, &tracked.state, None)?
            .differences
            .into_iter()
            .chain(gone)
            .collect())
    }

    fn read(&self) -> Result<State, GitError> {
        let options = gix::index::decode::Options { thread_limit: Some(1), ..Default::default() };
        let read = gix::index::File::at(&self.file, self.repo.object_hash(), true, options);
        read.map(State::from).map_err(GitError::gix("reading", &self.file))
    }

    fn write(&self, state: &State) -> Result<(), GitError> {
        let file = File::create(&self.file).map_err(GitError::io("writing", &self.file))?;
        index::write_index_to(file, &self.file, state, false).map(drop)
    }
}

/// Prevents git from reading anything in the runner's folder.
fn skip_runner_dir(repository: &Repository, state: &mut State) -> BTreeSet<BString> {
    let mut skipped = BTreeSet::new();
    for position in repository.runner_file_positions(state) {
        let is_hidden = state.entries()[position].flags.intersects(HIDING_FLAGS);
        state.entries_mut()[position].flags.insert(Flags::ASSUME_VALID);
        if !is_hidden {
            skipped.insert(state.entries()[position].path(state).to_owned());
        }
    }
    skipped
}

/// Takes over the content of paths that are not in the work tree because the checkout is sparse.
fn add_left_out(tracked: &TrackedFiles<'_>, state: &mut State) {
    let left_out = &tracked.index_diff.left_out;
    apply_edits(state, left_out.iter().map(|(path, entry)| (path.clone(), Some(entry.clone()))).collect());
    for path in left_out.keys() {
        if let Ok(at) = state.entry_index_by_path(path.as_ref()) {
            state.entries_mut()[at].flags.insert(Flags::SKIP_WORKTREE | Flags::EXTENDED);
        }
    }
}

/// Adds entries for added paths, so that git reports them, except in the runner's folder, which is hidden from git.
fn add_intent_entries(repo: &gix::Repository, tracked: &TrackedFiles<'_>, state: &mut State) {
    let repository: &Repository = tracked.repository;
    for path in tracked.index_diff.added.iter().filter(|path| !repository.is_runner_path(path)) {
        let found = repository.absolute_path(path).symlink_metadata();
        let mode = match found.map(|found| found.file_type()) {
            Ok(kind) if kind.is_dir() => continue,
            Ok(kind) if kind.is_symlink() => Mode::SYMLINK,
            _ => Mode::FILE,
        };
        let flags = Flags::INTENT_TO_ADD | Flags::EXTENDED;
        cachetree::invalidate_path(state, path.as_ref());
        state.dangerously_push_entry(
            UNKNOWN_STAT,
            ObjectId::empty_blob(repo.object_hash()),
            flags,
            mode,
            path.as_ref(),
        );
    }
    state.sort_entries();
}
