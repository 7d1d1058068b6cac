//! Caches of the last scan and load: what differs from HEAD, the repository under its captured configuration, how its folders
//! were listed, and the committed state, since an iteration ends at the commit at which the next begins.
//!
//! Only what is known to write forgets what differs: a program that is started, and what puts files back. The others do
//! not change while a run is driven, and are empty while none is.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::git::{WorktreeChange, Id, Repository};
use crate::worker::integrity::listing::WorkTreeListing;
use crate::worker::load::{LoadError, CommittedState, load_state};

/// What differed from HEAD when it was looked last; shared among the effects of an iteration.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastScan(Arc<Mutex<Option<Vec<WorktreeChange>>>>);

impl LastScan {
    /// Returns what was seen last, unless something may have changed it since.
    pub(crate) fn get(&self) -> Option<Vec<WorktreeChange>> {
        self.lock_scan().clone()
    }

    /// Keeps what was seen.
    pub(crate) fn set(&self, changes: &[WorktreeChange]) {
        *self.lock_scan() = Some(changes.to_vec());
    }

    /// Has the next who asks look again.
    pub(crate) fn invalidate(&self) {
        *self.lock_scan() = None;
    }

    fn lock_scan(&self) -> MutexGuard<'_, Option<Vec<WorktreeChange>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for one repository and one committed state of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLoad(Arc<Mutex<CachedLoad>>);

#[derive(Debug, Default)]
struct CachedLoad {
    repository: Option<Repository>,
    state: Option<Arc<CommittedState>>,
    listing: WorkTreeListing,
}

impl LastLoad {
    /// Returns the committed state at `commit`, read unless it was read last.
    pub(crate) fn load(&self, repository: &Repository, commit: Id) -> Result<Arc<CommittedState>, LoadError> {
        if let Some(loaded) = self.lock_load().state.as_ref().filter(|loaded| loaded.commit == commit) {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(load_state(repository, commit)?);
        self.lock_load().state = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Returns the repository with the work tree `root`, if it is the one that is open.
    pub(crate) fn repository(&self, root: &Path) -> Option<Repository> {
        self.lock_load().repository.as_ref().filter(|repository| repository.work_dir() == root).cloned()
    }

    /// Keeps a repository that is bound to its captured configuration.
    pub(crate) fn store_repository(&self, repository: &Repository) {
        self.lock_load().repository = Some(repository.clone());
    }

    /// Has the work tree be listed; meanwhile others list it anew.
    pub(crate) fn with_listing<T>(&self, list: impl FnOnce(&mut WorkTreeListing) -> T) -> T {
        let mut listing = std::mem::take(&mut self.lock_load().listing);
        let listed = list(&mut listing);
        self.lock_load().listing = listing;
        listed
    }

    /// Has objects of the repository be read again.
    pub(crate) fn forget_objects(&self) {
        if let Some(repository) = &self.lock_load().repository {
            repository.clear_object_cache();
        }
    }

    /// Forgets both.
    pub(crate) fn clear(&self) {
        *self.lock_load() = CachedLoad::default();
    }

    fn lock_load(&self) -> MutexGuard<'_, CachedLoad> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
