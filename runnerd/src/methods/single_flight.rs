//! Single-flight for slow reads: one at a time per repository; concurrent callers with the same question share the
//! answer.
//!
//! Of the reads requested from inside iterations, only one runs at a time overall. A read without waiting callers is
//! told to stop. This module does not know what is read.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use protocol::error::{ErrorData, ErrorKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::run_blocking;
use crate::memory;

/// What is asked, about which repository, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReadQuery {
    /// The repository's git folder.
    pub(super) repository: PathBuf,
    /// Everything else that determines the answer.
    pub(super) query: String,
    /// Whether it comes from inside an iteration: a person does not wait behind those.
    pub(super) from_inside: bool,
}

type ReadResult = Result<Arc<dyn Any + Send + Sync>, ErrorData>;

/// A read that at least one caller is waiting for.
#[derive(Debug)]
struct PendingRead {
    result: watch::Receiver<Option<ReadResult>>,
    /// Tells the read to stop when the last caller has left.
    _cancel_guard: DropGuard,
}

/// The reads in progress.
#[derive(Debug, Clone)]
pub struct SingleFlight(Arc<FlightTable>);

#[derive(Debug)]
struct FlightTable {
    pending: Mutex<BTreeMap<ReadQuery, Weak<PendingRead>>>,
    repository_limits: Mutex<BTreeMap<PathBuf, Weak<Semaphore>>>,
    inside_limit: Arc<Semaphore>,
}

impl Default for SingleFlight {
    fn default() -> Self {
        let pending = Mutex::default();
        let repository_limits = Mutex::default();
        Self(Arc::new(FlightTable { pending, repository_limits, inside_limit: Arc::new(Semaphore::new(1)) }))
    }
}

impl SingleFlight {
    /// Returns the answer to a question: from a read in progress, or from `read`, which is told when to stop.
    pub(super) async fn run<T: Clone + Send + Sync + 'static>(
        &self,
        query: ReadQuery,
        disconnected: &CancellationToken,
        read: impl FnOnce(&CancellationToken) -> Result<T, ErrorData> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let flight = self.join_or_start(query, read);
        let mut result = flight.result.clone();
        let result = tokio::select! {
            () = disconnected.cancelled() => None,
            answer = result.wait_for(Option::is_some) => answer.ok().and_then(|answer| answer.clone()),
        };
        let bug = || ErrorData::new(ErrorKind::Bug, "a read did not come to its end");
        let result = result.ok_or_else(bug)??;
        result.downcast_ref::<T>().cloned().ok_or_else(bug)
    }

    fn join_or_start<T: Send + Sync + 'static>(
        &self,
        query: ReadQuery,
        read: impl FnOnce(&CancellationToken) -> Result<T, ErrorData> + Send + 'static,
    ) -> Arc<PendingRead> {
        let mut pending = lock_mutex(&self.0.pending);
        if let Some(existing) = pending.get(&query).and_then(Weak::upgrade) {
            return existing;
        }
        let (sender, result) = watch::channel(None);
        let stop = CancellationToken::new();
        let started = Arc::new(PendingRead { result, _cancel_guard: stop.clone().drop_guard() });
        let weak = Arc::downgrade(&started);
        pending.insert(query.clone(), weak.clone());
        let this = self.clone();
        tokio::spawn(async move {
            let turn = stop.run_until_cancelled(this.acquire_turn(&query)).await;
            let result = match turn {
                Some(turn) => Some(run_blocking(move || read_and_release(turn, || read(&stop))).await),
                None => None,
            };
            this.remove_finished(&query, &weak);
            sender.send_replace(result);
        });
        started
    }

    /// Removes a finished read, so that no more callers join it.
    fn remove_finished(&self, question: &ReadQuery, finished: &Weak<PendingRead>) {
        let mut pending = lock_mutex(&self.0.pending);
        if pending.get(question).is_some_and(|known| Weak::ptr_eq(known, finished)) {
            pending.remove(question);
        }
    }

    /// Waits for the turn of a read.
    async fn acquire_turn(&self, question: &ReadQuery) -> Vec<OwnedSemaphorePermit> {
        let repository_limit = {
            let mut limits = lock_mutex(&self.0.repository_limits);
            limits.retain(|_, turns| turns.strong_count() > 0);
            let existing = limits.get(&question.repository).and_then(Weak::upgrade);
            let limit = existing.unwrap_or_else(|| Arc::new(Semaphore::new(1)));
            limits.insert(question.repository.clone(), Arc::downgrade(&limit));
            limit
        };
        let inside_limit = question.from_inside.then(|| Arc::clone(&self.0.inside_limit));
        let mut permits = Vec::new();
        for limit in inside_limit.into_iter().chain([repository_limit]) {
            permits.extend(limit.acquire_owned().await);
        }
        permits
    }
}

