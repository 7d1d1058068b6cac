//! What differs between HEAD and the work tree, path by path, as `git status --porcelain -uall` names it.

use std::collections::BTreeMap;

use gix::bstr::BString;
use gix::diff::index::ChangeRef;
use gix::index::State;
use gix::index::entry::{Mode, Stage};
use gix::status::tree_index::TrackRenames;

use super::index::{self, Index, IndexLock};
use super::porcelain;
use super::scan::{Finding, Scan, display};
use super::{GitError, Id, Repository, checked};

/// What an entry takes in an index, and the bytes that can be read while a file is opened.
const BYTES_PER_ENTRY: u64 = 100;
const BYTES_PER_FILE: u64 = 16 * 1024;

/// One path that differs from HEAD.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The path relative to the work tree, as bytes; that of a nested repository ends in a slash.
    pub path: Vec<u8>,
    /// How it differs.
    pub kind: ChangeKind,
}

impl Change {
    /// Returns the path for people, with what is no UTF-8 replaced.
    pub fn display_path(&self) -> String {
        display(&self.path)
    }
}

/// How a path differs from HEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is in the index and not in HEAD.
    Added,
    /// Its content or executable bit differs, or a submodule's commit.
    Modified,
    /// It is gone.
    Deleted,
    /// A file became a link, or the like.
    Retyped,
    /// It is neither in HEAD nor in the index.
    Untracked,
    /// It has conflicts from a merge.
    Unmerged,
}

impl Repository {
    /// Returns everything that HEAD lacks or has otherwise: staged, changed and untracked paths, one by one, sorted.
    ///
    /// Ignored files are left out, and what is changed only inside submodules.
    pub fn changes(&self) -> Result<Vec<Change>, GitError> {
        let repo = self.open()?;
        self.engine(&repo).carry_out(|| self.changes_by_library(&repo), || porcelain::changes(self))
    }

    fn changes_by_library(&self, repo: &gix::Repository) -> Result<Vec<Change>, GitError> {
        let head = self.head()?.commit();
        let mut index = index::read(repo, self, head)?;
        let scan = Scan::run(repo, self, &mut index.state)?;
        let mut kinds: BTreeMap<BString, ChangeKind> = staged(repo, self, head, &index.state)?.into_iter().collect();
        for (path, finding) in &scan.found {
            add(&mut kinds, path, *finding);
        }
        self.write_back(repo, index, &scan);
        Ok(kinds.into_iter().map(|(path, kind)| Change { path: path.into(), kind }).collect())
    }

    /// Spares the next look the files that had to be read to see that they did not change, where they are more to read
    /// than the index is to write. Only a convenience: it is left alone if somebody else has the index.
    fn write_back(&self, repo: &gix::Repository, mut index: Index, scan: &Scan) {
        let read: u64 = scan.fresh.iter().map(|(_, stat)| BYTES_PER_FILE + u64::from(stat.size)).sum();
        if read <= BYTES_PER_ENTRY * index.state.entries().len() as u64 {
            return;
        }
        let Some(lock) = IndexLock::acquire_for(repo, self, &index) else {
            return;
        };
        scan.refresh(&mut index.state);
        if let Err(error) = lock.write(&index.state).and_then(index::PendingIndex::publish) {
            tracing::debug!(%error, "the index was not refreshed");
        }
    }
}

fn add(kinds: &mut BTreeMap<BString, ChangeKind>, path: &BString, finding: Finding) {
    let staged = kinds.get(path).copied();
    let kind = match (finding, staged) {
        (Finding::Unstorable, _) => return,
        (Finding::Unmerged, _) => ChangeKind::Unmerged,
        (Finding::Gone, _) => ChangeKind::Deleted,
        (Finding::Announced, _) | (Finding::Modified | Finding::Retyped, Some(ChangeKind::Added)) => ChangeKind::Added,
        (Finding::New, Some(ChangeKind::Deleted)) | (Finding::Modified, _) => ChangeKind::Modified,
        (Finding::Retyped, _) => ChangeKind::Retyped,
        (Finding::New | Finding::NewRepository, _) => ChangeKind::Untracked,
    };
    let mut path = path.clone();
    if finding == Finding::NewRepository {
        path.push(b'/');
    }
    kinds.insert(path, kind);
}

/// Returns what the index has otherwise than the commit `head`.
pub(super) fn staged(
    repo: &gix::Repository,
    paths: &Repository,
    head: Option<Id>,
    state: &State,
) -> Result<Vec<(BString, ChangeKind)>, GitError> {
    let compare = || -> gix::Result<Vec<(BString, ChangeKind)>> {
        let tree = match head {
            Some(head) => checked::tree_of(repo, head.object())?.id,
            None => gix::ObjectId::empty_tree(repo.object_hash()),
        };
        let mut changes = Vec::new();
        if is_tree_of(state, tree) {
            return Ok(changes);
        }
        repo.tree_index_status(&tree, state, None, TrackRenames::Disabled, |change, _, _| {
            changes.push(describe(&change));
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        Ok(changes)
    };
    compare().map_err(GitError::library("comparing HEAD with the index", paths.git_dir()))
}

/// Returns the paths whose staged content is not in the store, as a `git add` on a failing disk leaves them.
pub(super) fn lost(repo: &gix::Repository, state: &State, changes: &[(BString, ChangeKind)]) -> Vec<BString> {
    let is_lost = |path: &BString| {
        let entry = state.entry_by_path_and_stage(path.as_ref(), Stage::Unconflicted);
        entry.is_some_and(|entry| entry.mode != Mode::COMMIT && !repo.has_object(entry.id))
    };
    changes.iter().map(|(path, _)| path).filter(|path| is_lost(path)).cloned().collect()
}

/// An index remembers the tree it was last equal to; then there is nothing to compare.
fn is_tree_of(state: &State, tree: gix::ObjectId) -> bool {
    let entries = u32::try_from(state.entries().len()).ok();
    state
        .tree()
        .is_some_and(|memory| memory.id == tree && memory.num_entries.is_some() && memory.num_entries == entries)
}

fn describe(change: &ChangeRef<'_, '_>) -> (BString, ChangeKind) {
    let kind = match change {
        ChangeRef::Addition { .. } => ChangeKind::Added,
        ChangeRef::Deletion { .. } => ChangeKind::Deleted,
        ChangeRef::Modification { .. } | ChangeRef::Rewrite { .. } => ChangeKind::Modified,
    };
    (change.fields().0.to_owned(), kind)
}
