//! Finds the time at which a limit ends in an agent's message for people.
//!
//! There is no list of wordings: times are recognized by their form, and believed if the words before them are about
//! the end of a wait. Whether a text is about a limit at all is not decided here.

mod clock;
mod cursor;
mod point_in_time;
#[cfg(test)]
mod tests;
mod token;
mod wait_length;
mod wait_words;
mod zone;

use jiff::{SignedDuration, Timestamp};

pub use self::clock::Clock;
use self::cursor::TokenCursor;
use self::token::TokenList;

/// Most characters of a text that are read.
const MAX_CHARS: usize = 16 * 1024;
/// A time of day that passed less than this ago is taken as now rather than tomorrow: the text is read a moment after
/// it was written, clocks differ, and a needless session costs less than a day of waiting.
const PASSED_MARGIN: SignedDuration = SignedDuration::from_mins(10);
/// The latest time that is believed.
const FURTHEST: SignedDuration = SignedDuration::from_hours(366 * 24);

/// Returns the time at which a limit ends, never earlier than now.
///
/// The first time after a word about waiting counts, otherwise the first one that cannot be anything but a time.
pub fn find_reset_time(text: &str, clock: &Clock<'_>) -> Option<Timestamp> {
    let text = token::to_plain_text(text, MAX_CHARS);
    let tokens = TokenList::tokenize(&text);
    let mut at = 0;
    let mut bare = None;
    while at < tokens.len() {
        let Some(seen) = find_candidate(TokenCursor::new(&tokens, at), clock) else {
            at += 1;
            continue;
        };
        match seen.time.filter(|time| is_plausible(*time, clock.now)) {
            Some(time) if seen.is_awaited => return Some(time.max(clock.now)),
            Some(time) if seen.is_certain && time > clock.now => bare = bare.or(Some(time)),
            Some(_) | None => {}
        }
        at = seen.end.max(at + 1);
    }
    bare
}

/// Something in the form of a time.
struct TimeCandidate {
    /// The time, if it exists.
    time: Option<Timestamp>,
    /// Whether words about waiting lead to it.
    is_awaited: bool,
    /// Whether it cannot be anything but a time.
    is_certain: bool,
    /// Index of the token after it.
    end: usize,
}

fn find_candidate(cursor: TokenCursor<'_>, clock: &Clock<'_>) -> Option<TimeCandidate> {
    if let Some(span) = wait_length::parse_wait_length(cursor) {
        let time = clock.now.checked_add(span.length).ok();
        return Some(TimeCandidate { time, is_awaited: true, is_certain: false, end: span.end });
    }
    if let Some((time, end)) = parse_epoch(cursor) {
        let is_awaited = cursor.is_preceded_by('|') || wait_words::follows_anchor(cursor);
        return Some(TimeCandidate { time: Some(time), is_awaited, is_certain: false, end });
    }
    let moment = point_in_time::parse_point_in_time(cursor, clock)?;
    Some(TimeCandidate {
        time: moment.resolve(clock),
        is_awaited: wait_words::follows_anchor(cursor) || wait_words::precedes_anchor(cursor, moment.end),
        is_certain: moment.is_certain(),
        end: moment.end,
    })
}

/// Reads seconds or milliseconds since 1970, distinguished by their number of digits.
fn parse_epoch(cursor: TokenCursor<'_>) -> Option<(Timestamp, usize)> {
    let mut cursor = cursor;
    let digits = cursor.take_digits()?;
    let number: i64 = digits.parse().ok()?;
    let time = match digits.len() {
        10 => Timestamp::from_second(number).ok()?,
        13 => Timestamp::from_millisecond(number).ok()?,
        _ => return None,
    };
    Some((time, cursor.at()))
}

fn is_plausible(time: Timestamp, now: Timestamp) -> bool {
    let ahead = now.duration_until(time);
    ahead >= -PASSED_MARGIN && ahead <= FURTHEST
}
