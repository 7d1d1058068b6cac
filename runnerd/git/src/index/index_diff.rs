//! Reads the index for the names that are tracked, in addition to the known files of HEAD. A session can write any
//! bytes there: what the index records about the content of files is at best a hint for people.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::index::entry::{Flags, Mode, Stat};
use gix::index::{Entry, State};

use runner_core::fsck::is_like_runner_path;

use super::edits::IndexEntry;
use super::index_flags::{HIDING_FLAGS, UNKNOWN_STAT};
use crate::index;
use crate::objects::{list_tree_files, object_reader};
use crate::path::has_valid_name;
use crate::worktree::sparse_patterns::SparsePatterns;
use crate::{CommitEntry, GitError, Id, Repository};

/// Where an index differs from HEAD.
#[derive(Debug, Default)]
pub(crate) struct IndexDiff {
    /// Paths that HEAD lacks.
    pub(crate) added: BTreeSet<BString>,
    /// Paths of HEAD that the index does not name.
    pub(crate) missing: Vec<BString>,
    /// Paths with a conflict.
    pub(crate) unmerged: BTreeSet<BString>,
    /// Paths of HEAD whose content in the index differs.
    pub(crate) staged: Vec<BString>,
    /// New content of paths that a sparse checkout leaves out of the work tree.
    pub(crate) left_out: BTreeMap<BString, IndexEntry>,
    /// Whether nothing was known about HEAD's files before.
    pub(crate) is_new: bool,
}

impl IndexDiff {
    /// Whether all names by which the index differs from HEAD are among these paths. Names missing from the index have
    /// to be searched for, because they may be ignored.
    pub(crate) fn is_limited_to(&self, paths: &[Vec<u8>]) -> bool {
        let allowed: HashSet<&[u8]> = paths.iter().map(Vec::as_slice).collect();
        let is_within = |path: &BString| allowed.contains(path.as_slice());
        self.missing.is_empty() && self.left_out.is_empty() && self.added.iter().chain(&self.unmerged).all(is_within)
    }
}

impl IndexDiff {
    /// Drops entries in folders where nothing is tracked, and in what some file system takes for the runner's folder;
    /// what HEAD has there counts as removed.
    pub(crate) fn exclude_dirs(&mut self, head: &State, excluded: &BTreeSet<BString>) {
        if excluded.is_empty() {
            return;
        }
        let is_excluded = |path: &BString| excluded.iter().any(|folder| path.starts_with(folder));
        for names in [&mut self.added, &mut self.unmerged] {
            names.retain(|path| !is_excluded(path));
        }
        self.left_out.retain(|path, _| !is_excluded(path));
        for names in [&mut self.missing, &mut self.staged] {
            names.retain(|path| !is_excluded(path));
        }
        self.missing.retain(|path| !is_like_runner_path(path));
        for below in head.entries().chunk_by(|a, b| first_component(a.path(head)) == first_component(b.path(head))) {
            if is_like_runner_path(below[0].path(head)) {
                self.missing.extend(below.iter().map(|entry| entry.path(head).to_owned()));
            }
        }
        for folder in excluded {
            let entries = head.prefixed_entries(folder.as_ref()).unwrap_or_default();
            self.missing.extend(entries.iter().map(|entry| entry.path(head).to_owned()));
        }
    }
}

fn first_component(path: &BStr) -> &[u8] {
    path.split(|byte| *byte == b'/').next().unwrap_or_default()
}

/// What was learned about known entries, by position.
#[derive(Default)]
struct EntryUpdates {
    hidden: Vec<(usize, Flags)>,
    left_out: Vec<usize>,
    shown: Vec<usize>,
    trusted: Vec<(usize, Stat)>,
}

/// Reads the names. Flags that hide files from git count unless something newly known (`is_new`) contradicts them: a
/// person set them, or the module `git_dir_snapshot` has cleared them.
///
/// In a repository that is bound to no captured configuration, the index is the person's, so what it records about
/// files is trusted.
pub(crate) fn read_index_diff(
    repo: &gix::Repository,
    repository: &Repository,
    known: &mut State,
    head: Option<Id>,
    is_new: bool,
) -> Result<IndexDiff, GitError> {
    let mut index = index::read_index(repo, repository, head)?;
    let failed = |error| GitError::gix("reading directories of the index of", repository.work_dir())(error);
    expand_changed_dirs(repo, repository.commit_tree(repo, head)?.id, &mut index).map_err(failed)?;
    let trusts_index = repository.pinned.is_none();
    let sparse = SparsePatterns::read(repo, repository)?;
    let (mut diff, updates) = compare_entries(known, &index, trusts_index, &sparse);
    diff.left_out.retain(|_, entry| entry.mode == Mode::COMMIT || repo.has_object(entry.id));
    let entries = known.entries_mut();
    for (position, flags) in updates.hidden.into_iter().filter(|_| is_new) {
        entries[position].flags.insert(flags | Flags::EXTENDED);
    }
    for position in updates.left_out {
        entries[position].flags.insert(Flags::SKIP_WORKTREE | Flags::EXTENDED);
    }
    for position in updates.shown {
        entries[position].flags.remove(HIDING_FLAGS);
    }
    for (position, stat) in updates.trusted {
        entries[position].stat = stat;
        entries[position].flags.insert(Flags::UPTODATE);
    }
    Ok(IndexDiff { is_new, ..diff })
}

