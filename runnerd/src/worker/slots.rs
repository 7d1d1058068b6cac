//! Slots for the runs that are driven at once: per daemon, and per source of isolated runs.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Source of slots for a worker's runs.
#[derive(Debug, Clone)]
pub struct RunSlots {
    daemon_permits: Arc<Semaphore>,
    source_permits: Option<Arc<Semaphore>>,
}

/// A slot; dropping it releases it.
#[derive(Debug)]
pub(crate) struct RunSlot {
    _daemon_permit: OwnedSemaphorePermit,
    _source_permit: Option<OwnedSemaphorePermit>,
}

impl RunSlots {
    /// Creates `count` slots.
    pub fn new(count: usize) -> Self {
        Self { daemon_permits: Arc::new(Semaphore::new(count)), source_permits: None }
    }

    /// Returns the same slots for runs of one source, which is limited to fewer of them.
    #[must_use]
    pub fn with_source_limit(&self, source_permits: Arc<Semaphore>) -> Self {
        Self { daemon_permits: Arc::clone(&self.daemon_permits), source_permits: Some(source_permits) }
    }

    /// Waits for a slot. The limit of the source comes first: waiting for it takes no slot from others.
    pub(crate) async fn acquire(self) -> Option<RunSlot> {
        let source_permit = match self.source_permits {
            Some(permits) => Some(permits.acquire_owned().await.ok()?),
            None => None,
        };
        Some(RunSlot { _daemon_permit: self.daemon_permits.acquire_owned().await.ok()?, _source_permit: source_permit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn runs_of_one_source_leave_places_to_others() {
        let all = RunSlots::new(3);
        let of_source = all.with_source_limit(Arc::new(Semaphore::new(2)));
        let taken = (of_source.clone().acquire().await, of_source.clone().acquire().await);
        let mut third = Box::pin(of_source.acquire());
        tokio::select! {
            biased;
            _ = &mut third => panic!("only two of a source are driven at once"),
            () = std::future::ready(()) => {}
        }
        assert!(all.acquire().await.is_some(), "any run can have the third slot");
        drop(taken);
        assert!(third.await.is_some());
    }
}
