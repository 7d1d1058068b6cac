//! Splits text into words, numbers and signs.
//!
//! Only ASCII letters form words: names of months, units and zones have no others.

use crate::text::ansi;

/// A piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// Letters and underscores.
    Word(&'t str),
    /// Digits.
    Number(&'t str),
    /// Anything else that is not white space.
    Sign(char),
}

/// A token and its position.
#[derive(Debug, Clone, Copy)]
struct PlacedToken<'t> {
    token: Token<'t>,
    start: usize,
    end: usize,
}

/// The tokens of a text.
#[derive(Debug)]
pub(super) struct TokenList<'t> {
    text: &'t str,
    placed: Vec<PlacedToken<'t>>,
}

/// Returns the first `limit` characters of the text without escape sequences, with plain minus signs and quotes.
pub(super) fn to_plain_text(text: &str, limit: usize) -> String {
    let end = text.char_indices().nth(limit).map_or(text.len(), |(at, _)| at);
    let straight = |c: char| match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201c}' | '\u{201d}' => '"',
        other => other,
    };
    ansi::strip(&text[..end]).chars().map(straight).collect()
}

impl<'t> TokenList<'t> {
    /// Splits a text into tokens.
    pub(super) fn tokenize(text: &'t str) -> Self {
        let mut placed = Vec::new();
        let mut at = 0;
        while let Some(first) = text[at..].chars().next() {
            let run = |is: fn(char) -> bool| text[at..].find(|c| !is(c)).map_or(text.len(), |length| at + length);
            let end = match first {
                c if is_letter(c) => run(is_letter),
                c if c.is_ascii_digit() => run(|c| c.is_ascii_digit()),
                c => at + c.len_utf8(),
            };
            let token = match first {
                c if is_letter(c) => Some(Token::Word(&text[at..end])),
                c if c.is_ascii_digit() => Some(Token::Number(&text[at..end])),
                c if c.is_whitespace() => None,
                c => Some(Token::Sign(c)),
            };
            placed.extend(token.map(|token| PlacedToken { token, start: at, end }));
            at = end;
        }
        Self { text, placed }
    }

    /// Returns the number of tokens.
    pub(super) fn len(&self) -> usize {
        self.placed.len()
    }

    /// Returns the token at an index, if there is one.
    pub(super) fn get(&self, at: usize) -> Option<Token<'t>> {
        self.placed.get(at).map(|placed| placed.token)
    }

    /// Returns whether there is something between a token and the previous one.
    pub(super) fn is_apart(&self, at: usize) -> bool {
        match (at.checked_sub(1).and_then(|before| self.placed.get(before)), self.placed.get(at)) {
            (Some(before), Some(here)) => before.end < here.start,
            _ => true,
        }
    }

    /// Returns the text from one token up to another.
    pub(super) fn text(&self, from: usize, to: usize) -> &'t str {
        match (self.placed.get(from), to.checked_sub(1).and_then(|last| self.placed.get(last))) {
            (Some(first), Some(last)) if first.start < last.end => &self.text[first.start..last.end],
            _ => "",
        }
    }
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}
