//! Places among the runs that are driven at once: of the whole daemon, and of the source that isolated runs are of.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Where a worker gets its run a place.
#[derive(Debug, Clone)]
pub struct Slots {
    all: Arc<Semaphore>,
    of_source: Option<Arc<Semaphore>>,
}

/// A place; whoever drops it lets the next one.
#[derive(Debug)]
pub(crate) struct Slot {
    _of_all: OwnedSemaphorePermit,
    _of_source: Option<OwnedSemaphorePermit>,
}

impl Slots {
    /// Makes so many places.
    pub fn new(count: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(count)), of_source: None }
    }

    /// Returns the same places for runs of one source, which have fewer among them.
    #[must_use]
    pub fn within(&self, of_source: Arc<Semaphore>) -> Self {
        Self { all: Arc::clone(&self.all), of_source: Some(of_source) }
    }

    /// Waits for a place. One among the runs of the source comes first: who waits for that keeps nobody else out.
    pub(crate) async fn acquire(self) -> Option<Slot> {
        let of_source = match self.of_source {
            Some(places) => Some(places.acquire_owned().await.ok()?),
            None => None,
        };
        Some(Slot { _of_all: self.all.acquire_owned().await.ok()?, _of_source: of_source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn runs_of_one_source_leave_places_to_others() {
        let all = Slots::new(3);
        let of_source = all.within(Arc::new(Semaphore::new(2)));
        let taken = (of_source.clone().acquire().await, of_source.clone().acquire().await);
        let mut third = Box::pin(of_source.acquire());
        tokio::select! {
            biased;
            _ = &mut third => panic!("only two of a source are driven at once"),
            () = std::future::ready(()) => {}
        }
        assert!(all.acquire().await.is_some(), "the third place is anybody's");
        drop(taken);
        assert!(third.await.is_some());
    }
}
