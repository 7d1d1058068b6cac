//! What is known of one repository, in memory alone, and shared by all of its clones.

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

use crate::git::Repository;
use crate::git::moment::Flush;

/// What is known of its files.
#[derive(Clone, Default)]
pub(in crate::git) struct Memory(Arc<Mutex<Remembered>>);

#[derive(Default)]
pub(in crate::git) struct Remembered {
    files: Option<Files>,
    pub(in crate::git) flush: Option<Flush>,
    pub(in crate::git) always: BTreeSet<BString>,
    /// Folders of which nothing is ever tracked, each with a slash at its end.
    pub(in crate::git) never: BTreeSet<BString>,
    /// Paths that an index cannot untrack, and those of them that the last one did not name.
    pub(in crate::git) guarded: BTreeSet<BString>,
    pub(in crate::git) kept: Vec<BString>,
    /// Submodules that were looked into, by their paths.
    pub(in crate::git) inside: BTreeMap<BString, Inside>,
}

/// The repository of a submodule, and the folder in which its rules are laid out, which goes with it.
#[derive(Clone)]
pub(in crate::git) struct Inside {
    pub(in crate::git) repository: Repository,
    _folder: Arc<TempDir>,
}

impl Inside {
    pub(in crate::git) fn new(repository: Repository, folder: TempDir) -> Self {
        Self { repository, _folder: Arc::new(folder) }
    }
}

/// The files of a tree.
pub(in crate::git) struct Files {
    pub(in crate::git) state: State,
    pub(in crate::git) tree: ObjectId,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory")
    }
}

impl Memory {
    pub(in crate::git) fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the files that are known, and the paths that are always read.
    pub(in crate::git) fn take(&self) -> (Option<Files>, BTreeSet<BString>) {
        let mut memory = self.lock();
        if memory.flush.is_some_and(|flush| !flush.counts()) {
            memory.flush = None;
            if let Some(files) = &mut memory.files {
                files.state.entries_mut().iter_mut().for_each(|entry| entry.flags.remove(Flags::UPTODATE));
            }
        }
        (memory.files.take(), memory.always.clone())
    }

    /// Remembers the files of a tree, as they were read.
    pub(in crate::git) fn keep(&self, state: State, tree: ObjectId) {
        self.lock().files = Some(Files { state, tree });
    }

    /// Returns the submodules that HEAD has, as far as its files are known.
    pub(in crate::git) fn submodules(&self) -> Option<BTreeSet<BString>> {
        let memory = self.lock();
        let state = &memory.files.as_ref()?.state;
        let linked = state.entries().iter().filter(|entry| entry.mode == Mode::COMMIT);
        Some(linked.map(|entry| entry.path(state).to_owned()).collect())
    }

    /// Returns when the file system was flushed last, if that still says something.
    pub(in crate::git) fn flush(&self) -> Option<Flush> {
        self.lock().flush
    }
}

#[cfg(test)]
impl Memory {
    /// Moves the last flush ahead.
    pub(in crate::git) fn settle(&self) {
        let mut memory = self.lock();
        memory.flush = memory.flush.map(Flush::later);
    }

    /// Sets the clock back by an hour.
    pub(in crate::git) fn set_clock_back(&self) {
        let mut memory = self.lock();
        memory.flush = memory.flush.map(Flush::by_a_clock_set_back);
    }
}

/// The index file whose checksum was compared last with what is in it, which takes longer than to decode it.
///
/// The checksum finds what a disk has done, not what somebody has: git itself does not compare it when it reads.
#[derive(Debug, Clone, Default)]
pub(in crate::git) struct Verified(Arc<Mutex<Option<Stamp>>>);

/// Which file it is, how long, and when it was written and changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) struct Stamp {
    place: (u64, u64),
    len: u64,
    times: [(i64, i64); 2],
}

impl Verified {
    pub(in crate::git) fn is(&self, stamp: Option<Stamp>) -> bool {
        stamp.is_some() && *self.0.lock().unwrap_or_else(PoisonError::into_inner) == stamp
    }

    pub(in crate::git) fn set(&self, stamp: Option<Stamp>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stamp;
    }
}

impl Stamp {
    pub(in crate::git) fn of(path: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        let times = [(found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec())];
        Some(Self { place: (found.dev(), found.ino()), len: found.len(), times })
    }
}
