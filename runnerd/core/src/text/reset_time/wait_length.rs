//! Durations to wait: `3 hours 12 minutes`, `6m0s`, `Retry-After: 120`.
//!
//! A duration alone is not enough (`5-hour limit`, `timed out after 30 seconds`): words about waiting must lead to it.

use jiff::SignedDuration;

use super::cursor::TokenCursor;
use super::token::{Token, TokenList};
use super::wait_words;

/// The names of a unit, and its length in milliseconds.
type TimeUnit = (&'static [&'static str], u32);

const UNITS: [TimeUnit; 6] = [
    (&["ms", "msec", "msecs", "millis", "millisecond", "milliseconds"], 1),
    (&["s", "sec", "secs", "second", "seconds"], 1_000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000),
    (&["d", "day", "days"], 86_400_000),
    (&["w", "wk", "week", "weeks"], 604_800_000),
];
/// Numbers written as words; the first two mean one.
const COUNTS: [&str; 13] =
    ["a", "an", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve"];
/// Words that may appear between such words and the duration.
const FILLERS: [&str; 17] = [
    "about",
    "another",
    "approx",
    "approximately",
    "around",
    "be",
    "just",
    "least",
    "less",
    "more",
    "most",
    "next",
    "only",
    "roughly",
    "than",
    "the",
    "up",
];
/// Most parts of one duration.
const MAX_PARTS: usize = 8;

/// A duration, and the index of the token after it.
#[derive(Debug)]
pub(super) struct WaitLength {
    pub(super) length: SignedDuration,
    pub(super) end: usize,
}

/// Reads a duration to wait.
pub(super) fn parse_wait_length(cursor: TokenCursor<'_>) -> Option<WaitLength> {
    let Some(lead) = parse_lead(cursor) else { return parse_before_end(cursor) };
    let (millis, end) = parse_with_units(cursor)
        .or_else(|| parse_clock_length(cursor, lead))
        .or_else(|| parse_bare_number(cursor, lead))?;
    let is_led = lead.is_certain || wait_words::has_anchor_near(cursor.tokens(), end);
    is_led.then_some(WaitLength { length: SignedDuration::from_millis(millis), end })
}

/// Reads `3 hours left until …` and `3 hours from now`.
fn parse_before_end(cursor: TokenCursor<'_>) -> Option<WaitLength> {
    let (millis, end) = parse_with_units(cursor)?;
    let mut behind = TokenCursor::new(cursor.tokens(), end);
    let _ = behind.take_word_of(&["left", "remaining"]);
    let is_end =
        behind.take_word_of(&["until", "till"]) || (behind.take_word_of(&["from"]) && behind.take_word_of(&["now"]));
    is_end.then_some(WaitLength { length: SignedDuration::from_millis(millis), end })
}

/// How the text leads to a duration.
#[derive(Debug, Clone, Copy)]
struct LengthLead {
    /// Whether words about waiting precede it; otherwise they must follow.
    is_certain: bool,
    /// Whether the preceding word states a distance in time, such as `in`.
    is_in: bool,
    /// Milliseconds per unit for a number without one; `None` if that would be a point in time.
    unit: Option<i64>,
}

fn parse_lead(cursor: TokenCursor<'_>) -> Option<LengthLead> {
    let tokens = cursor.tokens();
    let mut at = cursor.at().checked_sub(1)?;
    while is_filler(tokens, at) {
        at = at.checked_sub(1)?;
    }
    let Some(Token::Word(word)) = tokens.get(at) else { return None };
    let word = word.to_ascii_lowercase();
    let unit = match word.as_str() {
        word if word.ends_with("ms") => Some(1),
        word if word.ends_with("at") => None,
        _ => Some(1_000),
    };
    let first = compound_start(tokens, at);
    let is_in = ["after", "for", "in", "within"].contains(&word.as_str());
    if (first..=at).any(|part| wait_words::is_anchor(tokens, part)) {
        return Some(LengthLead { is_certain: true, is_in, unit });
    }
    let is_certain = wait_words::follows_anchor(TokenCursor::new(tokens, first));
    let begins = first == 0 || wait_words::ends_sentence(tokens, first - 1);
    (is_in && (is_certain || (begins && word == "in"))).then_some(LengthLead { is_certain, is_in, unit })
}

fn is_filler(tokens: &TokenList<'_>, at: usize) -> bool {
    match tokens.get(at) {
        // `at 21h30` is not a duration.
        Some(Token::Word("at" | "At" | "AT")) => matches!(tokens.get(at + 1), Some(Token::Word("least" | "most"))),
        Some(Token::Word(word)) => FILLERS.iter().any(|filler| word.eq_ignore_ascii_case(filler)),
        Some(Token::Sign(sign)) => matches!(sign, ':' | '=' | '"' | '\'' | '~' | '\u{2248}' | '('),
        Some(Token::Number(_)) | None => false,
    }
}

/// Returns the index of the first token of a hyphenated word.
fn compound_start(tokens: &TokenList<'_>, last: usize) -> usize {
    let mut first = last;
    while first >= 2
        && tokens.get(first - 1) == Some(Token::Sign('-'))
        && !tokens.is_apart(first)
        && matches!(tokens.get(first - 2), Some(Token::Word(_)))
    {
        first -= 2;
    }
    first
}

/// Reads numbers with units.
fn parse_with_units(mut cursor: TokenCursor<'_>) -> Option<(i64, usize)> {
    let mut millis = None::<i64>;
    let mut end = cursor.at();
    for _ in 0..MAX_PARTS {
        let Some(part) = parse_part(&mut cursor) else { break };
        millis = Some(millis.unwrap_or(0).checked_add(part)?);
        end = cursor.at();
        let _ = cursor.take_sign(',');
        let _ = cursor.take_word_of(&["and"]);
    }
    millis.map(|millis| (millis, end))
}

fn parse_part(cursor: &mut TokenCursor<'_>) -> Option<i64> {
    let mut ahead = *cursor;
    let (whole, thousandths) = parse_count(&mut ahead)?;
    let _ = !ahead.is_apart() && ahead.take_sign('-');
    let word = ahead.take_word()?;
    let (_, unit) = UNITS.iter().find(|(names, _)| names.iter().any(|name| word.eq_ignore_ascii_case(name)))?;
    *cursor = ahead;
    let unit = i64::from(*unit);
    whole.checked_mul(unit)?.checked_add(thousandths * unit / 1_000)
}

/// Reads a number: its whole part and thousandths.
fn parse_count(cursor: &mut TokenCursor<'_>) -> Option<(i64, i64)> {
    let Some(digits) = cursor.take_digits() else {
        let at = COUNTS.iter().position(|count| cursor.take_word_of(&[count]))?;
        let written = [1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12];
        return Some((written[at], 0));
    };
    let fraction = cursor.take_sign_digits('.').unwrap_or_default();
    Some((digits.parse().ok()?, format!("{fraction:0<3}")[..3].parse().ok()?))
}

/// Reads `2:15:00` after a word such as `in`.
fn parse_clock_length(mut cursor: TokenCursor<'_>, lead: LengthLead) -> Option<(i64, usize)> {
    let hours = cursor.take_number(1..=3).filter(|_| lead.is_in)?;
    let minutes = cursor.take_sign_number(':', 2..=2).filter(|minutes| *minutes < 60)?;
    let seconds = cursor.take_sign_number(':', 2..=2).filter(|seconds| *seconds < 60)?;
    let whole = (i64::from(hours) * 60 + i64::from(minutes)) * 60 + i64::from(seconds);
    Some((whole * 1_000, cursor.at()))
}

/// Reads a number without a unit, as in headers and fields.
fn parse_bare_number(mut cursor: TokenCursor<'_>, lead: LengthLead) -> Option<(i64, usize)> {
    let (whole, thousandths) = parse_count(&mut cursor)?;
    let ends = match cursor.peek() {
        None | Some(Token::Sign(',' | '"' | '}' | ')' | ';')) => true,
        Some(Token::Sign('.')) => cursor.tokens().is_apart(cursor.at() + 1),
        Some(Token::Word(_) | Token::Number(_)) => false,
        Some(Token::Sign(_)) => false,
    };
    // Larger numbers are points in time.
    let is_length = (0..1_000_000_000).contains(&whole);
    let unit = lead.unit.filter(|_| ends && is_length && lead.is_certain)?;
    Some((whole * unit + thousandths * unit / 1_000, cursor.at()))
}
