//! In-memory cache of one repository, shared by all of its clones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gix::ObjectId;
use gix::bstr::BString;
use gix::index::State;
use gix::index::entry::{Flags, Mode};
use tempfile::TempDir;

use crate::Repository;
use crate::fs_clock::FlushTime;

/// Cached state of the tracked files.
#[derive(Clone, Default)]
pub(crate) struct RepositoryCache(Arc<Mutex<CacheState>>);

#[derive(Default)]
pub(crate) struct CacheState {
    files: Option<CachedFiles>,
    pub(crate) flush: Option<FlushTime>,
    pub(crate) always_read: BTreeSet<BString>,
    /// Folders in which nothing is ever tracked, each with a trailing slash.
    pub(crate) never_tracked: BTreeSet<BString>,
    /// Paths that an index cannot untrack, and those of them that were missing from the last index.
    pub(crate) guarded: BTreeSet<BString>,
    pub(crate) untracked_guarded: Vec<BString>,
    /// Whether scans open files that their owner cannot read.
    pub(crate) opens_files: bool,
    /// Submodules that were examined, by path.
    pub(crate) submodules: BTreeMap<BString, SubmoduleRepository>,
}

/// A submodule's repository, and the folder with its rules, which is removed with it.
#[derive(Clone)]
pub(crate) struct SubmoduleRepository {
    pub(crate) repository: Repository,
    _folder: Arc<TempDir>,
}

impl SubmoduleRepository {
    pub(crate) fn new(repository: Repository, folder: TempDir) -> Self {
        Self { repository, _folder: Arc::new(folder) }
    }
}

/// The files of a tree.
pub(crate) struct CachedFiles {
    pub(crate) state: State,
    pub(crate) tree: ObjectId,
}

impl fmt::Debug for RepositoryCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory")
    }
}

impl RepositoryCache {
    pub(crate) fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the cached files, and the paths that are always read.
    pub(crate) fn take_files(&self) -> (Option<CachedFiles>, BTreeSet<BString>) {
        let mut memory = self.lock();
        if memory.flush.is_some_and(|flush| !flush.is_valid()) {
            memory.flush = None;
            if let Some(files) = &mut memory.files {
                files.state.entries_mut().iter_mut().for_each(|entry| entry.flags.remove(Flags::UPTODATE));
            }
        }
        (memory.files.take(), memory.always_read.clone())
    }

    /// Stores the files of a tree as they were read.
    pub(crate) fn store_files(&self, state: State, tree: ObjectId) {
        self.lock().files = Some(CachedFiles { state, tree });
    }

    /// Returns the submodules of HEAD, if its files are cached.
    pub(crate) fn known_submodules(&self) -> Option<BTreeSet<BString>> {
        let memory = self.lock();
        let state = &memory.files.as_ref()?.state;
        let linked = state.entries().iter().filter(|entry| entry.mode == Mode::COMMIT);
        Some(linked.map(|entry| entry.path(state).to_owned()).collect())
    }

    /// Returns the last flush of the file system, if it is still valid.
    pub(crate) fn last_flush(&self) -> Option<FlushTime> {
        self.lock().flush
    }
}

#[cfg(test)]
impl RepositoryCache {
    /// Moves the last flush forward.
    pub(crate) fn advance_flush(&self) {
        let mut memory = self.lock();
        memory.flush = memory.flush.map(FlushTime::one_hour_later);
    }

    /// Sets the clock back by an hour.
    pub(crate) fn set_clock_back(&self) {
        let mut memory = self.lock();
        memory.flush = memory.flush.map(FlushTime::with_clock_set_back);
    }
}

/// The index file whose checksum was last compared with its content, which takes longer than decoding it.
///
/// The checksum detects disk faults, not manipulation: git itself does not check it when it reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct VerifiedIndex(Arc<Mutex<Option<FileStamp>>>);

/// Identity, length and times of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    inode: (u64, u64),
    len: u64,
    times: [(i64, i64); 2],
}

impl VerifiedIndex {
    pub(crate) fn matches(&self, stamp: Option<FileStamp>) -> bool {
        stamp.is_some() && *self.0.lock().unwrap_or_else(PoisonError::into_inner) == stamp
    }

    pub(crate) fn set(&self, stamp: Option<FileStamp>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stamp;
    }
}

impl FileStamp {
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        let times = [(found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec())];
        Some(Self { inode: (found.dev(), found.ino()), len: found.len(), times })
    }

    pub(crate) fn len(self) -> u64 {
        self.len
    }
}
