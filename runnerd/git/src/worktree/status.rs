//! Differences between HEAD and the work tree, path by path, as `git status --porcelain -uall` lists them.

use std::collections::BTreeMap;

use gix::bstr::{BString, ByteSlice as _};

use super::change::{ChangeKind, WorktreeChange, index_changes};
use super::exclude;
use super::porcelain;
use super::scan::{ScanFinding, WorktreeScan};
use super::stat_cache::TrackedFiles;
use crate::{GitError, Repository};

impl Repository {
    /// Returns every path that HEAD lacks or has with other content: staged, changed and untracked, sorted.
    ///
    /// Leaves out ignored files, changes that are only inside submodules, what is never tracked, and new files that
    /// commits leave out, although a `.gitignore` can show them to git again.
    pub fn list_changes(&self) -> Result<Vec<WorktreeChange>, GitError> {
        let repo = self.open()?;
        let with_gix = || self.list_changes_with_gix(&repo);
        let by_program = || {
            let changes = porcelain::list_changes(&repo, self)?;
            self.open_files(changes.iter().map(|change| change.path.as_bstr()))?;
            Ok(changes)
        };
        let mut changes = self.choose_engine(&repo).run_with(self, "status", with_gix, by_program)?;
        let never = self.cache.lock().never_tracked.clone();
        changes.retain(|change| !never.iter().any(|folder| change.path.starts_with(folder)));
        let excluded = exclude::read_excluded_paths(self)?;
        changes.retain(|change| change.kind != ChangeKind::Untracked || !exclude::covers(&excluded, &change.path));
        Ok(changes)
    }

    fn list_changes_with_gix(&self, repo: &gix::Repository) -> Result<Vec<WorktreeChange>, GitError> {
        let mut tracked = TrackedFiles::load(repo, self, self.head()?.commit())?;
        let scan = WorktreeScan::run(repo, self, &mut tracked)?;
        let mut kinds = index_changes(&tracked.index_diff);
        for (path, finding) in &scan.findings {
            merge_finding(&mut kinds, path, *finding);
        }
        tracked.store_in_cache();
        Ok(kinds.into_iter().map(|(path, kind)| WorktreeChange { path: path.into(), kind }).collect())
    }
}

pub(super) fn merge_finding(kinds: &mut BTreeMap<BString, ChangeKind>, path: &BString, finding: ScanFinding) {
    let staged = kinds.get(path).copied();
    let kind = match (finding, staged) {
        (ScanFinding::Unstorable, _) => return,
        (ScanFinding::Unmerged, _) => ChangeKind::Unmerged,
        (ScanFinding::Removed, _) => ChangeKind::Deleted,
        (ScanFinding::New | ScanFinding::NewRepository, Some(ChangeKind::Added)) => ChangeKind::Added,
        (ScanFinding::New, Some(ChangeKind::Deleted)) | (ScanFinding::Modified, _) => ChangeKind::Modified,
        (ScanFinding::Retyped, _) => ChangeKind::Retyped,
        (ScanFinding::New | ScanFinding::NewRepository, _) => ChangeKind::Untracked,
    };
    let mut path = path.clone();
    if finding == ScanFinding::NewRepository && kind != ChangeKind::Added {
        path.push(b'/');
    }
    kinds.insert(path, kind);
}
