//! Words that lead to the time at which a wait ends.

use super::cursor::TokenCursor;
use super::token::{Token, TokenList};

/// Most tokens between such a word and its time.
const REACH: usize = 12;
/// Stems of words about the end of a wait.
const STEMS: [&str; 9] = ["avail", "lift", "refresh", "renew", "replenish", "reset", "restor", "resum", "retry"];
const WORDS: [&str; 7] = ["again", "back", "ends", "expires", "till", "until", "wait"];
/// Words after `retry` that turn it into a number of tries.
const COUNTED: [&str; 7] = ["attempt", "attempts", "budget", "count", "limit", "limits", "policy"];

/// Returns whether words about waiting precede the next token in the same sentence.
pub(super) fn follows_anchor(cursor: TokenCursor<'_>) -> bool {
    let tokens = cursor.tokens();
    let at = cursor.at();
    let nearest = (at.saturating_sub(REACH)..at).rev().take_while(|near| !ends_sentence(tokens, *near));
    nearest.into_iter().any(|near| is_anchor(tokens, near))
}

/// Returns whether words about waiting follow a time, which ends at `end`, in the same sentence.
pub(super) fn precedes_anchor(cursor: TokenCursor<'_>, end: usize) -> bool {
    let tokens = cursor.tokens();
    let at = cursor.at();
    let is_place = |word: &str| ["at", "by", "from", "on"].iter().any(|place| word.eq_ignore_ascii_case(place));
    let begins = at.checked_sub(1).and_then(|before| tokens.get(before));
    matches!(begins, Some(Token::Word(word)) if is_place(word)) && has_anchor_near(tokens, end)
}

/// Returns whether words about waiting occur soon after a position, in the same sentence.
pub(super) fn has_anchor_near(tokens: &TokenList<'_>, from: usize) -> bool {
    (from..from + REACH).take_while(|near| !ends_sentence(tokens, *near)).any(|near| is_anchor(tokens, near))
}

/// Returns whether a token is a word about waiting.
pub(super) fn is_anchor(tokens: &TokenList<'_>, at: usize) -> bool {
    let Some(Token::Word(word)) = tokens.get(at) else { return false };
    let word = word.to_ascii_lowercase();
    let next = match tokens.get(at + 1) {
        Some(Token::Word(next)) => next.to_ascii_lowercase(),
        Some(Token::Number(_) | Token::Sign(_)) | None => String::new(),
    };
    let is_count = word.starts_with("retry") && COUNTED.contains(&next.as_str());
    let is_inside = word.contains("reset") && !word.starts_with("econn");
    !is_count && (is_inside || WORDS.contains(&word.as_str()) || STEMS.iter().any(|stem| word.starts_with(stem)))
}

/// Returns whether a token ends a sentence: a full stop followed by something, except in an abbreviation.
pub(super) fn ends_sentence(tokens: &TokenList<'_>, at: usize) -> bool {
    let is_stop = matches!(tokens.get(at), Some(Token::Sign('.' | '!' | '?' | ';')));
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    is_stop && tokens.is_apart(at + 1) && !matches!(before, Some(Token::Word(word)) if word.len() == 1)
}
