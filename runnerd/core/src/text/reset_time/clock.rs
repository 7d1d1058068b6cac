//! What the reading of a time depends on besides the text.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// What the reading of a time depends on besides the text.
pub struct Clock<'a> {
    /// When the text is read.
    pub now: Timestamp,
    /// The zone of times that name none: the one that the agent had.
    pub local: TimeZone,
    /// Returns the zone of a name such as `Europe/Berlin`, where there is one.
    pub zone: &'a dyn Fn(&str) -> Option<TimeZone>,
}

impl Clock<'_> {
    /// Returns now as the clocks of a zone show it.
    pub(super) fn in_zone(&self, zone: &TimeZone) -> Zoned {
        self.now.to_zoned(zone.clone())
    }
}

impl std::fmt::Debug for Clock<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clock").field("now", &self.now).field("local", &self.local).finish_non_exhaustive()
    }
}
