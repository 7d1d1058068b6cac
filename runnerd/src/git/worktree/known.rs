//! What the runner knows of the files of HEAD: every path by the id that HEAD's tree has for it, and how the file looked
//! when it was read to be just that. It is held in memory alone. Of the index in the git folder, which a session can write
//! as it likes, only the names are taken (`names`): neither an id nor a time nor a tree of it decides anything.
//!
//! An entry with the mark `UPTODATE` was read and settled: its file has changed if it looks otherwise. Any other is read.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::index::State;
use gix::index::entry::{Flags, Mode};
use gix::index::extension::Tree;

use super::renormalise;
use crate::git::durable;
use crate::git::index;
use crate::git::index::cachetree;
use crate::git::index::edits::{IndexEdits, IndexEntry, apply_edits};
use crate::git::index::marks::{HIDING_FLAGS, UNKNOWN_STAT};
use crate::git::index::names::{self, IndexDiff};
use crate::git::moment::FlushTime;
use crate::git::objects::checked;
use crate::git::objects::checked::WalkBudget;
use crate::git::objects::diff::compare_trees;
use crate::git::path::{display_path, has_valid_name};
use crate::git::repository::memory::CachedFiles;
use crate::git::{GitError, Id, Repository};

/// Marks of entries whose files are not read.
const SKIP_READ_FLAGS: Flags = Flags::UPTODATE.union(HIDING_FLAGS);

/// Above this many files that have to be read, the file system is flushed first, so that they are read once.
const FLUSH_THRESHOLD: usize = 256;

/// The files of HEAD that are tracked still, for one look or one commit.
pub(in crate::git) struct TrackedFiles<'a> {
    pub(in crate::git) repository: &'a Repository,
    /// One entry for each, as HEAD has it.
    pub(in crate::git) state: State,
    /// What else the index says.
    pub(in crate::git) index_diff: IndexDiff,
    tree: ObjectId,
    /// Files of HEAD that the index does not name.
    removed: Vec<(BString, ObjectId, Mode)>,
}

impl Repository {
    /// Has the files at these paths be read by every look and every commit, whatever their times say. A path that ends in
    /// a slash stands for all that is below it.
    pub fn set_always_read(&self, paths: impl IntoIterator<Item = String>) {
        self.cache.lock().always_read = paths.into_iter().map(BString::from).collect();
    }

    /// Has nothing below these folders be tracked, whatever HEAD and the index say: it is in no commit and is no change.
    pub fn set_never_tracked<'f>(&self, folders: impl IntoIterator<Item = &'f str>) {
        self.cache.lock().never_tracked = folders.into_iter().map(|folder| BString::from(format!("{folder}/"))).collect();
    }

    /// Returns the folders of which nothing is to be tracked, and something is, in HEAD or in the index.
    pub fn list_wrongly_tracked(&self) -> Result<Vec<String>, GitError> {
        let never = self.cache.lock().never_tracked.clone();
        let head = self.head()?.commit();
        let index = index::read_index(&self.open()?, self, head)?;
        let mut tracked = Vec::new();
        for folder in never {
            let is_in_index = index.prefixed_entries(folder.as_ref()).is_some_and(|entries| !entries.is_empty());
            let name = display_path(&folder);
            let is_in = |head: Id| Ok(!self.list_entries(&head, name.trim_end_matches('/'))?.is_empty());
            if is_in_index || head.map_or(Ok(false), is_in)? {
                tracked.push(name);
            }
        }
        Ok(tracked)
    }

    /// Has the files at these paths stay tracked as long as they are there, whatever the index names. A path that ends in a
    /// slash stands for all that is below it.
    pub fn set_guarded(&self, paths: impl IntoIterator<Item = String>) {
        self.cache.lock().guarded = paths.into_iter().map(BString::from).collect();
    }

    /// Returns the files that were untracked when it was looked last and stay tracked all the same.
    pub fn list_untracked_guarded(&self) -> Vec<String> {
        self.cache.lock().untracked_guarded.iter().map(|path| display_path(path)).collect()
    }

    /// Makes what was written to the work tree survive a power cut, and every write that follows show.
    pub fn flush_work_tree(&self) -> Result<(), GitError> {
        let flushed = match self.flush_and_remember()? {
            Some(_) => Ok(()),
            None => durable::sync_file_system(&self.work_dir),
        };
        flushed.map_err(GitError::io("flushing the file system of", &self.work_dir))
    }

    /// Flushes where none was yet, or so many files are to be read that it is worth it.
    pub(in crate::git) fn flush_before_reading(&self, files: usize) -> Result<Option<FlushTime>, GitError> {
        if files > FLUSH_THRESHOLD || self.cache.last_flush().is_none() {
            self.flush_and_remember()?;
        }
        Ok(self.cache.last_flush())
    }

    fn flush_and_remember(&self) -> Result<Option<FlushTime>, GitError> {
        let flush = FlushTime::record_flush(&self.work_dir, &self.git_dir);
        let flush = flush.map_err(GitError::io("flushing the file system of", &self.work_dir))?;
        let mut memory = self.cache.lock();
        // Without another, the one before still tells whether the clock was set back.
        memory.flush = flush.or(memory.flush);
        Ok(flush)
    }
}

