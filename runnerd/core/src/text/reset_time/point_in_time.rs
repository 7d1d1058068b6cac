//! Points in time as people and services write them: a day, a time of day, a zone, in one of the usual orders.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

use super::PASSED_MARGIN;
use super::clock::Clock;
use super::cursor::TokenCursor;
use super::zone::{self, ZoneMatch};

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];

/// A day as written; it may not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DaySpec {
    /// The next one on which the time is still in the future.
    Next,
    /// This many days from today.
    Ahead(i32),
    Weekday(Weekday),
    Yearly {
        month: i16,
        day: i16,
    },
    Dated {
        year: i16,
        month: i16,
        day: i16,
    },
}

/// A time of day as written; it may not exist.
#[derive(Debug, Clone, Copy)]
struct TimeOfDay {
    hour: i16,
    minute: i16,
    second: i16,
    /// Whether it says which half of the day it is in.
    has_half: bool,
}

/// A point in time as written; it may not exist.
#[derive(Debug)]
pub(super) struct PointInTime {
    day: DaySpec,
    hour: Option<TimeOfDay>,
    zone: Option<TimeZone>,
    is_unknown_zone: bool,
    /// Index of the token after it.
    pub(super) end: usize,
}

/// Reads a point in time.
pub(super) fn parse_point_in_time(cursor: TokenCursor<'_>, clock: &Clock<'_>) -> Option<PointInTime> {
    let mut moment =
        PointInTime { day: DaySpec::Next, hour: None, zone: None, is_unknown_zone: false, end: cursor.at() };
    let mut at = cursor;
    if let Some(day) = parse_day(&mut at) {
        moment.day = day;
        let mut ahead = at;
        skip_joint(&mut ahead);
        moment.hour = parse_time_of_day(&mut ahead);
        at = if moment.hour.is_some() { ahead } else { at };
        moment.take_zone(&mut at, clock);
    } else {
        moment.hour = Some(parse_time_of_day(&mut at)?);
        moment.take_zone(&mut at, clock);
        let mut ahead = at;
        skip_joint(&mut ahead);
        if let Some(day) = parse_day(&mut ahead) {
            moment.day = day;
            at = ahead;
            moment.take_zone(&mut at, clock);
        }
    }
    moment.end = at.at();
    Some(moment)
}

impl PointInTime {
    fn take_zone(&mut self, cursor: &mut TokenCursor<'_>, clock: &Clock<'_>) {
        if self.zone.is_some() || self.hour.is_none() {
            return;
        }
        match zone::take_zone(cursor, clock) {
            ZoneMatch::Zone(zone) => self.zone = Some(zone),
            ZoneMatch::Unknown => self.is_unknown_zone = true,
            ZoneMatch::Nothing => {}
        }
    }

    /// Returns whether it cannot be anything but a point in time.
    pub(super) fn is_certain(&self) -> bool {
        self.hour.is_some_and(|hour| hour.has_half || self.day != DaySpec::Next)
    }

    /// Returns the time; `None` if there is no such time.
    ///
    /// If a clock is set forward across it, the result is later by the same amount; if a clock is set back, it is the
    /// first of the two.
    pub(super) fn resolve(&self, clock: &Clock<'_>) -> Option<Timestamp> {
        if self.is_unknown_zone {
            return None;
        }
        let zone = self.zone.as_ref().unwrap_or(&clock.local);
        let time = self.hour.map_or(Some(Time::midnight()), TimeOfDay::to_time)?;
        let today = clock.in_zone(zone).date();
        let on = |date: Date| date.to_datetime(time).to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp());
        let is_ahead = |time: &Timestamp| clock.now.duration_until(*time) >= -PASSED_MARGIN;
        let near = |from: i32, to: i32| (from..=to).filter_map(move |days| days_ahead(today, days));
        match self.day {
            DaySpec::Next => near(-1, 2).filter_map(on).find(is_ahead),
            DaySpec::Ahead(days) => days_ahead(today, days).and_then(on),
            DaySpec::Weekday(weekday) => {
                near(-1, 8).filter(|date| date.weekday() == weekday).filter_map(on).find(is_ahead)
            }
            DaySpec::Dated { year, month, day } => make_date(year, month, day).and_then(on),
            DaySpec::Yearly { month, day } => {
                let years = (today.year() - 1)..=(today.year() + 1);
                let times = years.filter_map(|year| make_date(year, month, day)).filter_map(on);
                times.min_by_key(|time| distance_from_now(clock.now, *time))
            }
        }
    }
}

