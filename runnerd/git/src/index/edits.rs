//! Edits an index in memory: what git stores for a path, and batches of changes that also update the cached trees.

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;
use gix::bstr::{BString, ByteSlice as _};
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stage, Stat};

use super::cachetree;

/// What git stores for one path.
#[derive(Debug, Clone)]
pub(crate) struct IndexEntry {
    pub(crate) id: ObjectId,
    pub(crate) mode: Mode,
    /// The file's stat data; size zero if the file may have changed since it was read.
    pub(crate) stat: Stat,
}

/// New entry for each path; `None` removes it.
pub(crate) type IndexEdits = BTreeMap<BString, Option<IndexEntry>>;

/// Applies the edits to the index.
pub(crate) fn apply_edits(state: &mut State, edits: IndexEdits) {
    let removed = find_removed_paths(state, &edits);
    for path in removed.iter().chain(edits.keys()) {
        cachetree::invalidate_path(state, path.as_ref());
    }
    if !removed.is_empty() {
        state.remove_entries(|_, path, entry| {
            // An unmerged path loses all its stages; a plain entry that only changes stays.
            removed.contains(path) && !(entry.stage_raw() == 0 && matches!(edits.get(path), Some(Some(_))))
        });
    }
    let old_len = state.entries().len();
    for (path, stored) in edits {
        let Some(IndexEntry { id, mode, stat }) = stored else {
            continue;
        };
        match state.entry_index_by_path_and_stage_bounded(path.as_ref(), Stage::Unconflicted, old_len) {
            Some(position) => update_entry(&mut state.entries_mut()[position], id, mode, stat),
            None => state.dangerously_push_entry(stat, id, Flags::empty(), mode, path.as_ref()),
        }
    }
    if state.entries().len() > old_len {
        state.sort_entries();
    }
}

/// Returns the paths whose entries have to go: removed ones, unmerged ones, and those that a new path excludes because
/// no name can be both a file and a folder.
fn find_removed_paths(state: &State, edits: &IndexEdits) -> BTreeSet<BString> {
    let mut removed = BTreeSet::new();
    for (path, stored) in edits {
        let range = state.entry_range(path.as_ref());
        let unmerged = range.clone().is_some_and(|range| state.entries()[range].iter().any(|e| e.stage_raw() != 0));
        if stored.is_none() || unmerged {
            removed.insert(path.clone());
        }
        if stored.is_none() || range.is_some() {
            continue;
        }
        let above = path.find_iter(b"/").map(|slash| path[..slash].as_bstr());
        removed.extend(above.filter(|folder| state.entry_range(folder).is_some()).map(ToOwned::to_owned));
        let below = BString::from([path.as_bytes(), b"/"].concat());
        let inside = state.prefixed_entries(below.as_ref()).unwrap_or_default();
        removed.extend(inside.iter().map(|entry| entry.path(state).to_owned()));
    }
    removed
}

fn update_entry(entry: &mut gix::index::Entry, id: ObjectId, mode: Mode, stat: Stat) {
    entry.id = id;
    entry.mode = mode;
    entry.stat = stat;
    entry.flags.remove(Flags::UPTODATE);
}
