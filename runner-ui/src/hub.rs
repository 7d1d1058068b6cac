//! Distributes the events of successive daemons to any number of pages: buffered for late subscribers, bounded, never
//! blocking.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::event::Event;
use tokio::sync::{broadcast, watch};

use crate::wire::Notice;

/// Number of events that are buffered.
const BACKLOG_SIZE: usize = 4096;
/// Chunks of output that may be queued for a page.
const OUTPUT_BACKLOG_SIZE: usize = 1024;

/// Identifies an event: the daemon process, and the event's number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventId {
    /// When the daemon was started, in milliseconds since 1970.
    pub(crate) epoch: i64,
    /// Number of the event.
    pub(crate) seq: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.seq)
    }
}

impl FromStr for EventId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (life, seq) = text.split_once('-').ok_or(())?;
        Ok(Self { epoch: life.parse().map_err(drop)?, seq: seq.parse().map_err(drop)? })
    }
}

/// A message to pages.
#[derive(Debug, Clone)]
pub(crate) enum HubMessage {
    /// An event of the daemon.
    Event(EventId, Arc<Event>),
    /// Events were lost.
    Resync(Notice),
    /// The daemon went away.
    DaemonGone(Notice),
    /// A daemon answers again.
    DaemonBack(Notice),
}

/// The hub; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct EventHub {
    shared: Arc<HubState>,
}

#[derive(Debug)]
struct HubState {
    backlog: Mutex<EventBacklog>,
    live: broadcast::Sender<HubMessage>,
    output: broadcast::Sender<Arc<Event>>,
    /// Number of pages subscribed to output.
    output_subscribers: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct EventBacklog {
    /// Id of the last event that is no longer buffered.
    preceding: Option<EventId>,
    events: VecDeque<Arc<Event>>,
}

/// A page's subscription.
#[derive(Debug)]
pub(crate) struct HubSubscription {
    /// Id of the last event so far.
    pub(crate) at: Option<EventId>,
    /// Missed events, oldest first; `None` if they are no longer known.
    pub(crate) missed: Option<Vec<(EventId, Arc<Event>)>>,
    /// Messages from now on.
    pub(crate) live: broadcast::Receiver<HubMessage>,
}

impl Default for EventHub {
    fn default() -> Self {
        let (live, _) = broadcast::channel(BACKLOG_SIZE);
        let (output, _) = broadcast::channel(OUTPUT_BACKLOG_SIZE);
        let (lookers, _) = watch::channel(0);
        Self { shared: Arc::new(HubState { backlog: Mutex::default(), live, output, output_subscribers: lookers }) }
    }
}

impl EventHub {
    fn lock_backlog(&self) -> MutexGuard<'_, EventBacklog> {
        self.shared.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resets the buffer to start after an event: buffered events are of another daemon process, or there is a gap.
    pub(crate) fn restart_after(&self, preceding: EventId) {
        *self.lock_backlog() = EventBacklog { preceding: Some(preceding), events: VecDeque::new() };
    }

    /// Returns the id of the last event.
    pub(crate) fn last_id(&self) -> Option<EventId> {
        self.lock_backlog().last_id()
    }

    /// Buffers an event and sends it to all pages.
    pub(crate) fn publish_event(&self, event: Event) {
        let mut backlog = self.lock_backlog();
        let Some(preceding) = backlog.preceding else { return };
        let event = Arc::new(event);
        let id = preceding.epoch;
        let id = EventId { epoch: id, seq: event.seq };
        backlog.events.push_back(Arc::clone(&event));
        if backlog.events.len() > BACKLOG_SIZE
            && let Some(dropped) = backlog.events.pop_front()
        {
            backlog.preceding = Some(EventId { seq: dropped.seq, ..preceding });
        }
        // An error only means that no page is open.
        let _ = self.shared.live.send(HubMessage::Event(id, event));
    }

    /// Sends a message to all pages without buffering it.
    pub(crate) fn broadcast(&self, news: HubMessage) {
        let _ = self.shared.live.send(news);
    }

    /// Subscribes from after a given event, or from now.
    pub(crate) fn subscribe(&self, after: Option<Result<EventId, ()>>) -> HubSubscription {
        let backlog = self.lock_backlog();
        let missed = match after {
            None => Some(Vec::new()),
            Some(after) => after.ok().and_then(|after| backlog.events_after(after)),
        };
        HubSubscription { at: backlog.last_id(), missed, live: self.shared.live.subscribe() }
    }

    /// Sends output to the pages subscribed to it.
    pub(crate) fn publish_output(&self, event: Event) {
        let _ = self.shared.output.send(Arc::new(event));
    }

