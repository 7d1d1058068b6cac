//! Cache of objects read by the operations of one repository, so that later ones need not read them again.
//!
//! Objects never change, so nothing here can be out of date.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clru::{CLruCache, CLruCacheConfig, WeightScale};
use gix::ObjectId;
use gix::objs::Kind;
use gix::odb::pack::cache::Object;

/// Caches objects up to a total number of bytes, evicting the least recently used.
///
/// The library's own cache keeps the buffer of an object that was too large for it, and hands that to the next small
/// one.
#[derive(Clone)]
pub(crate) struct ObjectCache(Arc<Mutex<ObjectLru>>);

type ObjectLru = CLruCache<ObjectId, (Kind, Box<[u8]>), RandomState, ByteWeight>;

/// Weighs an object by its size in memory.
struct ByteWeight;

impl WeightScale<ObjectId, (Kind, Box<[u8]>)> for ByteWeight {
    fn weight(&self, _: &ObjectId, (_, data): &(Kind, Box<[u8]>)) -> usize {
        data.len() + size_of::<(ObjectId, Kind, Box<[u8]>)>()
    }
}

impl ObjectCache {
    pub(crate) fn new(bytes: NonZeroUsize) -> Self {
        Self(Arc::new(Mutex::new(CLruCache::with_config(CLruCacheConfig::new(bytes).with_scale(ByteWeight)))))
    }

    /// Makes a view look here first.
    pub(crate) fn attach_to(&self, repo: &mut gix::Repository) {
        let objects = self.clone();
        repo.objects.set_object_cache(move || Box::new(objects.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, ObjectLru> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Object for ObjectCache {
    fn put(&mut self, id: ObjectId, kind: Kind, data: &[u8]) {
        let mut cache = self.lock();
        // Copying an object larger than the whole cache would be wasted.
        if data.len() < cache.capacity() {
            let _none_or_before = cache.put_with_weight(id, (kind, data.into()));
        }
    }

    fn get(&mut self, id: &ObjectId, out: &mut Vec<u8>) -> Option<Kind> {
        let mut cache = self.lock();
        let (kind, data) = cache.get(id)?;
        out.clear();
        out.extend_from_slice(data);
        Some(*kind)
    }
}

impl fmt::Debug for ObjectCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedObjects")
    }
}

/// The library's view, and the packs it knows.
#[derive(Debug)]
pub(crate) struct GixView {
    pub(crate) repo: gix::ThreadSafeRepository,
    /// When a pack was last added or removed: a view has room for only a few more packs than it opened with.
    pub(crate) packs: Option<(i64, i64)>,
    /// Objects read through it.
    pub(crate) objects: ObjectCache,
}

impl GixView {
    /// Returns the view for one operation; operations share cached objects.
    pub(crate) fn to_local(&self) -> gix::Repository {
        let mut repo = self.repo.to_thread_local();
        self.objects.attach_to(&mut repo);
        repo
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> ObjectId {
        ObjectId::from([byte; 20])
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for_and_what_was_asked_for_last_stays() {
        let mut objects = ObjectCache::new(NonZeroUsize::new(1000).expect("it is none"));
        let mut out = Vec::new();
        objects.put(id(0), Kind::Blob, &[0; 2000]);
        assert_eq!(objects.get(&id(0), &mut out), None, "it is too large");
        for byte in 1..=3 {
            objects.put(id(byte), Kind::Tree, &[byte; 300]);
            assert_eq!(objects.get(&id(1), &mut out), Some(Kind::Tree));
        }
        assert_eq!(out, [1; 300]);
        assert_eq!(objects.get(&id(2), &mut out), None, "the first and the third take all room");
        let objects = objects.lock();
        let held: usize = objects.iter().map(|(_, (_, data))| data.len()).sum();
        assert_eq!((objects.len(), held), (2, 600));
    }
}
