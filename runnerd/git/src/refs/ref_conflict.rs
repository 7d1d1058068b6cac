//! Whether there is room for a new reference: git cannot hold two references if one's name is a folder in the other's
//! path, loose or packed. The library checks only loose files, and reports a bare system error.

use gix::refs::FullName;

use super::HEADS;
use crate::repository::engine::RefStore;
use crate::repository::program::GitCommand;
use crate::{GitError, Repository, durable};

/// Where references that were in the way of the runner's own are renamed to.
const MOVED_REFS: &str = "refs/moved/";

impl Repository {
    /// Fails if another reference leaves no room for a new one with this full name.
    pub fn check_ref_conflict(&self, name: &str) -> Result<(), GitError> {
        let Some(existing) = self.find_conflicting_ref(name)? else { return Ok(()) };
        let requested = name.to_owned();
        let path = self.work_dir().to_owned();
        Err(GitError::RefConflict { free: self.find_free_name(&existing)?, existing, requested, path })
    }

    /// Renames the references that leave no room for one of the runner's own. What they name stays reachable.
    pub(crate) fn make_room_for(&self, name: &str) -> Result<(), GitError> {
        while let Some(existing) = self.find_conflicting_ref(name)? {
            let Some(id) = self.find_ref(&existing).ok().flatten() else {
                durable::remove_path(&self.ref_dir(&existing).join(&existing))?;
                return Ok(());
            };
            let moved = format!("{}-{id}", existing.replacen("refs/", MOVED_REFS, 1));
            GitCommand::new(self, "update-ref").args([&moved, &id.to_string()]).run()?;
            GitCommand::new(self, "update-ref").args(["--no-deref", "-d", &existing]).run()?;
            tracing::warn!(existing, moved, name, "a reference was in the way of one of the runner's own");
        }
        Ok(())
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
