//! The daemon's numbered stream of events: one writer, many readers, bounded.
//!
//! A reader that is too slow loses events and is notified of that; the writer never waits. Output of agents and guards
//! is sent only to those who subscribe to it, and is not kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::event::{Event, EventKind};
use runner_os::clock;
use tokio::sync::broadcast;

/// Number of events kept for readers that connect later or fall behind.
const MAX_BACKLOG: usize = 4096;
/// Number of pieces of output queued for a reader.
const OUTPUT_CAPACITY: usize = 256;
/// Time limit for readers to take the last event, however busy the machine is: by then they wait for nothing else.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// What an event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventSubject {
    /// Id of the repository.
    pub repo: Option<String>,
    /// Id of the run.
    pub run: Option<String>,
    /// Number of the iteration.
    pub iter: Option<u32>,
}

/// The stream of events.
#[derive(Debug, Clone)]
pub struct EventStream {
    shared: Arc<StreamState>,
}

#[derive(Debug)]
struct StreamState {
    backlog: Mutex<VecDeque<Arc<Event>>>,
    live: broadcast::Sender<Arc<Event>>,
    output: broadcast::Sender<Arc<Event>>,
}

impl Default for EventStream {
    fn default() -> Self {
        let (live, _) = broadcast::channel(MAX_BACKLOG);
        let (output, _) = broadcast::channel(OUTPUT_CAPACITY);
        Self { shared: Arc::new(StreamState { backlog: Mutex::new(VecDeque::new()), live, output }) }
    }
}

impl EventStream {
    /// Sends output to its subscribers, with the number of the preceding event.
    pub fn publish_output(&self, subject: EventSubject, kind: EventKind) {
        if self.has_output_readers() {
            let seq = self.last_seq();
            let event =
                Event { seq, time: clock::now(), repo: subject.repo, run: subject.run, iter: subject.iter, kind };
            // An error means that the last reader has just left.
            let _ = self.shared.output.send(Arc::new(event));
        }
    }

    /// Whether there are subscribers to output.
    pub fn has_output_readers(&self) -> bool {
        self.shared.output.receiver_count() > 0
    }

    /// Subscribes to future output.
    pub fn subscribe_output(&self) -> broadcast::Receiver<Arc<Event>> {
        self.shared.output.subscribe()
    }

    /// Numbers an event, sends it to every reader, and returns it.
    pub fn publish(&self, subject: EventSubject, kind: EventKind) -> Arc<Event> {
        let mut backlog = self.shared.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        let seq = backlog.back().map_or(1, |last| last.seq + 1);
        let event =
            Arc::new(Event { seq, time: clock::now(), repo: subject.repo, run: subject.run, iter: subject.iter, kind });
        backlog.push_back(Arc::clone(&event));
        if backlog.len() > MAX_BACKLOG {
            backlog.pop_front();
        }
        // An error means that there are no readers.
        let _ = self.shared.live.send(Arc::clone(&event));
        event
    }

    /// Announces that the daemon shuts down; must be called before anything that ends the stream.
    pub fn publish_stopping(&self) {
        self.publish(EventSubject::default(), EventKind::Stopping);
    }

    /// Waits until every reader has taken the last event and left; readers that wait for a peer leave when the daemon
    /// shuts down.
    pub async fn wait_until_read(&self) {
        let _ = tokio::time::timeout(DRAIN_LIMIT, self.shared.live.closed()).await;
    }

    /// Returns the number of the last event; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        let backlog = self.shared.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        backlog.back().map_or(0, |last| last.seq)
    }

    /// Returns the kept events from `since` on, a receiver for future ones, and whether some are lost.
    pub fn subscribe(&self, since: Option<u64>) -> EventSubscription {
        let backlog = self.shared.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        let live = self.shared.live.subscribe();
        let first = backlog.front().map_or(1, |event| event.seq);
        let last = backlog.back().map_or(0, |event| event.seq);
        let first_wanted = since.unwrap_or(last + 1);
        let missed = backlog.iter().filter(|event| event.seq >= first_wanted).cloned().collect();
        EventSubscription { backlog: missed, lagged: first_wanted < first || first_wanted > last + 1, live }
    }
}

/// A reader's part of the stream.
#[derive(Debug)]
pub struct EventSubscription {
    /// Events that were kept, oldest first.
    pub backlog: Vec<Arc<Event>>,
    /// Whether the requested number is no longer in the stream, or never was.
    pub lagged: bool,
    /// Receives future events.
    pub live: broadcast::Receiver<Arc<Event>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_comes_late_gets_what_it_missed() {
        let events = EventStream::default();
        for _ in 0..3 {
            events.publish(EventSubject::default(), EventKind::Stopping);
        }
        let subscription = events.subscribe(Some(2));
        assert_eq!(subscription.backlog.iter().map(|event| event.seq).collect::<Vec<_>>(), [2, 3]);
        assert!(!subscription.lagged);
    }

    #[test]
    fn a_reader_of_another_life_is_told_that_it_lagged() {
        let events = EventStream::default();
        events.publish(EventSubject::default(), EventKind::Stopping);
        assert!(events.subscribe(Some(900)).lagged);
        for _ in 0..=MAX_BACKLOG {
            events.publish(EventSubject::default(), EventKind::Stopping);
        }
        assert!(events.subscribe(Some(1)).lagged);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_waits_for_readers_and_not_for_ever() {
        let events = EventStream::default();
        let reader = events.subscribe(None);
        let start = tokio::time::Instant::now();
        events.wait_until_read().await;
        assert_eq!(start.elapsed(), DRAIN_LIMIT);
        drop(reader);
        events.wait_until_read().await;
        assert_eq!(start.elapsed(), DRAIN_LIMIT);
    }
}
