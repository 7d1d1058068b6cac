//! Messages and the times that they name; and text that names none.

use jiff::Timestamp;
use jiff::civil::date;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::{Clock, find_reset_time};

fn zone_named(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok()
}

/// Reads a text at 20:00 on Sunday, 22 November 2026 in local time of a zone; returns the result in the same local
/// time.
fn read_in(zone: &str, text: &str) -> Option<String> {
    let local = zone_named(zone).expect("the zone is known");
    let now = date(2026, 11, 22).at(20, 0, 0, 0).to_zoned(local.clone()).unwrap().timestamp();
    read_at(now, zone, text)
}

fn read_at(now: Timestamp, zone: &str, text: &str) -> Option<String> {
    let local = zone_named(zone).expect("the zone is known");
    let clock = Clock { now, local: local.clone(), zone: &zone_named };
    find_reset_time(text, &clock).map(|time| time.to_zoned(local).strftime("%Y-%m-%d %H:%M:%S").to_string())
}

#[track_caller]
fn assert_times(zone: &str, rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(read_in(zone, text).as_deref(), Some(*expected), "{zone}: {text}");
    }
}

#[test]
fn a_time_of_day_is_the_next_one() {
    let rows = [
        (
            "You\u{2019}ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit \
             https://chatgpt.com/settings/usage to purchase more credits or try again at 9:16 PM.",
            "2026-11-22 21:16:00",
        ),
        ("try again at 9:16\u{202f}PM.", "2026-11-22 21:16:00"),
        ("TRY AGAIN AT 9:16 pm", "2026-11-22 21:16:00"),
        ("try again at 9:16 p.m. or later", "2026-11-22 21:16:00"),
        ("try again at 7:16 PM.", "2026-11-23 19:16:00"),
        ("resets 9pm", "2026-11-22 21:00:00"),
        ("5-hour limit reached \u{2219} resets 3am", "2026-11-23 03:00:00"),
        ("You've hit your limit \u{b7} resets at 21:30", "2026-11-22 21:30:00"),
        ("Your limit will reset at 14:30:15.", "2026-11-23 14:30:15"),
        ("resets 12am", "2026-11-23 00:00:00"),
        ("resets 12pm", "2026-11-23 12:00:00"),
        ("resets 12:30 am", "2026-11-23 00:30:00"),
        ("Resets at midnight.", "2026-11-23 00:00:00"),
        ("available again at noon", "2026-11-23 12:00:00"),
        ("at 21:30 you can try again", "2026-11-22 21:30:00"),
        ("9:16 PM", "2026-11-22 21:16:00"),
        ("limit reached (9:16 PM)", "2026-11-22 21:16:00"),
        ("reset 9.16pm", "2026-11-22 21:16:00"),
        ("Come back at 21h30", "2026-11-22 21:30:00"),
        ("Reset time: 9:16:30 PM", "2026-11-22 21:16:30"),
    ];
    assert_times("UTC", &rows);
    assert_times("Europe/Berlin", &rows);
    assert_times("America/New_York", &rows);
    assert_times("Asia/Kolkata", &rows);
    assert_times("Pacific/Auckland", &rows);
}

#[test]
fn a_time_that_has_just_passed_is_now() {
    let at = |time: &str, text: &str| read_at(time.parse().unwrap(), "UTC", text);
    assert_eq!(at("2026-11-22T21:16:30Z", "try again at 9:16 PM.").as_deref(), Some("2026-11-22 21:16:30"));
    assert_eq!(at("2026-11-22T21:26:00Z", "try again at 9:16 PM.").as_deref(), Some("2026-11-22 21:26:00"));
    assert_eq!(at("2026-11-22T21:27:00Z", "try again at 9:16 PM.").as_deref(), Some("2026-11-23 21:16:00"));
    assert_eq!(at("2026-11-23T00:02:00Z", "resets 11:58pm").as_deref(), Some("2026-11-23 00:02:00"));
    assert_eq!(at("2026-11-23T00:02:00Z", "resets Nov 22, 11:58pm").as_deref(), Some("2026-11-23 00:02:00"));
    assert_eq!(at("2026-11-23T09:05:00Z", "resets Mon 9am").as_deref(), Some("2026-11-23 09:05:00"));
    assert_eq!(at("2026-11-23T09:15:00Z", "resets Mon 9am").as_deref(), Some("2026-11-30 09:00:00"));
}

