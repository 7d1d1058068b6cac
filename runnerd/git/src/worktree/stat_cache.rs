//! What the runner knows about the files of HEAD: each path with its id in HEAD's tree, and the file's stat data when
//! it was read and found identical. Held only in memory. Only the names are taken from the index in the git folder
//! (`names`), which a session can write at will: no id, time or tree of it decides anything.
//!
//! An entry with the flag `UPTODATE` has been read and settled: its file has changed only if the stat data differ. Any
//! other file is read.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::index::State;
use gix::index::entry::{Flags, Mode};
use gix::index::extension::Tree;

use super::renormalize;
use crate::durable;
use crate::fs_clock::FlushTime;
use crate::index;
use crate::index::cachetree;
use crate::index::edits::{IndexEdits, IndexEntry, apply_edits};
use crate::index::index_diff::{self, IndexDiff};
use crate::index::index_flags::{HIDING_FLAGS, UNKNOWN_STAT};
use crate::objects::diff::compare_trees;
use crate::objects::object_reader;
use crate::objects::object_reader::WalkBudget;
use crate::path::{display_path, has_valid_name};
use crate::repository::cache::CachedFiles;
use crate::{GitError, Id, Repository};

/// Flags of entries whose files are not read.
const SKIP_READ_FLAGS: Flags = Flags::UPTODATE.union(HIDING_FLAGS);

/// If more files than this must be read, the file system is flushed first, so that they are read only once.
const FLUSH_THRESHOLD: usize = 256;

/// The files of HEAD that are still tracked, for one status or one commit.
pub(crate) struct TrackedFiles<'a> {
    pub(crate) repository: &'a Repository,
    /// One entry per file, as HEAD has it.
    pub(crate) state: State,
    /// Where the index differs.
    pub(crate) index_diff: IndexDiff,
    tree: ObjectId,
    /// Files of HEAD missing from the index.
    removed: Vec<(BString, ObjectId, Mode)>,
}

impl Repository {
    /// Makes every status and commit read the files at these paths, whatever their times. A path that ends in a slash
    /// covers everything below it.
    pub fn set_always_read(&self, paths: impl IntoIterator<Item = String>) {
        self.cache.lock().always_read = paths.into_iter().map(BString::from).collect();
    }

    /// Makes everything below these folders untracked, whatever HEAD and the index say: it is neither committed nor
    /// reported as changed.
    pub fn set_never_tracked<'f>(&self, folders: impl IntoIterator<Item = &'f str>) {
        self.cache.lock().never_tracked =
            folders.into_iter().map(|folder| BString::from(format!("{folder}/"))).collect();
    }

    /// Returns those never-tracked folders in which HEAD or the index tracks something.
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

    /// Keeps the files at these paths tracked while they exist, whatever the index says. A path that ends in a slash
    /// covers everything below it.
    pub fn set_guarded(&self, paths: impl IntoIterator<Item = String>) {
        self.cache.lock().guarded = paths.into_iter().map(BString::from).collect();
    }

    /// Returns the files that were untracked in the last index but stay tracked.
    pub fn list_untracked_guarded(&self) -> Vec<String> {
        self.cache.lock().untracked_guarded.iter().map(|path| display_path(path)).collect()
    }

    /// Flushes the work tree durably, and makes every later write detectable.
    pub fn flush_work_tree(&self) -> Result<(), GitError> {
        let flushed = match self.flush_and_remember()? {
            Some(_) => Ok(()),
            None => durable::sync_file_system(&self.work_dir),
        };
        flushed.map_err(GitError::io("flushing the file system of", &self.work_dir))
    }

    /// Flushes if there was no flush yet, or if so many files have to be read that it is worth it.
    pub(crate) fn flush_before_reading(&self, files: usize) -> Result<Option<FlushTime>, GitError> {
        if files > FLUSH_THRESHOLD || self.cache.last_flush().is_none() {
            self.flush_and_remember()?;
        }
        Ok(self.cache.last_flush())
    }

    fn flush_and_remember(&self) -> Result<Option<FlushTime>, GitError> {
        let flush = FlushTime::record_flush(&self.work_dir, &self.git_dir);
        let flush = flush.map_err(GitError::io("flushing the file system of", &self.work_dir))?;
        let mut memory = self.cache.lock();
        // Without a new flush, the previous one still shows whether the clock was set back.
        memory.flush = flush.or(memory.flush);
        Ok(flush)
    }
}

