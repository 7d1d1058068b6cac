//! One path that differs from HEAD, and how.

use std::collections::BTreeMap;

use gix::bstr::BString;

use crate::index::index_diff::IndexDiff;
use crate::path::display_path;

/// One path that differs from HEAD.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorktreeChange {
    /// The path relative to the work tree, as bytes; that of a nested repository ends in a slash.
    pub path: Vec<u8>,
    /// How it differs from HEAD.
    pub kind: ChangeKind,
}

impl WorktreeChange {
    /// Returns the path for display, with invalid UTF-8 replaced.
    pub fn display_path(&self) -> String {
        display_path(&self.path)
    }
}

/// How a path differs from HEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// In the index but not in HEAD.
    Added,
    /// Its content or executable bit differs, or a submodule's commit.
    Modified,
    /// Missing.
    Deleted,
    /// Its type changed, for example from file to link.
    Retyped,
    /// Neither in HEAD nor in the index.
    Untracked,
    /// In conflict after a merge.
    Unmerged,
}

/// Returns how the index differs from HEAD.
pub(crate) fn index_changes(diff: &IndexDiff) -> BTreeMap<BString, ChangeKind> {
    let missing = diff.missing.iter().map(|path| (path.clone(), ChangeKind::Deleted));
    let staged = diff.staged.iter().map(|path| (path.clone(), ChangeKind::Modified));
    let added = diff.added.iter().map(|path| (path.clone(), ChangeKind::Added));
    let left_out = diff.left_out.keys().map(|path| (path.clone(), ChangeKind::Added));
    left_out.chain(missing).chain(staged).chain(added).collect()
}
