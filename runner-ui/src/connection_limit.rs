//! Places for connections: who has shown what opens the door keeps theirs. Strangers have a part of them, and where that is
//! full the one that has waited longest gives way: whoever only holds connections open locks nobody out.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Places of strangers.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimit {
    most: usize,
    strangers: Arc<Mutex<Unauthenticated>>,
}

#[derive(Debug, Default)]
struct Unauthenticated {
    /// How many there have been.
    count: u64,
    /// Those that are there, the one that came first in front, each with its number.
    waiting: VecDeque<(u64, CancellationToken)>,
}

/// The place of one connection; it is given back where this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionGuard {
    places: ConnectionLimit,
    number: u64,
    /// Tells the connection to give way.
    gone: CancellationToken,
}

impl ConnectionLimit {
    /// Makes places for so many strangers.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, strangers: Arc::default() }
    }

    /// Gives a place to a connection of which nothing is known yet.
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
    /// Says that it belongs to somebody who was let in: they keep it.
    pub(crate) fn is_known(&self) {
        self.places.strangers().waiting.retain(|(number, _)| *number != self.number);
    }

    /// Waits until it has to give way.
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
