//! Time zones after a time: offsets, abbreviations, names.

use jiff::tz::{Offset, TimeZone};

use super::clock::Clock;
use super::cursor::TokenCursor;
use super::token::Token;

/// Abbreviations, with their offsets from UTC in minutes. One used in several parts of the world has the meaning of the
/// services' home country.
const ABBREVIATIONS: [(&str, i32); 29] = [
    ("ACST", 570),
    ("AEDT", 660),
    ("AEST", 600),
    ("AKDT", -480),
    ("AKST", -540),
    ("AST", -240),
    ("AWST", 480),
    ("BRT", -180),
    ("BST", 60),
    ("CDT", -300),
    ("CEST", 120),
    ("CET", 60),
    ("CST", -360),
    ("EDT", -240),
    ("EEST", 180),
    ("EET", 120),
    ("EST", -300),
    ("HST", -600),
    ("IST", 330),
    ("JST", 540),
    ("KST", 540),
    ("MDT", -360),
    ("MSK", 180),
    ("MST", -420),
    ("NZDT", 780),
    ("NZST", 720),
    ("PDT", -420),
    ("PST", -480),
    ("WEST", 60),
];
/// Short names of zones whose offset changes during the year.
const REGIONS: [(&[&str], &str); 4] = [
    (&["PT", "Pacific"], "America/Los_Angeles"),
    (&["MT", "Mountain"], "America/Denver"),
    (&["CT", "Central"], "America/Chicago"),
    (&["ET", "Eastern"], "America/New_York"),
];

/// What was found in the place of a zone.
#[derive(Debug)]
pub(super) enum ZoneMatch {
    /// No zone.
    Nothing,
    /// A zone.
    Zone(TimeZone),
    /// A name of a zone that does not exist.
    Unknown,
}

/// Reads a zone, in parentheses or not.
pub(super) fn take_zone(cursor: &mut TokenCursor<'_>, clock: &Clock<'_>) -> ZoneMatch {
    let mut ahead = *cursor;
    let is_enclosed = ahead.take_sign('(') || ahead.take_sign('[');
    let named = take_zone_name(&mut ahead, clock, is_enclosed);
    if matches!(named, ZoneMatch::Nothing) {
        return named;
    }
    let _ = ahead.take_sign(')') || ahead.take_sign(']');
    *cursor = ahead;
    named
}

fn take_zone_name(cursor: &mut TokenCursor<'_>, clock: &Clock<'_>, is_enclosed: bool) -> ZoneMatch {
    if let Some(zone) = take_offset(cursor) {
        return ZoneMatch::Zone(zone);
    }
    let mut ahead = *cursor;
    let Some(word) = ahead.take_word() else { return ZoneMatch::Nothing };
    let found = match take_zone_path(&mut ahead) {
        Some(end) => {
            let name = ahead.tokens().text(cursor.at(), end);
            (clock.zone)(name).map_or(ZoneMatch::Unknown, ZoneMatch::Zone)
        }
        None => resolve_abbreviation(word, clock, is_enclosed),
    };
    if !matches!(found, ZoneMatch::Nothing) {
        *cursor = ahead;
        let _ = cursor.take_word_of(&["time"]);
    }
    found
}

/// Reads the rest of a name such as `America/New_York` or `Etc/GMT+2`; returns its end.
fn take_zone_path(cursor: &mut TokenCursor<'_>) -> Option<usize> {
    let mut end = None;
    while !cursor.is_apart() {
        let mut ahead = *cursor;
        let is_deeper = ahead.take_sign('/');
        let is_longer = end.is_some() && (ahead.take_sign('-') || ahead.take_sign('+'));
        let has_name =
            !ahead.is_apart() && (ahead.take_word().is_some() || (is_longer && ahead.take_digits().is_some()));
        if !(is_deeper || is_longer) || !has_name {
            break;
        }
        *cursor = ahead;
        end = Some(ahead.at());
    }
    end
}

fn resolve_abbreviation(word: &str, clock: &Clock<'_>, is_enclosed: bool) -> ZoneMatch {
    let is = |name: &&str| word.eq_ignore_ascii_case(name);
    // In lower case, some of them are ordinary words.
    let is_upper = word.chars().all(|c| c.is_ascii_uppercase());
    let is_word = |name: &&str| *name == "WEST" && !is_upper && !is_enclosed;
    if let Some((_, minutes)) = ABBREVIATIONS.iter().find(|(name, _)| is(name) && !is_word(name)) {
        return fixed_zone(minutes * 60).map_or(ZoneMatch::Nothing, ZoneMatch::Zone);
    }
    let is_region = |names: &[&str]| names.iter().any(|name| is(name) && (name.len() > 2 || is_upper));
    if let Some((_, name)) = REGIONS.iter().find(|(names, _)| is_region(names)) {
        return (clock.zone)(name).map_or(ZoneMatch::Unknown, ZoneMatch::Zone);
    }
    match (clock.zone)(word) {
        Some(zone) if is_enclosed => ZoneMatch::Zone(zone),
        _ => ZoneMatch::Nothing,
    }
}

/// Takes `Z`, `UTC`, `GMT+2`, `UTC-05:00`, `+0200`.
fn take_offset(cursor: &mut TokenCursor<'_>) -> Option<TimeZone> {
    let mut ahead = *cursor;
    let is_named = ahead.take_word_of(&["utc", "gmt"]) || (!ahead.is_apart() && ahead.take_word_of(&["z"]));
    let seconds = match (take_signed_offset(&mut ahead, is_named), is_named) {
        (Some(seconds), _) => seconds,
        (None, true) => 0,
        (None, false) => return None,
    };
    let zone = fixed_zone(seconds)?;
    *cursor = ahead;
    Some(zone)
}

/// Reads a sign followed by hours and minutes; returns seconds.
fn take_signed_offset(cursor: &mut TokenCursor<'_>, is_named: bool) -> Option<i32> {
    let mut ahead = *cursor;
    let sign = match ahead.peek() {
        Some(Token::Sign('+')) => 1,
        Some(Token::Sign('-')) => -1,
        Some(Token::Word(_) | Token::Number(_) | Token::Sign(_)) | None => return None,
    };
    // `9pm -10 minutes` and `9pm-10pm` contain no offsets.
    if is_named && ahead.is_apart() {
        return None;
    }
    ahead.skip();
    if ahead.is_apart() {
        return None;
    }
    let digits = ahead.take_digits()?;
    let (hours, minutes) = match digits.len() {
        4 => (digits[..2].parse::<i32>().ok()?, digits[2..].parse::<i32>().ok()?),
        1 if is_named => (digits.parse().ok()?, take_colon_minutes(&mut ahead).unwrap_or(0)),
        2 if is_named => (digits.parse().ok()?, take_colon_minutes(&mut ahead).unwrap_or(0)),
        2 => (digits.parse().ok()?, take_colon_minutes(&mut ahead)?),
        _ => return None,
    };
    *cursor = ahead;
    Some(sign * (hours * 3_600 + minutes * 60))
}

fn take_colon_minutes(cursor: &mut TokenCursor<'_>) -> Option<i32> {
    cursor.take_sign_number(':', 2..=2).filter(|minutes| *minutes < 60).map(i32::from)
}

fn fixed_zone(seconds: i32) -> Option<TimeZone> {
    Offset::from_seconds(seconds).ok().map(TimeZone::fixed)
}
