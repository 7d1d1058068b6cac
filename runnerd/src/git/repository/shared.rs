//! What the operations of one repository have read of its objects, so that the next does not read it again.
//!
//! An object never changes, so that nothing here can be out of date.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gix::ObjectId;
use gix::objs::Kind;
use gix::odb::pack::cache::Object;
use gix::odb::pack::cache::object::MemoryCappedHashmap;

/// Objects up to a number of bytes, of which those go first that were not asked for the longest.
#[derive(Clone)]
pub(in crate::git) struct SharedObjects(Arc<Mutex<MemoryCappedHashmap>>);

impl SharedObjects {
    pub(in crate::git) fn new(bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(MemoryCappedHashmap::new(bytes))))
    }

    fn lock(&self) -> MutexGuard<'_, MemoryCappedHashmap> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Object for SharedObjects {
    fn put(&mut self, id: ObjectId, kind: Kind, data: &[u8]) {
        self.lock().put(id, kind, data);
    }

    fn get(&mut self, id: &ObjectId, out: &mut Vec<u8>) -> Option<Kind> {
        self.lock().get(id, out)
    }
}

impl fmt::Debug for SharedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedObjects")
    }
}

/// A view of the library's, with the packs that it knows.
#[derive(Debug)]
pub(in crate::git) struct View {
    pub(in crate::git) repo: gix::ThreadSafeRepository,
    /// When a pack came or went last: a view has room for few more than there were.
    pub(in crate::git) packs: Option<(i64, i64)>,
    /// What was read of it.
    pub(in crate::git) objects: SharedObjects,
}

impl View {
    /// Returns the view for one operation; what one has read of objects spares the others.
    pub(in crate::git) fn share(&self) -> gix::Repository {
        let (mut repo, objects) = (self.repo.to_thread_local(), self.objects.clone());
        repo.objects.set_object_cache(move || Box::new(objects.clone()));
        repo
    }
}
