//! The time zone in which a session's program reads the clock: its messages contain times of that zone.

use std::ffi::OsString;

use jiff::tz::TimeZone;

/// Returns the time zone of a session's environment: `TZ` as the system's library reads it, otherwise the machine's.
pub(super) fn session_zone(env: &[(OsString, OsString)]) -> TimeZone {
    let set = env.iter().rev().find(|(name, _)| name == "TZ").map(|(_, value)| value.to_string_lossy());
    set.map_or_else(TimeZone::system, |name| resolve_zone(name.trim_start_matches(':')))
}

/// Returns the time zone with a name; `None` if its rules are missing, which programs take for UTC.
pub(super) fn zone_by_name(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok()
}

fn resolve_zone(name: &str) -> TimeZone {
    let name = name.rsplit_once("zoneinfo/").map_or(name, |(_, name)| name);
    zone_by_name(name).or_else(|| TimeZone::posix(name).ok()).unwrap_or(TimeZone::UTC)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn hour_in_zone(tz: &str) -> i8 {
        let at: Timestamp = "2026-11-22T12:00:00Z".parse().expect("a time");
        at.to_zoned(session_zone(&[("TZ".into(), "UTC".into()), ("TZ".into(), tz.into())])).hour()
    }

    #[test]
    fn it_is_read_as_the_library_of_the_system_does() {
        for (tz, hour) in [
            ("Europe/Berlin", 13),
            (":Europe/Berlin", 13),
            (":/usr/share/zoneinfo/America/New_York", 7),
            ("EST5EDT,M3.2.0,M11.1.0", 7),
            ("", 12),
            ("Mars/Olympus", 12),
        ] {
            assert_eq!(hour_in_zone(tz), hour, "TZ={tz}");
        }
    }
}
