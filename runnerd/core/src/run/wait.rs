//! How long to wait for the model's service, and when a wait is over.
//!
//! Times of day are passed in as values: a wait ends by the wall clock, however long the machine has slept in the
//! meantime.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Added to a stated end of a limit, because clocks differ.
const STATED_MARGIN: SignedDuration = SignedDuration::from_secs(60);
/// The latest stated end that is believed: the longest limits of services last a week.
const MAX_STATED_WAIT: SignedDuration = SignedDuration::from_hours(8 * 24);
/// Minutes to wait if no end is stated, by the number of previous waits.
const BACKOFF_MINUTES: [i64; 5] = [1, 5, 15, 30, 60];
/// A clock that is before the beginning of a wait by more than this was set back.
const CLOCK_STEP: SignedDuration = SignedDuration::from_secs(60);
/// Longest sleep of a timer that stops while the machine sleeps.
const MAX_TIMER_SLEEP: SignedDuration = SignedDuration::from_secs(60);

/// A period of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitPeriod {
    /// When the wait began.
    pub since: Timestamp,
    /// When the wait is over.
    pub until: Timestamp,
}

impl WaitPeriod {
    /// Returns the wait for a service that was not available for the `times + 1`st time in a row.
    ///
    /// It lasts for a minute beyond the end that the service states, else for 1, 5, 15, 30 and then 60 minutes. An
    /// end that has passed, or that is more than eight days away, is none.
    pub fn for_service(now: Timestamp, stated: Option<Timestamp>, times: u32) -> Self {
        let step = BACKOFF_MINUTES[usize::try_from(times).unwrap_or(usize::MAX).min(BACKOFF_MINUTES.len() - 1)];
        let until = match stated.filter(|stated| is_plausible_end(now, *stated)) {
            Some(stated) => stated.checked_add(STATED_MARGIN),
            None => now.checked_add(SignedDuration::from_mins(step)),
        };
        Self { since: now, until: until.unwrap_or(Timestamp::MAX) }
    }

    /// Whether the wait is over.
    ///
    /// It also is if the clock was set back to before its beginning, because the remaining time is then unknown.
    pub fn is_over(self, now: Timestamp) -> bool {
        now >= self.until || now.duration_until(self.since) > CLOCK_STEP
    }

    /// Returns how long a timer may sleep before the clock is checked again.
    pub fn timer_sleep(self, now: Timestamp) -> SignedDuration {
        now.duration_until(self.until).clamp(SignedDuration::ZERO, MAX_TIMER_SLEEP)
    }
}

/// Whether a stated end is plausible.
pub fn is_plausible_end(now: Timestamp, stated: Timestamp) -> bool {
    stated > now && now.duration_until(stated) <= MAX_STATED_WAIT
}
