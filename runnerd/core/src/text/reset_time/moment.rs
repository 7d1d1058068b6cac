//! Points in time as people and services write them: a day, a time of day, a zone, in one of the usual orders.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

use super::PASSED_MARGIN;
use super::clock::Clock;
use super::cursor::Cursor;
use super::zone::{self, Named};

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

/// A day, as it was written; it may be none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Day {
    /// The next one on which the time is still to come.
    Next,
    /// So many days from today.
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

/// A time of day, as it was written; it may be none.
#[derive(Debug, Clone, Copy)]
struct Hour {
    of_day: i16,
    minute: i16,
    second: i16,
    /// Whether it says which half of the day it means.
    has_half: bool,
}

/// A point in time, as it was written; it may be none.
#[derive(Debug)]
pub(super) struct Moment {
    day: Day,
    hour: Option<Hour>,
    zone: Option<TimeZone>,
    is_unknown_zone: bool,
    /// The token behind it.
    pub(super) end: usize,
}

/// Reads a point in time.
pub(super) fn read(cursor: Cursor<'_>, clock: &Clock<'_>) -> Option<Moment> {
    let mut moment = Moment { day: Day::Next, hour: None, zone: None, is_unknown_zone: false, end: cursor.at() };
    let mut at = cursor;
    if let Some(day) = day(&mut at) {
        moment.day = day;
        let mut ahead = at;
        joint(&mut ahead);
        moment.hour = hour(&mut ahead);
        at = if moment.hour.is_some() { ahead } else { at };
        moment.take_zone(&mut at, clock);
    } else {
        moment.hour = Some(hour(&mut at)?);
        moment.take_zone(&mut at, clock);
        let mut ahead = at;
        joint(&mut ahead);
        if let Some(day) = day(&mut ahead) {
            moment.day = day;
            at = ahead;
            moment.take_zone(&mut at, clock);
        }
    }
    moment.end = at.at();
    Some(moment)
}

impl Moment {
    fn take_zone(&mut self, cursor: &mut Cursor<'_>, clock: &Clock<'_>) {
        if self.zone.is_some() || self.hour.is_none() {
            return;
        }
        match zone::take(cursor, clock) {
            Named::Zone(zone) => self.zone = Some(zone),
            Named::Unknown => self.is_unknown_zone = true,
            Named::Nothing => {}
        }
    }

    /// Returns whether it can be nothing but a point in time.
    pub(super) fn is_certain(&self) -> bool {
        self.hour.is_some_and(|hour| hour.has_half || self.day != Day::Next)
    }

    /// Returns the time that it means, where it means one.
    ///
    /// Where a clock is put forward over it, it is as much later; where one is put back, it is the first of the two.
    pub(super) fn resolve(&self, clock: &Clock<'_>) -> Option<Timestamp> {
        if self.is_unknown_zone {
            return None;
        }
        let zone = self.zone.as_ref().unwrap_or(&clock.local);
        let time = self.hour.map_or(Some(Time::midnight()), Hour::time)?;
        let today = clock.in_zone(zone).date();
        let on = |date: Date| date.to_datetime(time).to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp());
        let is_ahead = |time: &Timestamp| clock.now.duration_until(*time) >= -PASSED_MARGIN;
        let near = |from: i32, to: i32| (from..=to).filter_map(move |days| ahead(today, days));
        match self.day {
            Day::Next => near(-1, 2).filter_map(on).find(is_ahead),
            Day::Ahead(days) => ahead(today, days).and_then(on),
            Day::Weekday(weekday) => near(-1, 8).filter(|date| date.weekday() == weekday).filter_map(on).find(is_ahead),
            Day::Dated { year, month, day } => date(year, month, day).and_then(on),
            Day::Yearly { month, day } => {
                let years = (today.year() - 1)..=(today.year() + 1);
                let times = years.filter_map(|year| date(year, month, day)).filter_map(on);
                times.min_by_key(|time| distance(clock.now, *time))
            }
        }
    }
}

