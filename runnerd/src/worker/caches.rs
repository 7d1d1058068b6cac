//! Caches of the last scan and load: what differs from HEAD, the repository under its captured configuration, how its folders
//! were listed, and the committed state, since an iteration ends at the commit at which the next begins.
//!
//! Only what is known to write forgets what differs: a program that is started, and what puts files back. The others do
//! not change while a run is driven, and are empty while none is.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::git::{Change, Id, Repository};
use crate::worker::integrity::listing::Listing;
use crate::worker::load::{LoadError, Loaded, load};

/// What differed from HEAD when it was looked last; shared among the effects of an iteration.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastScan(Arc<Mutex<Option<Vec<Change>>>>);

impl LastScan {
    /// Returns what was seen last, unless something may have changed it since.
    pub(crate) fn get(&self) -> Option<Vec<Change>> {
        self.lock().clone()
    }

    /// Keeps what was seen.
    pub(crate) fn set(&self, changes: &[Change]) {
        *self.lock() = Some(changes.to_vec());
    }

    /// Has the next who asks look again.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Change>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for one repository and one committed state of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLoad(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    repository: Option<Repository>,
    loaded: Option<Arc<Loaded>>,
    listing: Listing,
}

impl LastLoad {
    /// Returns the committed state at `commit`, read unless it was read last.
    pub(crate) fn load(&self, repository: &Repository, commit: Id) -> Result<Arc<Loaded>, LoadError> {
        if let Some(loaded) = self.lock().loaded.as_ref().filter(|loaded| loaded.commit == commit) {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(load(repository, commit)?);
        self.lock().loaded = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Returns the repository with the work tree `root`, if it is the one that is open.
    pub(crate) fn repository(&self, root: &Path) -> Option<Repository> {
        self.lock().repository.as_ref().filter(|repository| repository.work_dir() == root).cloned()
    }

    /// Keeps a repository that is bound to its captured configuration.
    pub(crate) fn keep(&self, repository: &Repository) {
        self.lock().repository = Some(repository.clone());
    }

    /// Has the work tree be listed; meanwhile others list it anew.
    pub(crate) fn with_listing<T>(&self, list: impl FnOnce(&mut Listing) -> T) -> T {
        let mut listing = std::mem::take(&mut self.lock().listing);
        let listed = list(&mut listing);
        self.lock().listing = listing;
        listed
    }

    /// Has objects of the repository be read again.
    pub(crate) fn forget_objects(&self) {
        if let Some(repository) = &self.lock().repository {
            repository.forget_objects();
        }
    }

    /// Forgets both.
    pub(crate) fn clear(&self) {
        *self.lock() = Kept::default();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
