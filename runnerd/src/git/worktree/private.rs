//! An index of the runner's own for the git program, which believes whatever an index says: it holds what the runner knows
//! itself, and the names of the one in the git folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;

use gix::ObjectId;
use gix::bstr::BString;
use gix::index::State;
use gix::index::entry::{Flags, Mode};
use tempfile::TempDir;

use super::hold_back::HoldBack;
use super::known::Tracked;
use super::own::Own;
use super::preload::Preload;
use super::scan::{Finding, Scan, stands_as};
use super::stage::{Staged, Staging};
use crate::git::index;
use crate::git::index::cachetree;
use crate::git::index::marks::{HIDDEN, UNREAD};
use crate::git::moment::Flush;
use crate::git::repository::program::Git;
use crate::git::{GitError, Repository};

/// Such an index, in a folder that goes with it.
pub(in crate::git) struct PrivateIndex<'a> {
    pub(in crate::git) repo: &'a gix::Repository,
    pub(in crate::git) tracked: Tracked<'a>,
    pub(in crate::git) file: PathBuf,
    /// Files that git cannot convert and that have not the bytes of the commit.
    pub(in crate::git) refused: BTreeSet<BString>,
    /// All files that git is kept from reading, as it gives up on them.
    passed_over: BTreeSet<BString>,
    flush: Option<Flush>,
    _folder: TempDir,
}

impl<'a> PrivateIndex<'a> {
    /// Makes the index, and has git read each file of which nothing is known, or that does not look as it did: git itself
    /// compares times by the second.
    pub(in crate::git) fn of(repo: &'a gix::Repository, mut tracked: Tracked<'a>) -> Result<Self, GitError> {
        Preload::run(repo, tracked.paths, &mut tracked.state);
        let folder = tempfile::tempdir().map_err(GitError::io("making a folder in", &std::env::temp_dir()))?;
        let mut state = tracked.unsettled();
        let unread = state.entries().iter().filter(|entry| entry.stat == UNREAD).count();
        let flush = tracked.paths.flush_before_reading(unread)?;
        announce(repo, &tracked, &mut state);
        let passed_over = pass_over_own(tracked.paths, &mut state);
        let file = folder.path().join("index");
        let refused = BTreeSet::new();
        let mut private = Self { repo, tracked, file, refused, passed_over, flush, _folder: folder };
        private.write(&state)?;
        if !private.refresh()? {
            private.pass_over_refused(&mut state)?;
        }
        private.learn()?;
        Ok(private)
    }

    /// Has git read the files; false where it gave up on one.
    fn refresh(&self) -> Result<bool, GitError> {
        let outcome = self.refreshing().outcome()?;
        Ok(matches!(outcome.status.code(), Some(0 | 1)))
    }