#[test]
fn a_day_may_be_named_in_every_usual_way() {
    let rows = [
        ("try again at Nov 24th, 2026 8:16 PM.", "2026-11-24 20:16:00"),
        ("try again at Nov 24, 8:16 PM", "2026-11-24 20:16:00"),
        ("try again on November 24 at 8:16 PM", "2026-11-24 20:16:00"),
        ("resets Nov 26, 3am", "2026-11-26 03:00:00"),
        ("resets 3am, Nov 26", "2026-11-26 03:00:00"),
        ("resets at 3am on the 26th of November", "2026-11-26 03:00:00"),
        ("resets 26 Nov 2026 03:00", "2026-11-26 03:00:00"),
        ("resets Dec. 3 at 15:00", "2026-12-03 15:00:00"),
        ("resets Jan 3, 3am", "2027-01-03 03:00:00"),
        ("spend limit reached \u{b7} resets Nov 28 \u{b7} request an increase", "2026-11-28 00:00:00"),
        ("resets Mon 9am", "2026-11-23 09:00:00"),
        ("resets Monday at 9:00", "2026-11-23 09:00:00"),
        ("resets on Sunday at 9pm", "2026-11-22 21:00:00"),
        ("resets next Saturday, 9:00", "2026-11-28 09:00:00"),
        ("resets Thu, Nov 26, 3:30 AM", "2026-11-26 03:30:00"),
        ("try again tomorrow at 9am", "2026-11-23 09:00:00"),
        ("try again at 9am tomorrow", "2026-11-23 09:00:00"),
        ("try again tomorrow", "2026-11-23 00:00:00"),
        ("resets today at 11pm", "2026-11-22 23:00:00"),
        ("your limit resets on 2026-11-26 at 03:00", "2026-11-26 03:00:00"),
        ("resets 11/24/2026, 8:16:00 PM", "2026-11-24 20:16:00"),
        ("resets 24/11/2026 20:16", "2026-11-24 20:16:00"),
        ("resets 24.11.2026, 20:16", "2026-11-24 20:16:00"),
        ("resets Feb 28, 2027, 3am", "2027-02-28 03:00:00"),
        ("usage limit will be lifted on 26/11/2026 at 03:00", "2026-11-26 03:00:00"),
        ("blocked until Nov 23 09:00", "2026-11-23 09:00:00"),
        ("next reset: Sun 29 Nov, 9:00 am", "2026-11-29 09:00:00"),
        ("limit resets on the 1st of December at noon", "2026-12-01 12:00:00"),
        ("Try again after Nov 24", "2026-11-24 00:00:00"),
    ];
    assert_times("UTC", &rows);
    assert_times("America/Los_Angeles", &rows);
    assert_times("Australia/Sydney", &rows);
}

#[test]
fn a_zone_in_the_text_is_the_one_that_counts() {
    let rows = [
        ("You've hit your limit \u{b7} resets 9:29pm (UTC)", "2026-11-22 22:29:00"),
        ("resets 9pm (Europe/Berlin)", "2026-11-22 21:00:00"),
        ("resets 9PM (europe/berlin)", "2026-11-22 21:00:00"),
        ("resets Nov 26, 3am (America/New_York)", "2026-11-26 09:00:00"),
        ("resets 3am (America/Argentina/Buenos_Aires)", "2026-11-23 07:00:00"),
        ("resets 3pm America/Port-au-Prince", "2026-11-22 21:00:00"),
        ("resets 3am (Etc/GMT+2)", "2026-11-23 06:00:00"),
        ("resets 9pm UTC", "2026-11-22 22:00:00"),
        ("resets at 9pm GMT+2", "2026-11-22 20:00:00"),
        ("resets at 21:30 UTC-05:00", "2026-11-23 03:30:00"),
        ("resets 9pm (UTC+05:30)", "2026-11-23 16:30:00"),
        ("resets 1pm PST", "2026-11-22 22:00:00"),
        ("resets 1pm pdt", "2026-11-22 21:00:00"),
        ("resets 5:30 pm EST", "2026-11-22 23:30:00"),
        ("resets 6pm EDT", "2026-11-22 23:00:00"),
        ("resets 9pm CET", "2026-11-22 21:00:00"),
        ("resets 11pm CEST", "2026-11-22 22:00:00"),
        ("resets 1pm PT", "2026-11-22 22:00:00"),
        ("resets at midnight Pacific time", "2026-11-23 09:00:00"),
        ("resets tomorrow at 9am (UTC)", "2026-11-23 10:00:00"),
        ("resets 9am UTC tomorrow", "2026-11-23 10:00:00"),
        ("resets 4am (Japan)", "2026-11-22 20:00:00"),
        ("Your limit will reset at 10:00 PM Eastern Time.", "2026-11-23 04:00:00"),
        ("Quota will reset at midnight (Pacific Time)", "2026-11-23 09:00:00"),
        ("Quota resets daily at 00:00 UTC", "2026-11-23 01:00:00"),
        ("resets on Tue Nov 24 2026 20:16:00 GMT+0100 (Central European Standard Time)", "2026-11-24 20:16:00"),
    ];
    assert_times("Europe/Berlin", &rows);
}

