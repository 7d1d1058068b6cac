//! Context for reading a time, in addition to the text.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Context for reading a time, in addition to the text.
pub struct Clock<'a> {
    /// When the text is read.
    pub now: Timestamp,
    /// Zone of times that name none: the agent's local zone.
    pub local: TimeZone,
    /// Looks up a zone by a name such as `Europe/Berlin`; `None` if there is no such zone.
    pub zone: &'a dyn Fn(&str) -> Option<TimeZone>,
}

impl Clock<'_> {
    /// Returns the current time in a zone.
    pub(super) fn in_zone(&self, zone: &TimeZone) -> Zoned {
        self.now.to_zoned(zone.clone())
    }
}

impl std::fmt::Debug for Clock<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clock").field("now", &self.now).field("local", &self.local).finish_non_exhaustive()
    }
}
