//! Whether there is room for a new reference: git cannot hold two references if one's name is a folder in the other's
//! path, loose or packed. The library checks only loose files, and reports a bare system error.

use gix::refs::FullName;

use super::HEADS;
use crate::repository::engine::RefStore;
use crate::{GitError, Repository};

impl Repository {
    /// Fails if another reference leaves no room for a new one with this full name.
    pub fn check_ref_conflict(&self, name: &str) -> Result<(), GitError> {
        let Some(existing) = self.find_conflicting_ref(name)? else { return Ok(()) };
        let (requested, path) = (name.to_owned(), self.work_dir().to_owned());
        Err(GitError::RefConflict {
            free: self.find_free_name(&existing)?,
            standing: existing,
            wanted: requested,
            path,
        })
    }

    /// Returns the full name of a reference, above or below, that leaves no room for `name`.
    pub fn find_conflicting_ref(&self, name: &str) -> Result<Option<String>, GitError> {
        for (slash, _) in name.match_indices('/').skip(1) {
            if self.ref_exists(&name[..slash])? {
                return Ok(Some(name[..slash].to_owned()));
            }
        }
        let below = format!("{name}/");
        Ok(self.list_refs_under(&[name.to_owned()])?.into_keys().find(|found| found.starts_with(&below)))
    }

    pub(crate) fn ref_exists(&self, name: &str) -> Result<bool, GitError> {
        let Ok(full) = FullName::try_from(name) else { return Ok(false) };
        let repo = self.open()?;
        if self.choose_ref_store(&repo) == RefStore::GitOnly {
            return Ok(self.list_refs_under(&[name.to_owned()])?.contains_key(name));
        }
        let found = repo.try_find_reference(full.as_ref());
        Ok(found.map_err(GitError::gix("reading references", self.git_dir()))?.is_some())
    }

    /// Returns an unused name for a branch that is in the way; `None` for anything but a branch.
    fn find_free_name(&self, existing: &str) -> Result<Option<String>, GitError> {
        let Some(branch) = existing.strip_prefix(HEADS) else { return Ok(None) };
        let first = format!("{}-old", branch.replace('/', "-"));
        for free in std::iter::once(first.clone()).chain((2..).map(|number| format!("{first}-{number}"))) {
            let name = format!("{HEADS}{free}");
            if !self.ref_exists(&name)? && self.find_conflicting_ref(&name)?.is_none() {
                return Ok(Some(free));
            }
        }
        Ok(None)
    }
}