impl<'a> TrackedFiles<'a> {
    /// Returns the files of `head` that the index names.
    pub(crate) fn load(repo: &gix::Repository, repository: &'a Repository, head: Option<Id>) -> Result<Self, GitError> {
        let mut tracked = Self::load_head(repo, repository, head)?;
        let is_new = tracked.index_diff.is_new;
        tracked.index_diff = index_diff::read_index_diff(repo, repository, &mut tracked.state, head, is_new)?;
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
        let tree =
            head.map(|head| Ok(object_reader::read_commit(repo, head.object_id())?.tree_id()?.detach())).transpose();
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

    /// Drops each submodule whose folder holds files but no repository: git skips those, and they would be missing from
    /// every commit. The runner's folder has no submodules.
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

    /// Keeps guarded files tracked if they exist.
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

    /// Returns the files of HEAD missing from the index.
    pub(crate) fn removed(&self) -> impl Iterator<Item = &BString> {
        self.removed.iter().map(|(path, ..)| path)
    }

    /// Returns all files of HEAD, as it has them.
    pub(crate) fn head_state(&self) -> State {
        let mut state = self.state.clone();
        let removed = self.removed.iter().cloned();
        apply_edits(
            &mut state,
            removed.map(|(path, id, mode)| (path, Some(IndexEntry { id, mode, stat: UNKNOWN_STAT }))).collect(),
        );
        state
    }

    /// Returns an index for programs that trust its stat data: only settled files appear unchanged.
    pub(crate) fn state_for_git(&self) -> State {
        let mut state = self.state.clone();
        for entry in state.entries_mut().iter_mut().filter(|entry| !entry.flags.intersects(SKIP_READ_FLAGS)) {
            entry.stat = UNKNOWN_STAT;
        }
        state
    }

    /// Stores the results in the repository's memory.
    pub(crate) fn store_in_cache(self) {
        let Self { repository: paths, state, tree, .. } = self.restore_removed();
        paths.cache.store_files(state, tree);
    }

    /// Returns this with all files of HEAD, whatever the index names.
    pub(crate) fn restore_removed(mut self) -> Self {
        let removed = std::mem::take(&mut self.removed).into_iter();
        let restored: IndexEdits =
            removed.map(|(path, id, mode)| (path, Some(IndexEntry { id, mode, stat: UNKNOWN_STAT }))).collect();
        if !restored.is_empty() {
            apply_edits(&mut self.state, restored);
        }
        self.index_diff = IndexDiff { is_new: self.index_diff.is_new, ..IndexDiff::default() };
        self
    }
}

impl CachedFiles {
    /// Returns the files of another tree; what both share stays known.
    fn update_to_tree(mut self, repo: &gix::Repository, tree: ObjectId) -> gix::Result<State> {
        let old = object_reader::read_tree(repo, self.tree)?;
        let new = object_reader::read_tree(repo, tree)?;
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
            edits.keys().filter_map(|path| renormalize::governed_dir(path)).map(ToOwned::to_owned).collect();
        apply_edits(&mut self.state, edits);
        // Files read under rules that no longer apply are unknown.
        clear_uptodate(&mut self.state, &affected);
        Ok(self.state)
    }
}

/// Whether a folder has contents but is not a repository.
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

/// Clears the flag of entries whose files are always read.
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

/// Reads the files of a tree, with none known to be in the work tree.
fn read_tree_state(repo: &gix::Repository, id: ObjectId) -> gix::Result<State> {
    let mut state = cachetree::empty_index(repo.object_hash());
    let root = read_dir_state(repo, id, &mut BString::default(), &mut state, &mut WalkBudget::default())?;
    if let Some(memory) = state.tree_mut() {
        *memory = root;
    }
    state.sort_entries();
    Ok(state)
}

/// Adds the files of one folder, whose path ends in a slash, and returns its cached tree.
fn read_dir_state(
    repo: &gix::Repository,
    id: ObjectId,
    folder: &mut BString,
    state: &mut State,
    budget: &mut WalkBudget,
) -> gix::Result<Tree> {
    let mut children = Vec::new();
    let mut seen = BTreeSet::new();
    let before = state.entries().len();
    for (name, mode, id) in object_reader::read_entries(repo, id)? {
        let length = folder.len();
        folder.extend_from_slice(&name);
        budget.consume(folder)?;
        if !seen.insert(name.clone()) {
            return Err(gix::Error::from_error(InvalidTreeEntry(display_path(folder))));
        }
        if mode.is_tree() {
            check_entry_name(folder.as_ref(), Mode::FILE)?;
            folder.push(b'/');
            let mut child = read_dir_state(repo, id, folder, state, budget)?;
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

/// An entry that no tree written by git has.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} stands twice in a tree, or is no name for a file")]
struct InvalidTreeEntry(String);

fn check_entry_name(path: &BStr, mode: Mode) -> gix::Result<()> {
    let name = path.rfind_byte(b'/').map_or(path, |slash| path[slash + 1..].as_bstr());
    if has_valid_name(name, mode) { Ok(()) } else { Err(gix::Error::from_error(InvalidTreeEntry(display_path(path)))) }
}