/// Replaces each folder that is one entry of a sparse index by its files, unless `head`, a tree, has it like that.
fn expand_changed_dirs(repo: &gix::Repository, head: ObjectId, index: &mut State) -> gix::Result<()> {
    let mut changed = Vec::new();
    for entry in index.entries().iter().filter(|entry| entry.mode == Mode::DIR && repo.has_object(entry.id)) {
        let folder = entry.path(index);
        let known = object_reader::find_at_path(repo, head, folder.trim_end_with(|at| at == '/').as_bstr())?;
        if known.is_none_or(|(_, id)| id != entry.id) {
            changed.push((folder.to_owned(), entry.id));
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    index.remove_entries(|_, path, _| changed.iter().any(|(folder, _)| path == folder));
    for (folder, tree) in changed {
        for CommitEntry { path, id, kind } in list_tree_files(repo, tree, "")? {
            let flags = Flags::SKIP_WORKTREE | Flags::EXTENDED;
            let mode = Mode::from_bits_retain(kind.mode());
            let path = [&folder[..], &path].concat();
            index.dangerously_push_entry(UNKNOWN_STAT, id.object_id(), flags, mode, path.as_bstr());
        }
    }
    index.sort_entries();
    Ok(())
}

fn compare_entries(
    known: &State,
    index: &State,
    trusts_index: bool,
    sparse: &SparsePatterns<'_>,
) -> (IndexDiff, EntryUpdates) {
    let mut diff = IndexDiff::default();
    let mut updates = EntryUpdates::default();
    let mut missing = Vec::new();
    let mut covered = Vec::new();
    let mut next = 0;
    let files = known.entries();
    for group in index.entries().chunk_by(|a, b| a.path(index) == b.path(index)) {
        let entry = &group[0];
        let path = group[0].path(index);
        if entry.mode == Mode::DIR {
            covered.push((path, entry.flags.intersects(HIDING_FLAGS)));
            continue;
        }
        while next < files.len() && files[next].path(known) < path {
            missing.push(next);
            next += 1;
        }
        let is_merged = entry.stage_raw() == 0;
        if !is_merged && has_valid_name(path, Mode::FILE) {
            diff.unmerged.insert(path.to_owned());
        }
        let Some(file) = files.get(next).filter(|file| file.path(known) == path) else {
            if known.entry_by_path(path).is_none() && has_valid_name(path, entry.mode) {
                if sparse.leave_out(entry, path) {
                    diff.left_out.insert(path.to_owned(), stored_entry(entry));
                } else {
                    diff.added.insert(path.to_owned());
                }
            }
            continue;
        };
        let is_same = (entry.id, entry.mode) == (file.id, file.mode) && !entry.flags.contains(Flags::INTENT_TO_ADD);
        if is_merged && !is_same {
            diff.staged.push(path.to_owned());
        }
        let is_known = is_same && file.flags.contains(Flags::SKIP_WORKTREE);
        if !is_known && sparse.leave_out(entry, path) {
            updates.left_out.push(next);
            if !is_same {
                diff.left_out.insert(path.to_owned(), stored_entry(entry));
            }
        }
        match entry.flags & HIDING_FLAGS {
            marks if marks.is_empty() => updates.shown.push(next),
            marks => updates.hidden.push((next, marks)),
        }
        let racy = entry.stat.is_racy(index.timestamp(), gix::index::entry::stat::Options::default());
        if trusts_index && is_merged && is_same && !racy {
            updates.trusted.push((next, entry.stat));
        }
        next += 1;
    }
    missing.extend(next..files.len());
    for position in missing {
        let path = files[position].path(known);
        match covered.iter().find(|(folder, _)| path.starts_with(folder.as_bytes())) {
            Some((_, true)) => updates.hidden.push((position, Flags::SKIP_WORKTREE)),
            Some((_, false)) => {}
            None => diff.missing.push(path.to_owned()),
        }
    }
    (diff, updates)
}

fn stored_entry(entry: &Entry) -> IndexEntry {
    IndexEntry { id: entry.id, mode: entry.mode, stat: UNKNOWN_STAT }
}
