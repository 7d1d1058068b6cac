//! The only place that reads a clock.
//!
//! [`now`] is for people and for names; [`since_boot`] is for everything that measures. Nothing here waits.

use std::{fs, io};

/// Its values are meaningless in another boot: see [`boot_id`].
pub use supervisor::since_boot;

/// Returns the current time of day.
pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Returns how far the time of day is ahead of the time since the machine started, in milliseconds: it decreases when
/// the clock is set back.
pub fn ahead_of_boot() -> i64 {
    let since_boot = i64::try_from(since_boot().as_millis()).unwrap_or(i64::MAX);
    now().as_millisecond().saturating_sub(since_boot)
}

/// Returns the id of this boot: two readings of [`since_boot`] are comparable only if it is the same.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_since_boot_does_not_go_back() {
        let earlier = since_boot();
        assert!(since_boot() >= earlier);
    }

    #[test]
    fn time_of_day_stays_as_far_ahead() {
        assert!((ahead_of_boot() - ahead_of_boot()).abs() < 1_000);
    }

    #[test]
    fn boot_id_is_stable_within_a_boot() {
        let id = boot_id().unwrap();
        assert_eq!(id.len(), 36, "{id}");
        assert_eq!(id, boot_id().unwrap());
    }
}
