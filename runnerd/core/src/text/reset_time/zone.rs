//! Zones behind a time: offsets, abbreviations, names.

use jiff::tz::{Offset, TimeZone};

use super::clock::Clock;
use super::cursor::Cursor;
use super::token::Token;

/// Abbreviations, and the minutes that they are east of Greenwich. Where one is used in several parts of the world, it
/// is the one of the services' home.
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
/// Short names of zones whose offset changes over the year.
const REGIONS: [(&[&str], &str); 4] = [
    (&["PT", "Pacific"], "America/Los_Angeles"),
    (&["MT", "Mountain"], "America/Denver"),
    (&["CT", "Central"], "America/Chicago"),
    (&["ET", "Eastern"], "America/New_York"),
];

/// What stands where a zone may stand.
#[derive(Debug)]
pub(super) enum Named {
    /// Nothing.
    Nothing,
    /// A zone.
    Zone(TimeZone),
    /// The name of a zone that nobody knows.
    Unknown,
}

/// Takes a zone, in parentheses or not.
pub(super) fn take(cursor: &mut Cursor<'_>, clock: &Clock<'_>) -> Named {
    let mut ahead = *cursor;
    let is_enclosed = ahead.sign('(') || ahead.sign('[');
    let named = take_open(&mut ahead, clock, is_enclosed);
    if matches!(named, Named::Nothing) {
        return named;
    }
    let _ = ahead.sign(')') || ahead.sign(']');
    *cursor = ahead;
    named
}

fn take_open(cursor: &mut Cursor<'_>, clock: &Clock<'_>, is_enclosed: bool) -> Named {
    if let Some(zone) = offset(cursor) {
        return Named::Zone(zone);
    }
    let mut ahead = *cursor;
    let Some(word) = ahead.word() else { return Named::Nothing };
    let found = match path(&mut ahead) {
        Some(end) => {
            let name = ahead.tokens().text(cursor.at(), end);
            (clock.zone)(name).map_or(Named::Unknown, Named::Zone)
        }
        None => short(word, clock, is_enclosed),
    };
    if !matches!(found, Named::Nothing) {
        *cursor = ahead;
        let _ = cursor.word_of(&["time"]);
    }
    found
}

/// Takes the rest of a name such as `America/New_York` or `Etc/GMT+2`; returns where it ends.
fn path(cursor: &mut Cursor<'_>) -> Option<usize> {
    let mut end = None;
    while !cursor.is_apart() {
        let mut ahead = *cursor;
        let is_deeper = ahead.sign('/');
        let is_longer = end.is_some() && (ahead.sign('-') || ahead.sign('+'));
        let has_name = !ahead.is_apart() && (ahead.word().is_some() || (is_longer && ahead.digits().is_some()));
        if !(is_deeper || is_longer) || !has_name {
            break;
        }
        *cursor = ahead;
        end = Some(ahead.at());
    }
    end
}

fn short(word: &str, clock: &Clock<'_>, is_enclosed: bool) -> Named {
    let is = |name: &&str| word.eq_ignore_ascii_case(name);
    // In lower case, some are words of the language.
    let is_upper = word.chars().all(|c| c.is_ascii_uppercase());
    let is_word = |name: &&str| *name == "WEST" && !is_upper && !is_enclosed;
    if let Some((_, minutes)) = ABBREVIATIONS.iter().find(|(name, _)| is(name) && !is_word(name)) {
        return fixed(minutes * 60).map_or(Named::Nothing, Named::Zone);
    }
    let is_region = |names: &[&str]| names.iter().any(|name| is(name) && (name.len() > 2 || is_upper));
    if let Some((_, name)) = REGIONS.iter().find(|(names, _)| is_region(names)) {
        return (clock.zone)(name).map_or(Named::Unknown, Named::Zone);
    }
    match (clock.zone)(word) {
        Some(zone) if is_enclosed => Named::Zone(zone),
        _ => Named::Nothing,
    }
}

/// Takes `Z`, `UTC`, `GMT+2`, `UTC-05:00`, `+0200`.
fn offset(cursor: &mut Cursor<'_>) -> Option<TimeZone> {
    let mut ahead = *cursor;
    let is_named = ahead.word_of(&["utc", "gmt"]) || (!ahead.is_apart() && ahead.word_of(&["z"]));
    let seconds = match (signed(&mut ahead, is_named), is_named) {
        (Some(seconds), _) => seconds,
        (None, true) => 0,
        (None, false) => return None,
    };
    let zone = fixed(seconds)?;
    *cursor = ahead;
    Some(zone)
}

/// Takes a sign with hours and minutes behind it; returns seconds.
fn signed(cursor: &mut Cursor<'_>, is_named: bool) -> Option<i32> {
    let mut ahead = *cursor;
    let sign = match ahead.peek() {
        Some(Token::Sign('+')) => 1,
        Some(Token::Sign('-')) => -1,
        Some(Token::Word(_) | Token::Number(_) | Token::Sign(_)) | None => return None,
    };
    // `9pm -10 minutes` and `9pm-10pm` are no offsets.
    if is_named && ahead.is_apart() {
        return None;
    }
    ahead.skip();
    if ahead.is_apart() {
        return None;
    }
    let digits = ahead.digits()?;
    let (hours, minutes) = match digits.len() {
        4 => (digits[..2].parse::<i32>().ok()?, digits[2..].parse::<i32>().ok()?),
        1 if is_named => (digits.parse().ok()?, colon_minutes(&mut ahead).unwrap_or(0)),
        2 if is_named => (digits.parse().ok()?, colon_minutes(&mut ahead).unwrap_or(0)),
        2 => (digits.parse().ok()?, colon_minutes(&mut ahead)?),
        _ => return None,
    };
    *cursor = ahead;
    Some(sign * (hours * 3_600 + minutes * 60))
}

fn colon_minutes(cursor: &mut Cursor<'_>) -> Option<i32> {
    cursor.sign_number(':', 2..=2).filter(|minutes| *minutes < 60).map(i32::from)
}

fn fixed(seconds: i32) -> Option<TimeZone> {
    Offset::from_seconds(seconds).ok().map(TimeZone::fixed)
}