/// Which year is meant follows from which is nearest: limits last days, and one that ended days ago is no news.
fn distance(now: Timestamp, time: Timestamp) -> SignedDuration {
    now.duration_until(time).abs()
}

fn ahead(today: Date, days: i32) -> Option<Date> {
    today.checked_add(Span::new().try_days(days).ok()?).ok()
}

fn date(year: i16, month: i16, day: i16) -> Option<Date> {
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

impl Hour {
    fn time(self) -> Option<Time> {
        let part = |number: i16| i8::try_from(number).ok();
        Time::new(part(self.of_day)?, part(self.minute)?, part(self.second)?, 0).ok()
    }
}

/// Goes beyond what stands between a day and a time of it.
fn joint(cursor: &mut Cursor<'_>) {
    let _ = cursor.sign(',') || cursor.sign('\u{b7}') || cursor.sign('-') || cursor.sign('(');
    let _ = cursor.word_of(&["at", "on", "by", "t", "from"]);
    let _ = cursor.word_of(&["the"]);
}

fn day(cursor: &mut Cursor<'_>) -> Option<Day> {
    let mut ahead = *cursor;
    let _ = ahead.word_of(&["next", "this"]);
    let weekday = weekday(&mut ahead);
    if weekday.is_some() {
        let _ = ahead.sign('.');
        let _ = ahead.sign(',');
    }
    let mut after = ahead;
    let found = calendar(&mut after).or(named(&mut after));
    let (day, end) = match (found, weekday) {
        (Some(day), _) => (day, after),
        (None, Some(weekday)) => (Day::Weekday(weekday), ahead),
        (None, None) => return None,
    };
    *cursor = end;
    Some(day)
}

fn named(cursor: &mut Cursor<'_>) -> Option<Day> {
    let is_tomorrow = cursor.word_of(&["tomorrow"]);
    (is_tomorrow || cursor.word_of(&["today", "tonight"])).then_some(Day::Ahead(i32::from(is_tomorrow)))
}

fn weekday(cursor: &mut Cursor<'_>) -> Option<Weekday> {
    let mut ahead = *cursor;
    let word = ahead.word()?.to_ascii_lowercase();
    let (_, day) = DAYS.iter().find(|(name, _)| word.len() >= 3 && name.starts_with(&word))?;
    *cursor = ahead;
    Some(*day)
}

fn calendar(cursor: &mut Cursor<'_>) -> Option<Day> {
    let forms = [iso, with_signs, month_first, day_first];
    forms.iter().find_map(|form| {
        let mut ahead = *cursor;
        let day = form(&mut ahead)?;
        *cursor = ahead;
        Some(day)
    })
}

/// `2026-11-22`, `2026/11/22`
fn iso(cursor: &mut Cursor<'_>) -> Option<Day> {
    let year = cursor.number(4..=4)?;
    let sign = if cursor.follows_next('-') { '-' } else { '/' };
    let month = cursor.sign_number(sign, 1..=2)?;
    let day = cursor.sign_number(sign, 1..=2)?;
    Some(Day::Dated { year, month, day })
}

/// `11/22/2026`, or `22/11/2026` where it can be no month; `22.11.2026`
fn with_signs(cursor: &mut Cursor<'_>) -> Option<Day> {
    let first = cursor.number(1..=2)?;
    let sign = if cursor.follows_next('.') { '.' } else { '/' };
    let second = cursor.sign_number(sign, 1..=2)?;
    let year = cursor.sign_number(sign, 4..=4)?;
    let (month, day) = if sign == '.' || first > 12 { (second, first) } else { (first, second) };
    Some(Day::Dated { year, month, day })
}

/// `Nov 24th, 2026`
fn month_first(cursor: &mut Cursor<'_>) -> Option<Day> {
    let month = month(cursor)?;
    let day = ordinal(cursor)?;
    Some(with_year(cursor, month, day))
}

/// `24th of November 2026`
fn day_first(cursor: &mut Cursor<'_>) -> Option<Day> {
    let day = ordinal(cursor)?;
    let _ = cursor.word_of(&["of"]) || cursor.sign('-');
    let month = month(cursor)?;
    Some(with_year(cursor, month, day))
}

fn month(cursor: &mut Cursor<'_>) -> Option<i16> {
    let word = cursor.word()?.to_ascii_lowercase();
    let at = MONTHS.iter().position(|name| word.len() >= 3 && (name.starts_with(&word) || word == "sept"))?;
    let _ = cursor.sign('.');
    i16::try_from(if word == "sept" { 9 } else { at + 1 }).ok()
}

fn ordinal(cursor: &mut Cursor<'_>) -> Option<i16> {
    let day = cursor.number(1..=2)?;
    let _ = !cursor.is_apart() && cursor.word_of(&["st", "nd", "rd", "th"]);
    Some(day)
}

fn with_year(cursor: &mut Cursor<'_>, month: i16, day: i16) -> Day {
    let mut ahead = *cursor;
    let _ = ahead.sign(',') || ahead.sign('-');
    match ahead.number(4..=4) {
        Some(year) => {
            *cursor = ahead;
            Day::Dated { year, month, day }
        }
        None => Day::Yearly { month, day },
    }
}

/// Takes `9pm`, `9:16 PM`, `9.16pm`, `21:16`, `21h30`, `21:16:00.5`, `noon`.
fn hour(cursor: &mut Cursor<'_>) -> Option<Hour> {
    let mut ahead = *cursor;
    let whole = |hour| Hour { of_day: hour, minute: 0, second: 0, has_half: false };
    if ahead.word_of(&["noon", "midnight"]) {
        let hour = if cursor.word_of(&["noon"]) { 12 } else { 0 };
        *cursor = ahead;
        return Some(whole(hour));
    }
    let mut found = whole(ahead.number(1..=2)?);
    let minute = ahead.sign_number(':', 2..=2).or_else(|| unusual_minute(&mut ahead));
    if let Some(minute) = minute {
        found.minute = minute;
        found.second = ahead.sign_number(':', 2..=2).unwrap_or(0);
        let _ = ahead.sign_digits('.');
    }
    match half(&mut ahead) {
        Some(is_late) if (1..=12).contains(&found.of_day) => {
            found.of_day = found.of_day % 12 + if is_late { 12 } else { 0 };
            found.has_half = true;
        }
        // No time has such an hour in a half of the day.
        Some(_) => found.of_day = i16::MAX,
        None if minute.is_none() => return None,
        None => {}
    }
    *cursor = ahead;
    Some(found)
}

/// Takes the minutes of `9.16pm` or `21h30`.
fn unusual_minute(cursor: &mut Cursor<'_>) -> Option<i16> {
    let mut ahead = *cursor;
    let minute = if let Some(minute) = ahead.sign_number('.', 2..=2) {
        half(&mut ahead.clone()).map(|_| minute)?
    } else {
        let is_joined = !ahead.is_apart() && ahead.word_of(&["h"]) && !ahead.is_apart();
        ahead.number(2..=2).filter(|_| is_joined)?
    };
    *cursor = ahead;
    Some(minute)
}

/// Takes `am`, `PM`, `p.m.`; returns whether it is the later half of the day.
fn half(cursor: &mut Cursor<'_>) -> Option<bool> {
    let mut ahead = *cursor;
    let found = if ahead.word_of(&["am"]) {
        false
    } else if ahead.word_of(&["pm"]) {
        true
    } else {
        let is_late = ahead.word_of(&["p"]);
        if !(is_late || ahead.word_of(&["a"])) || !ahead.sign('.') || !ahead.word_of(&["m"]) {
            return None;
        }
        let _ = ahead.sign('.');
        is_late
    };
    *cursor = ahead;
    Some(found)
}