/// Runs the read; its turn ends with it, even if no caller is left.
fn read_and_release<T: Send + Sync + 'static>(
    permits: Vec<OwnedSemaphorePermit>,
    read: impl FnOnce() -> Result<T, ErrorData>,
) -> ReadResult {
    let result = read();
    memory::trim_heap();
    drop(permits);
    Ok(Arc::new(result?))
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc;

    use super::*;

    fn test_query(query: &str, from_inside: bool) -> ReadQuery {
        ReadQuery { repository: PathBuf::from("/repo/.git"), query: query.to_owned(), from_inside }
    }

    /// A read that ends when it is released, and counts how often it was started.
    fn blocking_read(
        started: &Arc<AtomicU32>,
    ) -> (impl FnOnce(&CancellationToken) -> Result<u32, ErrorData> + use<>, mpsc::Sender<()>) {
        let (release, hold) = mpsc::channel();
        let begun = Arc::clone(started);
        let read = move |_: &CancellationToken| {
            let number = begun.fetch_add(1, Ordering::SeqCst);
            let _ = hold.recv();
            Ok(number)
        };
        (read, release)
    }

    /// Waits until this many reads have started.
    async fn wait_until_started(started: &AtomicU32, expected: u32) {
        while started.load(Ordering::SeqCst) < expected {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn those_who_ask_the_same_get_one_answer_also_where_the_first_leaves() {
        let flights = SingleFlight::default();
        let begun = Arc::default();
        let (read, go_on) = blocking_read(&begun);
        let left = CancellationToken::new();
        let query = test_query("verify", true);
        let mut others = tokio::task::JoinSet::new();
        let follow = async {
            wait_until_started(&begun, 1).await;
            for _ in 0..100 {
                let flights = flights.clone();
                let query = query.clone();
                let unused = |_: &CancellationToken| Err(ErrorData::new(ErrorKind::Bug, "read once more"));
                others.spawn(async move { flights.run::<u32>(query, &CancellationToken::new(), unused).await });
            }
            while lock_mutex(&flights.0.pending).get(&query).map_or(0, Weak::strong_count) < 101 {
                tokio::task::yield_now().await;
            }
            left.cancel();
        };
        let (first, ()) = tokio::join!(flights.run(query.clone(), &left, read), follow);
        assert!(first.is_err());
        go_on.send(()).unwrap();
        while let Some(answer) = others.join_next().await {
            assert_eq!(answer.unwrap(), Ok(0));
        }
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        assert!(lock_mutex(&flights.0.pending).is_empty());
    }

    #[tokio::test]
    async fn reads_of_a_repository_take_turns() {
        let flights = SingleFlight::default();
        let begun = Arc::default();
        let stays = CancellationToken::new();
        let ((one, end_one), (two, end_two)) = (blocking_read(&begun), blocking_read(&begun));
        let one = flights.run(test_query("one", true), &stays, one);
        let two = flights.run(test_query("two", false), &stays, two);
        let let_go = async {
            wait_until_started(&begun, 1).await;
            let three = test_query("three", false);
            tokio::select! {
                biased;
                _ = flights.acquire_turn(&three) => panic!("one is under way"),
                () = std::future::ready(()) => {}
            }
            end_one.send(()).unwrap();
            end_two.send(()).unwrap();
        };
        let (one, two, ()) = tokio::join!(one, two, let_go);
        assert_eq!(one.unwrap() + two.unwrap(), 1, "each was read once");
    }

    #[tokio::test]
    async fn a_read_that_nobody_waits_for_is_told_to_stop() {
        let flights = SingleFlight::default();
        let begun = Arc::<AtomicU32>::default();
        let left = CancellationToken::new();
        let (sender, stopped) = tokio::sync::oneshot::channel();
        let noted = Arc::clone(&begun);
        let read = move |stop: &CancellationToken| {
            noted.fetch_add(1, Ordering::SeqCst);
            while !stop.is_cancelled() {
                std::thread::yield_now();
            }
            sender.send(()).unwrap();
            Ok(())
        };
        let leave = async {
            wait_until_started(&begun, 1).await;
            left.cancel();
        };
        let (answer, ()) = tokio::join!(flights.run(test_query("verify", true), &left, read), leave);
        assert!(answer.is_err());
        stopped.await.unwrap();
        assert!(!flights.acquire_turn(&test_query("next", true)).await.is_empty());
    }
}
