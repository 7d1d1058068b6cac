//! What differs between HEAD and the work tree, path by path, as `git status --porcelain -uall` names it.

use std::collections::BTreeMap;

use gix::bstr::BString;

use super::known::Tracked;
use super::names::Names;
use super::porcelain;
use super::scan::{Finding, Scan, display};
use super::{GitError, Repository};

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
        self.engine(&repo).carry_out(|| self.changes_by_library(&repo), || porcelain::changes(&repo, self))
    }

    fn changes_by_library(&self, repo: &gix::Repository) -> Result<Vec<Change>, GitError> {
        let mut tracked = Tracked::open(repo, self, self.head()?.commit())?;
        let scan = Scan::run(repo, self, &mut tracked)?;
        let mut kinds = staged(&tracked.names);
        for (path, finding) in &scan.found {
            add(&mut kinds, path, *finding);
        }
        tracked.keep();
        Ok(kinds.into_iter().map(|(path, kind)| Change { path: path.into(), kind }).collect())
    }
}

/// Returns what the index says otherwise than HEAD.
pub(super) fn staged(names: &Names) -> BTreeMap<BString, ChangeKind> {
    let missing = names.missing.iter().map(|path| (path.clone(), ChangeKind::Deleted));
    let staged = names.staged.iter().map(|path| (path.clone(), ChangeKind::Modified));
    let added = names.added.iter().map(|path| (path.clone(), ChangeKind::Added));
    missing.chain(staged).chain(added).collect()
}

fn add(kinds: &mut BTreeMap<BString, ChangeKind>, path: &BString, finding: Finding) {
    let staged = kinds.get(path).copied();
    let kind = match (finding, staged) {
        (Finding::Unstorable, _) => return,
        (Finding::Unmerged, _) => ChangeKind::Unmerged,
        (Finding::Gone, _) => ChangeKind::Deleted,
        (Finding::New | Finding::NewRepository, Some(ChangeKind::Added)) => ChangeKind::Added,
        (Finding::New, Some(ChangeKind::Deleted)) | (Finding::Modified, _) => ChangeKind::Modified,
        (Finding::Retyped, _) => ChangeKind::Retyped,
        (Finding::New | Finding::NewRepository, _) => ChangeKind::Untracked,
    };
    let mut path = path.clone();
    if finding == Finding::NewRepository && kind != ChangeKind::Added {
        path.push(b'/');
    }
    kinds.insert(path, kind);
}