    /// Subscribes to output until the result is dropped.
    pub(crate) fn subscribe_output(&self) -> OutputSubscriber {
        self.shared.output_subscribers.send_modify(|count| *count += 1);
        OutputSubscriber { output: self.shared.output.subscribe(), hub: self.clone() }
    }

    /// Returns a watch of the number of pages subscribed to output.
    pub(crate) fn watch_output_subscribers(&self) -> watch::Receiver<usize> {
        self.shared.output_subscribers.subscribe()
    }
}

impl EventBacklog {
    fn last_id(&self) -> Option<EventId> {
        let preceding = self.preceding?;
        Some(EventId { seq: self.events.back().map_or(preceding.seq, |event| event.seq), ..preceding })
    }

    /// Returns the events after a given one; `None` if some of them are no longer buffered.
    fn events_after(&self, after: EventId) -> Option<Vec<(EventId, Arc<Event>)>> {
        let preceding = self.preceding?;
        let last = self.last_id()?;
        if after.epoch != preceding.epoch || after.seq < preceding.seq || after.seq > last.seq {
            return None;
        }
        let missed = self.events.iter().filter(|event| event.seq > after.seq);
        Some(missed.map(|event| (EventId { seq: event.seq, ..preceding }, Arc::clone(event))).collect())
    }
}

/// A page's subscription to output.
#[derive(Debug)]
pub(crate) struct OutputSubscriber {
    /// The output.
    pub(crate) output: broadcast::Receiver<Arc<Event>>,
    hub: EventHub,
}

impl Drop for OutputSubscriber {
    fn drop(&mut self) {
        self.hub.shared.output_subscribers.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use protocol::event::EventKind;

    use super::*;

    fn event_with_seq(seq: u64) -> Event {
        let time = "2026-01-01T00:00:00Z".parse().expect("a time");
        Event { seq, time, repo: None, run: None, iter: None, kind: EventKind::Stopping }
    }

    fn missed_seqs(hub: &EventHub, life: i64, seq: u64) -> Option<Vec<u64>> {
        let subscription = hub.subscribe(Some(Ok(EventId { epoch: life, seq })));
        subscription.missed.map(|missed| missed.iter().map(|(id, _)| id.seq).collect())
    }

    fn hub_with_three() -> EventHub {
        let hub = EventHub::default();
        hub.restart_after(EventId { epoch: 7, seq: 10 });
        (11..=13).for_each(|seq| hub.publish_event(event_with_seq(seq)));
        hub
    }

    #[test]
    fn a_page_that_comes_back_gets_what_it_missed() {
        let hub = hub_with_three();
        assert_eq!(missed_seqs(&hub, 7, 11), Some(vec![12, 13]));
        assert_eq!(missed_seqs(&hub, 7, 13), Some(Vec::new()));
        assert_eq!(missed_seqs(&hub, 7, 10), Some(vec![11, 12, 13]));
    }

    #[test]
    fn a_place_that_is_gone_or_never_was_is_said_to_be_lost() {
        let hub = hub_with_three();
        assert_eq!((missed_seqs(&hub, 7, 9), missed_seqs(&hub, 7, 14), missed_seqs(&hub, 8, 12)), (None, None, None));
        assert!(hub.subscribe(Some(Err(()))).missed.is_none());
        assert_eq!(missed_seqs(&EventHub::default(), 7, 1), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let hub = hub_with_three();
        let last = 13 + BACKLOG_SIZE as u64;
        (14..=last).for_each(|seq| hub.publish_event(event_with_seq(seq)));
        assert_eq!(hub.lock_backlog().events.len(), BACKLOG_SIZE);
        assert_eq!(missed_seqs(&hub, 7, 12), None);
        assert_eq!(missed_seqs(&hub, 7, last - 1), Some(vec![last]));
    }

    #[test]
    fn the_events_of_a_new_daemon_replace_those_of_the_old_one() {
        let hub = hub_with_three();
        hub.restart_after(EventId { epoch: 8, seq: 0 });
        assert_eq!((hub.last_id(), missed_seqs(&hub, 7, 12)), (Some(EventId { epoch: 8, seq: 0 }), None));
    }

    #[test]
    fn who_looks_at_output_is_counted_until_they_leave() {
        let hub = EventHub::default();
        let one = hub.subscribe_output();
        let other = hub.subscribe_output();
        assert_eq!(*hub.watch_output_subscribers().borrow(), 2);
        drop((one, other));
        assert_eq!(*hub.watch_output_subscribers().borrow(), 0);
    }

    #[test]
    fn an_id_is_read_back() {
        let id = EventId { epoch: 1_763_820_000_123, seq: 42 };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(["", "1", "-", "a-b", "1-2-3", "1--2"].iter().all(|text| text.parse::<EventId>().is_err()));
    }
}
