//! Durations, times, counts and money for people; `--json` has the exact figures.

use jiff::Timestamp;

use super::screen::Screen;

/// Returns a duration given in milliseconds: `340ms`, `1.4s`, `42s`, `3m 04s`, `1h 05m`, `2d 03h`.
pub(crate) fn format_duration(ms: u64) -> String {
    let secs = ms / 1000;
    match secs {
        0 => format!("{ms}ms"),
        1..10 => format!("{secs}.{}s", ms % 1000 / 100),
        10..60 => format!("{secs}s"),
        60..3_600 => format!("{}m {:02}s", secs / 60, secs % 60),
        3_600..86_400 => format!("{}h {:02}m", secs / 3_600, secs % 3_600 / 60),
        _ => format!("{}d {:02}h", secs / 86_400, secs % 86_400 / 3_600),
    }
}

/// Returns a duration given in milliseconds in whole seconds: `0s`, `42s`, `3m 04s`.
pub(crate) fn format_seconds(ms: u64) -> String {
    if ms < 10_000 { format!("{}s", ms / 1000) } else { format_duration(ms) }
}

/// Returns the milliseconds from one time to another; 0 if the clock was set back.
pub(crate) fn millis_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millisecond().saturating_sub(from.as_millisecond())).unwrap_or(0)
}

/// Returns an amount of bytes: `0 B`, `512 B`, `1.4 kB`, `38 MB`.
pub(crate) fn format_bytes(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    let mut tenths = u128::from(bytes) * 10;
    let mut text = format!("{bytes} B");
    for unit in units {
        if tenths < 10_000 {
            break;
        }
        tenths /= 1_000;
        text = if tenths < 100 {
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        } else {
            format!("{} {unit}", tenths / 10)
        };
    }
    text
}

/// Returns how long ago a time was: `3m 04s ago`.
pub(crate) fn format_ago(time: Timestamp, now: Timestamp) -> String {
    format!("{} ago", format_seconds(millis_between(time, now)))
}

/// Returns a future time, by the reader's clock: `14:01 (in 12m 00s)`, `Tue 24 Nov 14:01 (in 2d 03h)`.
pub(crate) fn format_until(time: Timestamp, screen: &Screen) -> String {
    let then = screen.to_zoned(time);
    let today = screen.to_zoned(screen.now);
    let format = if then.date() == today.date() { "%H:%M" } else { "%a %-d %b %H:%M" };
    format!("{} (in {})", then.strftime(format), format_duration(millis_between(screen.now, time)))
}

/// Returns a count: `950`, `1.2k`, `3.4M`.
pub(crate) fn format_count(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format_tenths(n / 100, "k"),
        _ => format_tenths(n / 100_000, "M"),
    }
}

fn format_tenths(n: u64, unit: &str) -> String {
    if n.is_multiple_of(10) { format!("{}{unit}", n / 10) } else { format!("{}.{}{unit}", n / 10, n % 10) }
}

/// Returns millionths of a dollar as dollars, rounded up to the cent.
pub(crate) fn format_dollars(micro: u64) -> String {
    let cents = micro.div_ceil(10_000);
    format!("${}.{:02}", cents / 100, cents % 100)
}

/// Returns the short form of a commit id.
pub(crate) fn short_id(commit: &str) -> &str {
    commit.get(..8).unwrap_or(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_in_the_unit_that_fits() {
        let texts = [0, 999, 1_000, 1_449, 38_400_000, 999_999_999, 2_000_000_000].map(format_bytes);
        assert_eq!(texts, ["0 B", "999 B", "1.0 kB", "1.4 kB", "38 MB", "999 MB", "2.0 GB"]);
    }

    #[test]
    fn a_duration_has_two_figures_that_matter() {
        let texts = [340, 1_420, 42_000, 184_000, 3_900_000, 183_600_000].map(format_duration);
        assert_eq!(texts, ["340ms", "1.4s", "42s", "3m 04s", "1h 05m", "2d 03h"]);
    }

    #[test]
    fn a_clock_that_went_back_gives_no_negative_age() {
        let time: Timestamp = "2026-01-01T00:00:10Z".parse().expect("a time");
        assert_eq!(format_ago(time, "2026-01-01T00:00:00Z".parse().expect("a time")), "0s ago");
    }

    #[test]
    fn a_time_to_come_names_its_day_where_that_is_another() {
        let format_at = |time: &str| format_until(time.parse().expect("a time"), &Screen::fixed());
        assert_eq!(format_at("2026-01-01T14:01:30Z"), "14:01 (in 2h 01m)");
        assert_eq!(format_at("2026-01-03T15:00:00Z"), "Sat 3 Jan 15:00 (in 2d 03h)");
    }

    #[test]
    fn money_is_never_rounded_down_to_nothing() {
        assert_eq!([0, 1, 3_214_000].map(format_dollars), ["$0.00", "$0.01", "$3.22"]);
    }

    #[test]
    fn counts_are_short() {
        assert_eq!([950, 1_250, 800_000, 3_450_000].map(format_count), ["950", "1.2k", "800k", "3.4M"]);
    }
}