impl<'a> TrackedFiles<'a> {
    /// Returns the files of `head` that the index names.
    pub(in crate::git) fn load(
        repo: &gix::Repository,
        repository: &'a Repository,
        head: Option<Id>,
    ) -> Result<Self, GitError> {
        let mut tracked = Self::load_head(repo, repository, head)?;
        let is_new = tracked.index_diff.is_new;
        tracked.index_diff = names::read_index_diff(repo, repository, (&mut tracked.state, head), is_new)?;
        let never = repository.cache.lock().never_tracked.clone();
        tracked.index_diff.exclude_dirs(&tracked.state, &never);
        tracked.exclude_plain_dirs()?;
        tracked.retain_guarded();
        tracked.remove_missing();
        Ok(tracked)
    }

    /// Returns all files of `head`.
    fn load_head(repo: &gix::Repository, repository: &'a Repository, head: Option<Id>) -> Result<Self, GitError> {
        let failed = |error| GitError::gix("reading the tree of HEAD", repository.git_dir())(error);
        let tree = head.map(|head| Ok(checked::read_commit(repo, head.object_id())?.tree_id()?.detach())).transpose();
        let tree = tree.map_err(failed)?.unwrap_or_else(|| ObjectId::empty_tree(repo.object_hash()));
        let (known, always) = repository.cache.take_files();
        let is_new = known.is_none();
        let mut state = match known {
            Some(CachedFiles { state, tree: of }) if of == tree => state,
            Some(files) => files.update_to_tree(repo, tree).map_err(failed)?,
            None => read_tree_state(repo, tree).map_err(failed)?,
        };
        clear_uptodate(&mut state, &always);
        let names = IndexDiff { is_new, ..IndexDiff::default() };
        Ok(Self { repository, state, index_diff: names, tree, removed: Vec::new() })
    }

    /// Takes out each submodule in whose place files stand and no repository: git passes over them, and they would be in no
    /// commit. In the runner's folder there is none.
    fn exclude_plain_dirs(&mut self) -> Result<(), GitError> {
        let submodules = self.state.entries().iter().filter(|entry| entry.mode == Mode::COMMIT);
        for path in submodules.map(|entry| entry.path(&self.state)) {
            let folder = self.repository.absolute_path(path);
            let is_own = self.repository.is_runner_path(&[path.as_bytes(), b"/"].concat());
            if is_own || is_plain_dir(&folder).map_err(GitError::io("looking at", &folder))? {
                self.index_diff.missing.push(path.to_owned());
            }
        }
        self.index_diff.missing.sort_unstable();
        self.index_diff.missing.dedup();
        Ok(())
    }

    /// Has files that are not to be untracked be so still, where they are there.
    fn retain_guarded(&mut self) {
        let guarded = self.repository.cache.lock().guarded.clone();
        let is_guarded = |path: &BString| {
            let is_named = guarded.contains(path) || guarded.iter().any(|name| is_below(path, name));
            is_named && self.repository.absolute_path(path).symlink_metadata().is_ok()
        };
        let missing = std::mem::take(&mut self.index_diff.missing).into_iter();
        let (retained, missing) = missing.partition(is_guarded);
        self.index_diff.missing = missing;
        self.repository.cache.lock().untracked_guarded = retained;
    }

    fn remove_missing(&mut self) {
        let mut edits = IndexEdits::new();
        for path in &self.index_diff.missing {
            let Some(entry) = self.state.entry_by_path(path.as_ref()) else { continue };
            self.removed.push((path.clone(), entry.id, entry.mode));
            edits.insert(path.clone(), None);
        }
        if !edits.is_empty() {
            apply_edits(&mut self.state, edits);
        }
    }

    /// Returns the files of HEAD that the index does not name.
    pub(in crate::git) fn removed(&self) -> impl Iterator<Item = &BString> {
        self.removed.iter().map(|(path, ..)| path)
    }

    /// Returns all files of HEAD, as it has them.
    pub(in crate::git) fn head_state(&self) -> State {
        let mut state = self.state.clone();
        let removed = self.removed.iter().cloned();
        apply_edits(&mut state, removed.map(|(path, id, mode)| (path, Some(IndexEntry { id, mode, stat: UNKNOWN_STAT }))).collect());
        state
    }

    /// Returns an index for programs that believe what it says of the files: only what is settled looks so.
    pub(in crate::git) fn state_for_git(&self) -> State {
        let mut state = self.state.clone();
        for entry in state.entries_mut().iter_mut().filter(|entry| !entry.flags.intersects(SKIP_READ_FLAGS)) {
            entry.stat = UNKNOWN_STAT;
        }
        state
    }

    /// Remembers what was found out.
    pub(in crate::git) fn store_in_cache(self) {
        let Self { repository: paths, state, tree, .. } = self.restore_removed();
        paths.cache.store_files(state, tree);
    }

