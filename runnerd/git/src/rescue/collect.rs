//! Collects the contents of the work tree into a tree, without touching the index file: what a snapshot holds and a
//! restoration compares with.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::bstr::ByteSlice as _;
use gix::index::State;
use gix::index::entry::Flags;

use crate::index::cachetree;
use crate::index::edits::IndexEntry;
use crate::index::index_flags::HIDING_FLAGS;
use crate::objects;
use crate::objects::object_reader;
use crate::worktree::content::{ContentStore, StoreFailure};
use crate::worktree::hold_back::HoldBackRule;
use crate::worktree::porcelain;
use crate::worktree::private_index::PrivateIndex;
use crate::worktree::scan::WorktreeScan;
use crate::worktree::stage::{CollectedTree, WorktreeStager};
use crate::worktree::stat_cache::TrackedFiles;
use crate::{GitError, Id, Repository};

impl CollectedTree {
    /// Collects tracked and untracked files, and ignored ones only where `restoring` has files.
    pub(crate) fn collect(
        repo: &gix::Repository,
        repository: &Repository,
        rule: &HoldBackRule,
        restoring: Option<Id>,
    ) -> Result<Self, GitError> {
        let engine = repository.choose_engine(repo);
        let with_git = || Self::collect_with_git(repo, repository, rule);
        let mut collected =
            engine.run_with(repository, "add", || Self::collect_with_gix(repo, repository, rule), with_git)?;
        if let Some(commit) = restoring {
            collected.add_obstructing_files(repo, repository, commit)?;
        }
        Ok(collected)
    }

    fn collect_with_gix(
        repo: &gix::Repository,
        repository: &Repository,
        rule: &HoldBackRule,
    ) -> Result<Self, GitError> {
        let mut tracked = TrackedFiles::load(repo, repository, repository.head()?.commit())?;
        let hidden = clear_hiding_flags(&mut tracked.state);
        let scan = WorktreeScan::run(repo, repository, &mut tracked)?;
        let state = tracked.state.clone();
        restore_hiding_flags(&mut tracked.state, &hidden);
        tracked.store_in_cache();
        let mut staged = WorktreeStager { repo, repository, rule }.run(state, scan)?;
        let tree = cachetree::write_trees(repo, repository, &mut staged.state, &mut staged.written)?;
        Ok(Self { tree, held_back: staged.held_back, unstorable: staged.unstorable, written: staged.written })
    }

    fn collect_with_git(
        repo: &gix::Repository,
        repository: &Repository,
        rule: &HoldBackRule,
    ) -> Result<Self, GitError> {
        let tracked = TrackedFiles::load(repo, repository, repository.head()?.commit())?;
        porcelain::stage_all(&PrivateIndex::create(repo, tracked)?, rule)
    }

    /// Adds what a checkout of `commit` would overwrite and what is missing from the tree because git ignores it.
    fn add_obstructing_files(
        &mut self,
        repo: &gix::Repository,
        repository: &Repository,
        commit: Id,
    ) -> Result<(), GitError> {
        let failed = |error| GitError::gix("keeping what is in the way", repository.git_dir())(error);
        let collected_paths: BTreeSet<Vec<u8>> = objects::list_tree_files(repo, self.tree, "")
            .map_err(failed)?
            .into_iter()
            .map(|entry| entry.path)
            .collect();
        let mut obstructions = BTreeSet::new();
        for entry in repository.list_entries(&commit, "")?.iter().filter(|entry| !collected_paths.contains(&entry.path))
        {
            obstructions.extend(
                find_obstructing_files(repository, &entry.path)
                    .into_iter()
                    .filter(|path| !collected_paths.contains(path)),
            );
        }
        if obstructions.is_empty() {
            return Ok(());
        }
        let state = State::new(repo.object_hash());
        let mut contents = ContentStore::new(repo, repository, &state)?;
        let tree = object_reader::read_tree(repo, self.tree).map_err(failed)?;
        let mut editor = tree.edit().map_err(failed)?;
        for path in obstructions.iter().map(|path| path.as_bstr()) {
            match contents.store_file(path, None, &state) {
                Ok(IndexEntry { id, mode, .. }) => {
                    let kind = mode.to_tree_entry_mode().map_or(gix::objs::tree::EntryKind::Blob, |mode| mode.kind());
                    editor.upsert(path, kind, id).map_err(failed)?;
                    self.written.push(id);
                }
                Err(StoreFailure::Missing) => {}
                Err(StoreFailure::Unstorable) => drop(self.unstorable.insert(path.to_owned())),
                Err(StoreFailure::Failed(error)) => return Err(error),
            }
        }
        self.tree = editor.write().map_err(failed)?.detach();
        self.written.push(self.tree);
        Ok(())
    }
}

/// Clears the flags that make git assume files unchanged, as these may contain work nevertheless. Returns the flags, by
/// position.
fn clear_hiding_flags(state: &mut State) -> Vec<(usize, Flags)> {
    let mut hidden = Vec::new();
    for (position, entry) in state.entries_mut().iter_mut().enumerate() {
        if entry.flags.intersects(HIDING_FLAGS) {
            hidden.push((position, entry.flags & HIDING_FLAGS));
            entry.flags.remove(HIDING_FLAGS);
        }
    }
    hidden
}

fn restore_hiding_flags(state: &mut State, hidden: &[(usize, Flags)]) {
    for (position, flags) in hidden {
        state.entries_mut()[*position].flags.insert(*flags);
    }
}

/// Returns the files on disk that would have to be removed for a file to exist at `path`.
fn find_obstructing_files(repository: &Repository, path: &[u8]) -> Vec<Vec<u8>> {
    for end in path.find_iter(b"/").chain([path.len()]) {
        let part = &path[..end];
        match repository.absolute_path(part).symlink_metadata() {
            Ok(found) if found.is_dir() && end < path.len() => {}
            Ok(found) if found.is_dir() => return list_files_below(&repository.absolute_path(part), part),
            Ok(_) => return vec![part.to_owned()],
            Err(_) => return Vec::new(),
        }
    }
    Vec::new()
}

fn list_files_below(folder: &Path, name: &[u8]) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = [name, b"/", entry.file_name().as_bytes()].concat();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files.extend(list_files_below(&entry.path(), &path));
        } else {
            files.push(path);
        }
    }
    files
}
