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
const KEPT: usize = 4096;
/// Chunks of output that may be queued for a page.
const OUTPUT_KEPT: usize = 1024;

/// Identifies an event: the daemon process, and the event's number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventId {
    /// When the daemon was started, in milliseconds since 1970.
    pub(crate) life: i64,
    /// Number of the event.
    pub(crate) seq: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.life, self.seq)
    }
}

impl FromStr for EventId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (life, seq) = text.split_once('-').ok_or(())?;
        Ok(Self { life: life.parse().map_err(drop)?, seq: seq.parse().map_err(drop)? })
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
    Gone(Notice),
    /// A daemon answers again.
    Back(Notice),
}

/// The hub; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct EventHub {
    shared: Arc<HubState>,
}

#[derive(Debug)]
struct HubState {
    kept: Mutex<EventBacklog>,
    live: broadcast::Sender<HubMessage>,
    output: broadcast::Sender<Arc<Event>>,
    /// Number of pages subscribed to output.
    lookers: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct EventBacklog {
    /// Id of the last event that is no longer buffered.
    before: Option<EventId>,
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
        let (live, _) = broadcast::channel(KEPT);
        let (output, _) = broadcast::channel(OUTPUT_KEPT);
        let (lookers, _) = watch::channel(0);
        Self { shared: Arc::new(HubState { kept: Mutex::default(), live, output, lookers }) }
    }
}

impl EventHub {
    fn kept(&self) -> MutexGuard<'_, EventBacklog> {
        self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resets the buffer to start after an event: buffered events are of another daemon process, or there is a gap.
    pub(crate) fn begin(&self, before: EventId) {
        *self.kept() = EventBacklog { before: Some(before), events: VecDeque::new() };
    }

    /// Returns the id of the last event.
    pub(crate) fn last(&self) -> Option<EventId> {
        self.kept().last()
    }

    /// Buffers an event and sends it to all pages.
    pub(crate) fn publish(&self, event: Event) {
        let mut kept = self.kept();
        let Some(before) = kept.before else { return };
        let (event, id) = (Arc::new(event), before.life);
        let id = EventId { life: id, seq: event.seq };
        kept.events.push_back(Arc::clone(&event));
        if kept.events.len() > KEPT
            && let Some(gone) = kept.events.pop_front()
        {
            kept.before = Some(EventId { seq: gone.seq, ..before });
        }
        // An error only means that no page is open.
        let _ = self.shared.live.send(HubMessage::Event(id, event));
    }

    /// Sends a message to all pages without buffering it.
    pub(crate) fn tell(&self, news: HubMessage) {
        let _ = self.shared.live.send(news);
    }

    /// Subscribes from after a given event, or from now.
    pub(crate) fn join(&self, after: Option<Result<EventId, ()>>) -> HubSubscription {
        let kept = self.kept();
        let missed = match after {
            None => Some(Vec::new()),
            Some(after) => after.ok().and_then(|after| kept.since(after)),
        };
        HubSubscription { at: kept.last(), missed, live: self.shared.live.subscribe() }
    }

    /// Sends output to the pages subscribed to it.
    pub(crate) fn publish_output(&self, event: Event) {
        let _ = self.shared.output.send(Arc::new(event));
    }

    /// Subscribes to output until the result is dropped.
    pub(crate) fn look(&self) -> OutputSubscriber {
        self.shared.lookers.send_modify(|count| *count += 1);
        OutputSubscriber { output: self.shared.output.subscribe(), hub: self.clone() }
    }

    /// Returns a watch of the number of pages subscribed to output.
    pub(crate) fn lookers(&self) -> watch::Receiver<usize> {
        self.shared.lookers.subscribe()
    }
}

impl EventBacklog {
    fn last(&self) -> Option<EventId> {
        let before = self.before?;
        Some(EventId { seq: self.events.back().map_or(before.seq, |event| event.seq), ..before })
    }

    /// Returns the events after a given one; `None` if some of them are no longer buffered.
    fn since(&self, after: EventId) -> Option<Vec<(EventId, Arc<Event>)>> {
        let (before, last) = (self.before?, self.last()?);
        if after.life != before.life || after.seq < before.seq || after.seq > last.seq {
            return None;
        }
        let missed = self.events.iter().filter(|event| event.seq > after.seq);
        Some(missed.map(|event| (EventId { seq: event.seq, ..before }, Arc::clone(event))).collect())
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
        self.hub.shared.lookers.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use protocol::event::EventKind;

    use super::*;

    fn event(seq: u64) -> Event {
        let time = "2026-01-01T00:00:00Z".parse().expect("a time");
        Event { seq, time, repo: None, run: None, iter: None, kind: EventKind::Stopping }
    }

    fn missed(hub: &EventHub, life: i64, seq: u64) -> Option<Vec<u64>> {
        let joined = hub.join(Some(Ok(EventId { life, seq })));
        joined.missed.map(|missed| missed.iter().map(|(id, _)| id.seq).collect())
    }

    fn with_three() -> EventHub {
        let hub = EventHub::default();
        hub.begin(EventId { life: 7, seq: 10 });
        (11..=13).for_each(|seq| hub.publish(event(seq)));
        hub
    }

    #[test]
    fn a_page_that_comes_back_gets_what_it_missed() {
        let hub = with_three();
        assert_eq!(missed(&hub, 7, 11), Some(vec![12, 13]));
        assert_eq!(missed(&hub, 7, 13), Some(Vec::new()));
        assert_eq!(missed(&hub, 7, 10), Some(vec![11, 12, 13]));
    }

    #[test]
    fn a_place_that_is_gone_or_never_was_is_said_to_be_lost() {
        let hub = with_three();
        assert_eq!((missed(&hub, 7, 9), missed(&hub, 7, 14), missed(&hub, 8, 12)), (None, None, None));
        assert!(hub.join(Some(Err(()))).missed.is_none());
        assert_eq!(missed(&EventHub::default(), 7, 1), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let hub = with_three();
        let last = 13 + KEPT as u64;
        (14..=last).for_each(|seq| hub.publish(event(seq)));
        assert_eq!(hub.kept().events.len(), KEPT);
        assert_eq!(missed(&hub, 7, 12), None);
        assert_eq!(missed(&hub, 7, last - 1), Some(vec![last]));
    }

    #[test]
    fn another_life_begins_anew() {
        let hub = with_three();
        hub.begin(EventId { life: 8, seq: 0 });
        assert_eq!((hub.last(), missed(&hub, 7, 12)), (Some(EventId { life: 8, seq: 0 }), None));
    }

    #[test]
    fn who_looks_at_output_is_counted_until_they_leave() {
        let hub = EventHub::default();
        let (one, other) = (hub.look(), hub.look());
        assert_eq!(*hub.lookers().borrow(), 2);
        drop((one, other));
        assert_eq!(*hub.lookers().borrow(), 0);
    }

    #[test]
    fn an_id_is_read_back() {
        let id = EventId { life: 1_763_820_000_123, seq: 42 };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(["", "1", "-", "a-b", "1-2-3", "1--2"].iter().all(|text| text.parse::<EventId>().is_err()));
    }
}
