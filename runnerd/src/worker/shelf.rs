//! The committed state that was read last, for those who read the same commit next: an iteration ends at the commit at
//! which the next begins.
//!
//! A commit never changes, so that nothing here can be out of date. It is empty while no run is driven.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::load::{LoadError, Loaded, load};
use crate::git::{Id, Repository};

/// Room for one committed state of one repository.
#[derive(Debug, Clone, Default)]
pub(super) struct Shelf(Arc<Mutex<Option<Arc<Loaded>>>>);

impl Shelf {
    /// Returns the committed state at `commit`, read unless it was read last.
    pub(super) fn load(&self, repository: &Repository, commit: Id) -> Result<Arc<Loaded>, LoadError> {
        if let Some(loaded) = self.lock().as_ref().filter(|loaded| loaded.commit == commit) {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(load(repository, commit)?);
        *self.lock() = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Forgets it.
    pub(super) fn clear(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Loaded>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
