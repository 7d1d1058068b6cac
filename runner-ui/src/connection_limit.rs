//! Limits connections: authenticated clients keep theirs. Unauthenticated connections share a fixed number of slots; if
//! all are taken, the longest waiting one is closed, so that a client which merely holds connections open locks no one
//! out.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The slots for unauthenticated connections.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimit {
    most: usize,
    strangers: Arc<Mutex<Unauthenticated>>,
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
    places: ConnectionLimit,
    number: u64,
    /// Cancelled when the connection must close.
    gone: CancellationToken,
}

impl ConnectionLimit {
    /// Creates the given number of slots.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, strangers: Arc::default() }
    }

    /// Assigns a slot to a connection that is not authenticated yet.
    pub(crate) fn stranger(&self) -> Arc<ConnectionGuard> {
        let gone = CancellationToken::new();
        let mut strangers = self.strangers();
        strangers.count += 1;
        let number = strangers.count;
        strangers.waiting.push_back((number, gone.clone()));
        let surplus = strangers.waiting.len().saturating_sub(self.most);
        strangers.waiting.drain(..surplus).for_each(|(_, oldest)| oldest.cancel());
        Arc::new(ConnectionGuard { places: self.clone(), number, gone })
    }

    fn strangers(&self) -> MutexGuard<'_, Unauthenticated> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionGuard {
    /// Marks the connection as authenticated: it no longer occupies a slot.
    pub(crate) fn is_known(&self) {
        self.places.strangers().waiting.retain(|(number, _)| *number != self.number);
    }

    /// Waits until the connection has to close.
    pub(crate) async fn lost(&self) {
        self.gone.cancelled().await;
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.is_known();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stranger_that_came_first_gives_way_and_who_is_known_does_not() {
        let places = ConnectionLimit::new(2);
        let known = places.stranger();
        known.is_known();
        let first = places.stranger();
        let others = [places.stranger(), places.stranger()];
        assert!(first.gone.is_cancelled());
        assert!(!known.gone.is_cancelled() && others.iter().all(|place| !place.gone.is_cancelled()));
        drop(others);
        assert!(places.strangers().waiting.is_empty());
    }
}