    /// Prepares git to read the files; it exits with 1 where some have changed.
    fn refreshing(&self) -> Git<'a> {
        let git = Git::new(self.tracked.paths, "update-index").env("GIT_INDEX_FILE", &self.file);
        git.args(["-q", "--unmerged", "--refresh"])
    }

    /// Keeps git from reading what it gives up on.
    fn pass_over_refused(&mut self, state: &mut State) -> Result<(), GitError> {
        let unread = state.entries().iter().enumerate().filter(|(_, entry)| entry.stat == UNREAD);
        let unread: Vec<usize> = unread.map(|(position, _)| position).collect();
        for position in self.tracked.paths.refused_among(self.repo, state, &unread)? {
            let path = state.entries()[position].path(state).to_owned();
            let entry = &mut state.entries_mut()[position];
            entry.flags.insert(Flags::ASSUME_VALID);
            if stands_as(self.repo, &self.tracked.paths.file(&path), entry).is_none() {
                self.refused.insert(path.clone());
            }
            self.passed_over.insert(path);
        }
        self.write(state)?;
        self.refreshing().answer().map(drop)
    }

    /// Takes over what git has read, and tells git of files that have the very bytes of the commit.
    fn learn(&mut self) -> Result<(), GitError> {
        let mut state = self.read()?;
        let mut told = Vec::new();
        for (position, entry) in state.entries().iter().enumerate() {
            let path = entry.path(&state);
            let Ok(at) = self.tracked.state.entry_index_by_path(path) else { continue };
            let known = &self.tracked.state.entries()[at];
            if known.flags.contains(Flags::UPTODATE) || entry.id != known.id {
                continue;
            }
            let stat = if entry.stat == UNREAD {
                let stat = stands_as(self.repo, &self.tracked.paths.file(path), known);
                // Git would read one that looks as recorded once more when it writes the index.
                let is_told = !self.passed_over.contains(path);
                told.extend(stat.filter(|_| is_told).map(|stat| (position, stat)));
                stat
            } else {
                Some(entry.stat)
            };
            let Some(stat) = stat else { continue };
            let known = &mut self.tracked.state.entries_mut()[at];
            known.stat = stat;
            known.flags.set(Flags::UPTODATE, self.flush.is_some_and(|flush| flush.settles(&stat)));
        }
        if told.is_empty() {
            return Ok(());
        }
        for (position, stat) in told {
            state.entries_mut()[position].stat = stat;
        }
        self.write(&state)
    }

    /// Returns what git has staged.
    pub(in crate::git) fn into_staged(self) -> Result<State, GitError> {
        let mut state = self.read()?;
        state.remove_entries(|_, _, entry| entry.flags.contains(Flags::INTENT_TO_ADD));
        for path in &self.passed_over {
            if let Ok(at) = state.entry_index_by_path(path.as_ref()) {
                state.entries_mut()[at].flags.remove(Flags::ASSUME_VALID);
            }
        }
        for entry in state.entries_mut() {
            let is_settled = self.flush.is_some_and(|flush| flush.settles(&entry.stat));
            entry.flags.set(Flags::UPTODATE, is_settled && entry.stat != UNREAD);
        }
        Ok(state)
    }

    /// Adds what differs in the runner's folder, of which git is told nothing, to what it has staged.
    pub(in crate::git) fn stage_own(&self, rule: &HoldBack) -> Result<Staged, GitError> {
        let paths = self.tracked.paths;
        let scan = Scan::of(self.own()?);
        let staged = Staging { repo: self.repo, paths, rule }.run(self.read()?, scan)?;
        self.write(&staged.state)?;
        Ok(staged)
    }

    /// Returns what differs in the runner's folder.
    pub(in crate::git) fn own(&self) -> Result<BTreeMap<BString, Finding>, GitError> {
        let tracked = &self.tracked;
        let added = tracked.names.added.iter().filter(|path| tracked.paths.owns(path));
        let gone = added.filter(|path| tracked.paths.file(path).symlink_metadata().is_err());
        let gone = gone.map(|path| (path.clone(), Finding::Gone));
        Ok(Own::look(self.repo, tracked.paths, (&tracked.state, None))?.found.into_iter().chain(gone).collect())
    }

    fn read(&self) -> Result<State, GitError> {
        let options = gix::index::decode::Options { thread_limit: Some(1), ..Default::default() };
        let read = gix::index::File::at(&self.file, self.repo.object_hash(), true, options);
        read.map(State::from).map_err(GitError::library("reading", &self.file))
    }

    fn write(&self, state: &State) -> Result<(), GitError> {
        let file = File::create(&self.file).map_err(GitError::io("writing", &self.file))?;
        index::write_to((file, &self.file), state, false).map(drop)
    }
}

/// Has git read nothing of the runner's folder.
fn pass_over_own(paths: &Repository, state: &mut State) -> BTreeSet<BString> {
    let mut passed_over = BTreeSet::new();
    for position in paths.own_positions(state) {
        let is_hidden = state.entries()[position].flags.intersects(HIDDEN);
        state.entries_mut()[position].flags.insert(Flags::ASSUME_VALID);
        if !is_hidden {
            passed_over.insert(state.entries()[position].path(state).to_owned());
        }
    }
    passed_over
}

/// Adds what is added, to be told as such; but for the runner's folder, of which git is told nothing.
fn announce(repo: &gix::Repository, tracked: &Tracked<'_>, state: &mut State) {
    let paths: &Repository = tracked.paths;
    for path in tracked.names.added.iter().filter(|path| !paths.owns(path)) {
        let found = paths.file(path).symlink_metadata();
        let mode = match found.map(|found| found.file_type()) {
            Ok(kind) if kind.is_dir() => continue,
            Ok(kind) if kind.is_symlink() => Mode::SYMLINK,
            _ => Mode::FILE,
        };
        let flags = Flags::INTENT_TO_ADD | Flags::EXTENDED;
        cachetree::forget(state, path.as_ref());
        state.dangerously_push_entry(UNREAD, ObjectId::empty_blob(repo.object_hash()), flags, mode, path.as_ref());
    }
    state.sort_entries();
}