#[test]
fn machine_readable_times_are_read_too() {
    let rows = [
        ("resets at 2026-11-22T21:16:00Z", "2026-11-22 22:16:00"),
        ("resets at 2026-11-22T21:16:00.123456+00:00", "2026-11-22 22:16:00"),
        ("resets at 2026-11-22T21:16:00-0500", "2026-11-23 03:16:00"),
        ("resets at 2026-11-22 21:16:00", "2026-11-22 21:16:00"),
        ("resets at 2026-11-22 21:16 UTC", "2026-11-22 22:16:00"),
        ("resets at 2026-11-22 21:16:00 +0000 UTC", "2026-11-22 22:16:00"),
        ("{\"resets_at\":\"2026-11-22T21:16:00Z\"}", "2026-11-22 22:16:00"),
        ("anthropic-ratelimit-requests-reset: 2026-11-22T21:16:00Z", "2026-11-22 22:16:00"),
        ("Retry-After: Sun, 22 Nov 2026 21:16:00 GMT", "2026-11-22 22:16:00"),
        ("resets_at: 1795382160", "2026-11-22 22:16:00"),
        ("{\"type\":\"usage_limit_reached\",\"resets_at\":1795382160,\"plan\":\"pro\"}", "2026-11-22 22:16:00"),
        ("{\"resetsAt\":1795382160000}", "2026-11-22 22:16:00"),
        ("Claude AI usage limit reached|1795382160", "2026-11-22 22:16:00"),
        ("2026-11-22T19:00:00Z ERROR usage limit, try again at 22:16", "2026-11-22 22:16:00"),
    ];
    assert_times("Europe/Berlin", &rows);
}

#[test]
fn a_length_of_waiting_is_counted_from_now() {
    let rows = [
        ("try again in 3 hours 12 minutes", "2026-11-22 23:12:00"),
        ("Try again in 3 hours, and 12 minutes.", "2026-11-22 23:12:00"),
        ("Try again in about an hour.", "2026-11-22 21:00:00"),
        ("resets in 5 days 2h", "2026-11-27 22:00:00"),
        ("resets in 2 weeks", "2026-12-06 20:00:00"),
        ("retry after 30 seconds", "2026-11-22 20:00:30"),
        ("Please wait 30 seconds before the next request", "2026-11-22 20:00:30"),
        ("please wait for at least two minutes", "2026-11-22 20:02:00"),
        ("Retry-After: 120", "2026-11-22 20:02:00"),
        ("retry-after-ms: 5000", "2026-11-22 20:00:05"),
        ("{\"retry_after_seconds\": 120}", "2026-11-22 20:02:00"),
        ("\"resets_in_seconds\":3600,\"x\":1", "2026-11-22 21:00:00"),
        (
            "Rate limit reached: Limit 30000, Used 22999, Requested 12528. Please try again in 1.5s. Visit",
            "2026-11-22 20:00:01",
        ),
        ("Please try again in 6m0s.", "2026-11-22 20:06:00"),
        ("Please try again in 250ms.", "2026-11-22 20:00:00"),
        ("Please retry in 34.074824224s.", "2026-11-22 20:00:34"),
        ("\"retryDelay\": \"34s\"", "2026-11-22 20:00:34"),
        ("Your quota will reset after 9h13m44s.", "2026-11-23 05:13:44"),
        ("x-ratelimit-reset-tokens: 6m0s", "2026-11-22 20:06:00"),
        ("limit resets in 2:15:00", "2026-11-22 22:15:00"),
        ("In 3 hours you can try again.", "2026-11-22 23:00:00"),
        ("You've reached your 5-hour limit. Try again in 2 hours.", "2026-11-22 22:00:00"),
        ("You have 3 hours left until your limit resets", "2026-11-22 23:00:00"),
        ("Come back 90 minutes from now", "2026-11-22 21:30:00"),
        ("Your access will be restored in 1 day, 4 hours and 12 minutes", "2026-11-24 00:12:00"),
        ("resets in ~2h", "2026-11-22 22:00:00"),
        ("resets in 2 hours (at 10pm)", "2026-11-22 22:00:00"),
        ("ratelimit-reset: 3600", "2026-11-22 21:00:00"),
    ];
    assert_times("UTC", &rows);
    assert_times("America/Sao_Paulo", &rows);
}

