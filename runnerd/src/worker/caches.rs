//! Caches of the last scan and load: what differs from HEAD, the repository under its captured configuration, how its
//! folders were listed, and the committed state, since an iteration ends at the commit at which the next begins.
//!
//! Only operations known to write invalidate the scan: starting a program and restoring files. The other caches do not
//! change while a run is driven, and are empty while none is.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runner_git::{Id, IgnoreFiles, Repository, WorktreeChange};

use crate::worker::integrity::listing::WorkTreeListing;
use crate::worker::integrity::permissions::FolderTree;
use crate::worker::load::{CommittedState, LoadError, load_state};

/// What differed from HEAD at the last scan; shared among the effects of an iteration.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastScan(Arc<Mutex<Option<Vec<WorktreeChange>>>>);

impl LastScan {
    /// Returns the result of the last scan, unless something may have changed it since.
    pub(crate) fn get(&self) -> Option<Vec<WorktreeChange>> {
        self.lock_scan().clone()
    }

    /// Stores the result of a scan.
    pub(crate) fn set(&self, changes: &[WorktreeChange]) {
        *self.lock_scan() = Some(changes.to_vec());
    }

    /// Invalidates the cache.
    pub(crate) fn invalidate(&self) {
        *self.lock_scan() = None;
    }

    fn lock_scan(&self) -> MutexGuard<'_, Option<Vec<WorktreeChange>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Caches one repository and one committed state of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLoad(Arc<Mutex<CachedLoad>>);

#[derive(Debug, Default)]
struct CachedLoad {
    repository: Option<Repository>,
    state: Option<Arc<CommittedState>>,
    listing: WorkTreeListing,
    folders: FolderTree,
    ignore_files: Option<(Id, IgnoreFiles)>,
}

impl LastLoad {
    /// Returns the committed state at `commit`, reading it unless it is the cached one.
    pub(crate) fn load(&self, repository: &Repository, commit: Id) -> Result<Arc<CommittedState>, LoadError> {
        if let Some(loaded) = self.lock_load().state.as_ref().filter(|loaded| loaded.commit == commit) {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(load_state(repository, commit)?);
        self.lock_load().state = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Returns the open repository, if its work tree is `root`.
    pub(crate) fn repository(&self, root: &Path) -> Option<Repository> {
        self.lock_load().repository.as_ref().filter(|repository| repository.work_dir() == root).cloned()
    }

    /// Stores a repository that is bound to its captured configuration.
    pub(crate) fn store_repository(&self, repository: &Repository) {
        self.lock_load().repository = Some(repository.clone());
    }

    /// Runs `list` on the cached listing; a concurrent caller starts from an empty one.
    pub(crate) fn with_listing<T>(&self, list: impl FnOnce(&mut WorkTreeListing) -> T) -> T {
        let mut listing = std::mem::take(&mut self.lock_load().listing);
        let listed = list(&mut listing);
        self.lock_load().listing = listing;
        listed
    }

    /// The same with the cached folders.
    pub(crate) fn with_folders<T>(&self, list: impl FnOnce(&mut FolderTree) -> T) -> T {
        let mut folders = std::mem::take(&mut self.lock_load().folders);
        let listed = list(&mut folders);
        self.lock_load().folders = folders;
        listed
    }

    /// Returns the ignore files that were accepted last, with the commit at which they hold.
    pub(crate) fn ignore_files(&self) -> Option<(Id, IgnoreFiles)> {
        self.lock_load().ignore_files.clone()
    }

    /// Stores the ignore files that hold at a commit.
    pub(crate) fn store_ignore_files(&self, commit: Id, files: &IgnoreFiles) {
        self.lock_load().ignore_files = Some((commit, files.clone()));
    }

    /// Drops cached objects, so that they are read from the repository again.
    pub(crate) fn forget_objects(&self) {
        if let Some(repository) = &self.lock_load().repository {
            repository.clear_object_cache();
        }
    }

    /// Clears both caches.
    pub(crate) fn clear(&self) {
        *self.lock_load() = CachedLoad::default();
    }

    fn lock_load(&self) -> MutexGuard<'_, CachedLoad> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
