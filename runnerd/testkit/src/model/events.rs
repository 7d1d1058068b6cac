//! Server-sent events: renders a stream of them as text, cut where the reply's course requires it.

use serde_json::Value;

use super::reply::Delivery;

/// The events of one reply.
#[derive(Debug, Default)]
pub(super) struct SseEvents(Vec<String>);

impl SseEvents {
    /// Adds an event, named by its member `type`, as in both protocols.
    pub(super) fn push(&mut self, event: &Value) {
        let name = event["type"].as_str().expect("BUG: an event has no type");
        self.0.push(format!("event: {name}\ndata: {event}\n\n"));
    }

    /// Adds an event without a name.
    pub(super) fn push_unnamed(&mut self, event: &Value) {
        self.0.push(format!("data: {event}\n\n"));
    }

    /// Returns the part of them that is sent.
    pub(super) fn into_text(mut self, delivery: Delivery) -> String {
        let count = self.0.len();
        self.0.truncate(match delivery {
            Delivery::Complete => count,
            Delivery::Dropped | Delivery::Stalled => count.div_ceil(2),
            Delivery::Unfinished => count.saturating_sub(1),
            Delivery::NeverSent | Delivery::Withheld => 0,
        });
        self.0.concat()
    }
}