#[test]
fn what_is_no_time_is_none() {
    for text in [
        "",
        "exceeded retry limit, last status: 429 Too Many Requests",
        "exceeded 5 times",
        "You've reached your 5-hour limit.",
        "This request would exceed your organization's rate limit of 40,000 input tokens per minute",
        "Please try again later.",
        "try again in a few minutes",
        "Request timed out after 30 seconds",
        "No response in 30 seconds; try again",
        "stream idle for 300s",
        "failed after 3 attempts in 10 seconds",
        "retry limit reached after 12 seconds",
        "API Error: 500 Internal server error. try again in a moment.",
        "unexpected status 503, url: http://127.0.0.1:8080/v1/responses",
        "panicked at src/main.rs:12:30: try again",
        "Connection reset by peer (os error 104)",
        "request-id 1795382160",
        "resets 25:99",
        "resets 13pm",
        "resets 0pm",
        "resets Nov 31, 3am",
        "resets Feb 29, 2027 3am",
        "try again at Nov 24th, 2020 8:16 PM",
        "resets 1970-01-01T00:00:00Z",
        "resets_at: 0",
        "resets_at: 1000000000",
        "resets 2031-01-01T00:00:00Z",
        "resets Nov 19, 3am",
        "resets 9pm (Mars/Olympus)",
        "2026-11-22T19:59:59Z ERROR it failed",
        "retry after 3 attempts",
        "try again in 99999999999999999999 days",
        "resets in 500 weeks",
        "resets next week",
        "ran for 3 hours",
    ] {
        assert_eq!(read_in("UTC", text), None, "{text}");
    }
}

#[test]
fn a_clock_that_is_put_forward_or_back_moves_the_time_with_it() {
    let spring = "2026-03-29T00:30:00Z".parse().unwrap();
    assert_eq!(read_at(spring, "Europe/Berlin", "resets 2:30am").as_deref(), Some("2026-03-29 03:30:00"));
    let autumn = "2026-10-24T22:30:00Z".parse().unwrap();
    let clock = Clock { now: autumn, local: zone_named("Europe/Berlin").unwrap(), zone: &zone_named };
    assert_eq!(find_reset_time("resets 2:30am", &clock), Some("2026-10-25T00:30:00Z".parse().unwrap()));
    assert_eq!(find_reset_time("resets 3:30am", &clock), Some("2026-10-25T02:30:00Z".parse().unwrap()));
}

#[test]
fn the_first_time_that_is_waited_for_counts() {
    let text = "At 8:30 PM 90% were used. The limit resets 9pm; the weekly one resets Nov 26, 3am.";
    assert_eq!(read_in("UTC", text).as_deref(), Some("2026-11-22 21:00:00"));
}

#[test]
fn a_text_of_any_length_is_read_up_to_its_limit() {
    let long = "resets at ".repeat(200_000) + "9pm";
    assert_eq!(read_in("UTC", &long), None);
    let digits = format!("resets in {}", "9".repeat(1_000_000));
    assert_eq!(read_in("UTC", &digits), None);
}

proptest! {
    #[test]
    fn no_text_is_too_much_for_it(text in any::<String>()) {
        if let Some(time) = read_in("Europe/Berlin", &text) {
            prop_assert!(time.as_str() >= "2026-11-22 20:00:00", "{time}");
        }
    }

    #[test]
    fn no_mixture_of_its_own_words_is_too_much_for_it(
        words in prop::collection::vec(prop::sample::select(vec![
            "resets", "at", "in", "9", "16", "59", "2026", "99", "pm", "am", ":", "-", "+", "/", ".", ",", " ", "(", ")",
            "UTC", "Z", "T", "Nov", "Mon", "tomorrow", "hours", "ms", "an", "1795382160", "Europe/Berlin", "retry", "|",
            "\u{2019}", "\u{202f}", "ä", "24th", "GMT", "99999999999999999999",
        ]), 0..40)
    ) {
        let text = words.concat();
        if let Some(time) = read_in("America/New_York", &text) {
            prop_assert!(time.as_str() >= "2026-11-22 20:00:00", "{text}: {time}");
        }
    }
}