    /// Returns all files of HEAD, whatever the index names.
    pub(in crate::git) fn restore_removed(mut self) -> Self {
        let removed = std::mem::take(&mut self.removed).into_iter();
        let restored: IndexEdits = removed.map(|(path, id, mode)| (path, Some(IndexEntry { id, mode, stat: UNKNOWN_STAT }))).collect();
        if !restored.is_empty() {
            apply_edits(&mut self.state, restored);
        }
        self.index_diff = IndexDiff { is_new: self.index_diff.is_new, ..IndexDiff::default() };
        self
    }
}

impl CachedFiles {
    /// Returns the files of another tree; what both have is known.
    fn update_to_tree(mut self, repo: &gix::Repository, tree: ObjectId) -> gix::Result<State> {
        let (old, new) = (checked::read_tree(repo, self.tree)?, checked::read_tree(repo, tree)?);
        let mut edits = IndexEdits::new();
        for difference in compare_trees(repo, &old, &new)? {
            let stored = match difference.new {
                Some((mode, id)) => {
                    let mode = Mode::from(mode);
                    check_entry_name(difference.path.as_ref(), mode)?;
                    Some(IndexEntry { id, mode, stat: UNKNOWN_STAT })
                }
                None => None,
            };
            edits.insert(difference.path, stored);
        }
        let affected: BTreeSet<BString> =
            edits.keys().filter_map(|path| renormalise::governed_dir(path)).map(ToOwned::to_owned).collect();
        apply_edits(&mut self.state, edits);
        // What was read by other rules than those that hold now is not known.
        clear_uptodate(&mut self.state, &affected);
        Ok(self.state)
    }
}

/// Tells whether something stands in a folder that is no repository.
fn is_plain_dir(folder: &Path) -> io::Result<bool> {
    let is_folder = match folder.symlink_metadata() {
        Ok(found) => found.is_dir(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => false,
        Err(error) => return Err(error),
    };
    let is_repository = || folder.join(".git").symlink_metadata().is_ok();
    Ok(is_folder && !is_repository() && fs::read_dir(folder)?.next().transpose()?.is_some())
}

fn is_below(path: &BString, folder: &BString) -> bool {
    folder.ends_with(b"/") && path.starts_with(folder)
}

/// Takes the mark off entries whose files are always read.
fn clear_uptodate(state: &mut State, always: &BTreeSet<BString>) {
    for path in always {
        let range = match path.last() {
            None => Some(0..state.entries().len()),
            Some(b'/') => state.prefixed_entries_range(path.as_ref()),
            _ => state.entry_index_by_path(path.as_ref()).ok().map(|at| at..at + 1),
        };
        for entry in range.map(|range| &mut state.entries_mut()[range]).into_iter().flatten() {
            entry.flags.remove(Flags::UPTODATE);
        }
    }
}

/// Reads the files of a tree, none of which is known to be in the work tree.
fn read_tree_state(repo: &gix::Repository, id: ObjectId) -> gix::Result<State> {
    let mut state = cachetree::empty_index(repo.object_hash());
    let root = read_dir_state(repo, (id, &mut BString::default()), &mut state, &mut WalkBudget::default())?;
    if let Some(memory) = state.tree_mut() {
        *memory = root;
    }
    state.sort_entries();
    Ok(state)
}

/// Adds the files of one folder, whose path ends in a slash, and returns what an index remembers of it.
fn read_dir_state(
    repo: &gix::Repository,
    (id, folder): (ObjectId, &mut BString),
    state: &mut State,
    budget: &mut WalkBudget,
) -> gix::Result<Tree> {
    let (mut children, mut seen, before) = (Vec::new(), BTreeSet::new(), state.entries().len());
    for (name, mode, id) in checked::read_entries(repo, id)? {
        let length = folder.len();
        folder.extend_from_slice(&name);
        budget.consume(folder)?;
        if !seen.insert(name.clone()) {
            return Err(gix::Error::from_error(InvalidTreeEntry(display_path(folder))));
        }
        if mode.is_tree() {
            check_entry_name(folder.as_ref(), Mode::FILE)?;
            folder.push(b'/');
            let mut child = read_dir_state(repo, (id, folder), state, budget)?;
            child.name = name.as_slice().into();
            children.push(child);
        } else {
            let mode = Mode::from(mode);
            check_entry_name(folder.as_ref(), mode)?;
            state.dangerously_push_entry(UNKNOWN_STAT, id, Flags::empty(), mode, folder.as_ref());
        }
        folder.truncate(length);
    }
    children.sort_by(|a, b| a.name.cmp(&b.name));
    let count = u32::try_from(state.entries().len() - before).ok();
    Ok(Tree { name: [][..].into(), id, num_entries: count, children })
}

/// A tree of git's has no such entry.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} stands twice in a tree, or is no name for a file")]
struct InvalidTreeEntry(String);

fn check_entry_name(path: &BStr, mode: Mode) -> gix::Result<()> {
    let name = path.rfind_byte(b'/').map_or(path, |slash| path[slash + 1..].as_bstr());
    if has_valid_name(name, mode) { Ok(()) } else { Err(gix::Error::from_error(InvalidTreeEntry(display_path(path)))) }
}