/// The year is chosen by distance: limits last days, and one that ended days ago would not be reported.
fn distance_from_now(now: Timestamp, time: Timestamp) -> SignedDuration {
    now.duration_until(time).abs()
}

fn days_ahead(today: Date, days: i32) -> Option<Date> {
    today.checked_add(Span::new().try_days(days).ok()?).ok()
}

fn make_date(year: i16, month: i16, day: i16) -> Option<Date> {
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

impl TimeOfDay {
    fn to_time(self) -> Option<Time> {
        let part = |number: i16| i8::try_from(number).ok();
        Time::new(part(self.hour)?, part(self.minute)?, part(self.second)?, 0).ok()
    }
}

/// Skips what may separate a day from its time.
fn skip_joint(cursor: &mut TokenCursor<'_>) {
    let _ = cursor.take_sign(',') || cursor.take_sign('\u{b7}') || cursor.take_sign('-') || cursor.take_sign('(');
    let _ = cursor.take_word_of(&["at", "on", "by", "t", "from"]);
    let _ = cursor.take_word_of(&["the"]);
}

fn parse_day(cursor: &mut TokenCursor<'_>) -> Option<DaySpec> {
    let mut ahead = *cursor;
    let _ = ahead.take_word_of(&["next", "this"]);
    let weekday = parse_weekday(&mut ahead);
    if weekday.is_some() {
        let _ = ahead.take_sign('.');
        let _ = ahead.take_sign(',');
    }
    let mut after = ahead;
    let found = parse_calendar_day(&mut after).or(parse_named_day(&mut after));
    let (day, end) = match (found, weekday) {
        (Some(day), _) => (day, after),
        (None, Some(weekday)) => (DaySpec::Weekday(weekday), ahead),
        (None, None) => return None,
    };
    *cursor = end;
    Some(day)
}

fn parse_named_day(cursor: &mut TokenCursor<'_>) -> Option<DaySpec> {
    let is_tomorrow = cursor.take_word_of(&["tomorrow"]);
    (is_tomorrow || cursor.take_word_of(&["today", "tonight"])).then_some(DaySpec::Ahead(i32::from(is_tomorrow)))
}

fn parse_weekday(cursor: &mut TokenCursor<'_>) -> Option<Weekday> {
    let mut ahead = *cursor;
    let word = ahead.take_word()?.to_ascii_lowercase();
    let (_, day) = DAYS.iter().find(|(name, _)| word.len() >= 3 && name.starts_with(&word))?;
    *cursor = ahead;
    Some(*day)
}

fn parse_calendar_day(cursor: &mut TokenCursor<'_>) -> Option<DaySpec> {
    let forms = [parse_iso_date, parse_separated_date, parse_month_first, parse_day_first];
    forms.iter().find_map(|form| {
        let mut ahead = *cursor;
        let day = form(&mut ahead)?;
        *cursor = ahead;
        Some(day)
    })
}

/// `2026-11-22`, `2026/11/22`
fn parse_iso_date(cursor: &mut TokenCursor<'_>) -> Option<DaySpec> {
    let year = cursor.take_number(4..=4)?;
    let sign = if cursor.is_followed_by('-') { '-' } else { '/' };
    let month = cursor.take_sign_number(sign, 1..=2)?;
    let day = cursor.take_sign_number(sign, 1..=2)?;
    Some(DaySpec::Dated { year, month, day })
}

/// `11/22/2026`, or `22/11/2026` if the first number cannot be a month; `22.11.2026`
fn parse_separated_date(cursor: &mut TokenCursor<'_>) -> Option<DaySpec> {
    let first = cursor.take_number(1..=2)?;
    let sign = if cursor.is_followed_by('.') { '.' } else { '/' };
    let second = cursor.take_sign_number(sign, 1..=2)?;
    let year = cursor.take_sign_number(sign, 4..=4)?;
    let (month, day) = if sign == '.' || first > 12 { (second, first) } else { (first, second) };
    Some(DaySpec::Dated { year, month, day })
}

/// `Nov 24th, 2026`
fn parse_month_first(cursor: &mut TokenCursor<'_>) -> Option<DaySpec> {
    let month = parse_month(cursor)?;
    let day = parse_ordinal(cursor)?;
    Some(parse_optional_year(cursor, month, day))
}

/// `24th of November 2026`
fn parse_day_first(cursor: &mut TokenCursor<'_>) -> Option<DaySpec> {
    let day = parse_ordinal(cursor)?;
    let _ = cursor.take_word_of(&["of"]) || cursor.take_sign('-');
    let month = parse_month(cursor)?;
    Some(parse_optional_year(cursor, month, day))
}

fn parse_month(cursor: &mut TokenCursor<'_>) -> Option<i16> {
    let word = cursor.take_word()?.to_ascii_lowercase();
    let at = MONTHS.iter().position(|name| word.len() >= 3 && (name.starts_with(&word) || word == "sept"))?;
    let _ = cursor.take_sign('.');
    i16::try_from(if word == "sept" { 9 } else { at + 1 }).ok()
}

fn parse_ordinal(cursor: &mut TokenCursor<'_>) -> Option<i16> {
    let day = cursor.take_number(1..=2)?;
    let _ = !cursor.is_apart() && cursor.take_word_of(&["st", "nd", "rd", "th"]);
    Some(day)
}

fn parse_optional_year(cursor: &mut TokenCursor<'_>, month: i16, day: i16) -> DaySpec {
    let mut ahead = *cursor;
    let _ = ahead.take_sign(',') || ahead.take_sign('-');
    match ahead.take_number(4..=4) {
        Some(year) => {
            *cursor = ahead;
            DaySpec::Dated { year, month, day }
        }
        None => DaySpec::Yearly { month, day },
    }
}

/// Takes `9pm`, `9:16 PM`, `9.16pm`, `21:16`, `21h30`, `21:16:00.5`, `noon`.
fn parse_time_of_day(cursor: &mut TokenCursor<'_>) -> Option<TimeOfDay> {
    let mut ahead = *cursor;
    let whole = |hour| TimeOfDay { hour, minute: 0, second: 0, has_half: false };
    if ahead.take_word_of(&["noon", "midnight"]) {
        let hour = if cursor.take_word_of(&["noon"]) { 12 } else { 0 };
        *cursor = ahead;
        return Some(whole(hour));
    }
    let mut found = whole(ahead.take_number(1..=2)?);
    let minute = ahead.take_sign_number(':', 2..=2).or_else(|| parse_unusual_minute(&mut ahead));
    if let Some(minute) = minute {
        found.minute = minute;
        found.second = ahead.take_sign_number(':', 2..=2).unwrap_or(0);
        let _ = ahead.take_sign_digits('.');
    }
    match parse_day_half(&mut ahead) {
        Some(is_late) if (1..=12).contains(&found.hour) => {
            found.hour = found.hour % 12 + if is_late { 12 } else { 0 };
            found.has_half = true;
        }
        // No half of a day has such an hour.
        Some(_) => found.hour = i16::MAX,
        None if minute.is_none() => return None,
        None => {}
    }
    *cursor = ahead;
    Some(found)
}

/// Takes the minutes of `9.16pm` or `21h30`.
fn parse_unusual_minute(cursor: &mut TokenCursor<'_>) -> Option<i16> {
    let mut ahead = *cursor;
    let minute = if let Some(minute) = ahead.take_sign_number('.', 2..=2) {
        parse_day_half(&mut ahead.clone()).map(|_| minute)?
    } else {
        let is_joined = !ahead.is_apart() && ahead.take_word_of(&["h"]) && !ahead.is_apart();
        ahead.take_number(2..=2).filter(|_| is_joined)?
    };
    *cursor = ahead;
    Some(minute)
}

/// Takes `am`, `PM`, `p.m.`; returns whether it is the later half of the day.
fn parse_day_half(cursor: &mut TokenCursor<'_>) -> Option<bool> {
    let mut ahead = *cursor;
    let found = if ahead.take_word_of(&["am"]) {
        false
    } else if ahead.take_word_of(&["pm"]) {
        true
    } else {
        let is_late = ahead.take_word_of(&["p"]);
        if !(is_late || ahead.take_word_of(&["a"])) || !ahead.take_sign('.') || !ahead.take_word_of(&["m"]) {
            return None;
        }
        let _ = ahead.take_sign('.');
        is_late
    };
    *cursor = ahead;
    Some(found)
}
