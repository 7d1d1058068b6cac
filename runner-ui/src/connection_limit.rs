//! Limits connections: authenticated clients keep theirs. Unauthenticated connections share a fixed number of slots; if
//! all are taken, the longest waiting one is closed, so that a client which merely holds connections open locks no one
//! out.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The slots for unauthenticated connections.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimit {
    limit: usize,
    unauthenticated: Arc<Mutex<Unauthenticated>>,
}

#[derive(Debug, Default)]
struct Unauthenticated {
    /// Number of connections so far, used as their id.
    count: u64,
    /// Unauthenticated connections, oldest first, each with its id.
    waiting: VecDeque<(u64, CancellationToken)>,
}

/// The slot of one connection; dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct ConnectionGuard {
    connection_limit: ConnectionLimit,
    number: u64,
    /// Cancelled when the connection must close.
    eviction: CancellationToken,
}

impl ConnectionLimit {
    /// Creates the given number of slots.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, unauthenticated: Arc::default() }
    }

    /// Assigns a slot to a connection that is not authenticated yet.
    pub(crate) fn admit(&self) -> Arc<ConnectionGuard> {
        let eviction = CancellationToken::new();
        let mut unauthenticated = self.lock_unauthenticated();
        unauthenticated.count += 1;
        let number = unauthenticated.count;
        unauthenticated.waiting.push_back((number, eviction.clone()));
        let surplus = unauthenticated.waiting.len().saturating_sub(self.limit);
        unauthenticated.waiting.drain(..surplus).for_each(|(_, oldest)| oldest.cancel());
        Arc::new(ConnectionGuard { connection_limit: self.clone(), number, eviction })
    }

    fn lock_unauthenticated(&self) -> MutexGuard<'_, Unauthenticated> {
        self.unauthenticated.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionGuard {
    /// Marks the connection as authenticated: it no longer occupies a slot.
    pub(crate) fn mark_authenticated(&self) {
        self.connection_limit.lock_unauthenticated().waiting.retain(|(number, _)| *number != self.number);
    }

    /// Waits until the connection has to close.
    pub(crate) async fn evicted(&self) {
        self.eviction.cancelled().await;
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.mark_authenticated();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stranger_that_came_first_gives_way_and_who_is_known_does_not() {
        let limit = ConnectionLimit::new(2);
        let known = limit.admit();
        known.mark_authenticated();
        let first = limit.admit();
        let others = [limit.admit(), limit.admit()];
        assert!(first.eviction.is_cancelled());
        assert!(!known.eviction.is_cancelled() && others.iter().all(|place| !place.eviction.is_cancelled()));
        drop(others);
        assert!(limit.lock_unauthenticated().waiting.is_empty());
    }
}
