//! What was opened and read last, for those who want the same next: the repository under its captured configuration, and the
//! committed state, since an iteration ends at the commit at which the next begins.
//!
//! Neither changes while a run is driven, so that nothing here can be out of date. It is empty while none is.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::load::{LoadError, Loaded, load};
use crate::git::{Id, Repository};

/// Room for one repository and one committed state of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Shelf(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    repository: Option<Repository>,
    loaded: Option<Arc<Loaded>>,
}

impl Shelf {
    /// Returns the committed state at `commit`, read unless it was read last.
    pub(super) fn load(&self, repository: &Repository, commit: Id) -> Result<Arc<Loaded>, LoadError> {
        if let Some(loaded) = self.lock().loaded.as_ref().filter(|loaded| loaded.commit == commit) {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(load(repository, commit)?);
        self.lock().loaded = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Returns the repository with the work tree `root`, if it is the one that is open.
    pub(super) fn repository(&self, root: &Path) -> Option<Repository> {
        self.lock().repository.as_ref().filter(|repository| repository.work_dir() == root).cloned()
    }

    /// Keeps a repository that is bound to its captured configuration.
    pub(super) fn keep(&self, repository: &Repository) {
        self.lock().repository = Some(repository.clone());
    }

    /// Has objects of the repository be read again.
    pub(super) fn forget_objects(&self) {
        if let Some(repository) = &self.lock().repository {
            repository.forget_objects();
        }
    }

    /// Forgets both.
    pub(super) fn clear(&self) {
        *self.lock() = Kept::default();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
