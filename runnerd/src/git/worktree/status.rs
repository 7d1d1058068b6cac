//! What differs between HEAD and the work tree, path by path, as `git status --porcelain -uall` names it.

use std::collections::BTreeMap;

use gix::bstr::BString;

use super::change::{Change, ChangeKind, staged};
use super::known::Tracked;
use super::porcelain;
use super::scan::{Finding, Scan};
use crate::git::{GitError, Repository};

impl Repository {
    /// Returns everything that HEAD lacks or has otherwise: staged, changed and untracked paths, one by one, sorted.
    ///
    /// Ignored files are left out, what is changed only inside submodules, and what is never tracked.
    pub fn changes(&self) -> Result<Vec<Change>, GitError> {
        let repo = self.open()?;
        let by_library = || self.changes_by_library(&repo);
        let mut changes = self.engine(&repo).carry_out(by_library, || porcelain::changes(&repo, self))?;
        let never = self.memory.lock().never.clone();
        changes.retain(|change| !never.iter().any(|folder| change.path.starts_with(folder)));
        Ok(changes)
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

pub(super) fn add(kinds: &mut BTreeMap<BString, ChangeKind>, path: &BString, finding: Finding) {
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
