//! Server-sent events: a stream of them as text, cut where a reply's course says so.

use serde_json::Value;

use super::reply::Course;

/// The events of one reply.
#[derive(Debug, Default)]
pub(super) struct Events(Vec<String>);

impl Events {
    /// Adds an event; its name is the member `type`, as both protocols have it.
    pub(super) fn push(&mut self, event: &Value) {
        let name = event["type"].as_str().expect("BUG: an event has no type");
        self.0.push(format!("event: {name}\ndata: {event}\n\n"));
    }

    /// Returns what is sent of them.
    pub(super) fn sent(mut self, course: Course) -> String {
        let count = self.0.len();
        self.0.truncate(match course {
            Course::Whole => count,
            Course::Dropped | Course::Stalled => count.div_ceil(2),
            Course::Unfinished => count.saturating_sub(1),
            Course::NeverSent | Course::Withheld => 0,
        });
        self.0.concat()
    }
}
