//! A position in the tokens of a text, at which forms are tried; a copy allows going back.

use super::token::{Token, TokenList};

/// A position in the tokens of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenCursor<'t> {
    tokens: &'t TokenList<'t>,
    at: usize,
}

impl<'t> TokenCursor<'t> {
    /// Returns the position before a token.
    pub(super) fn new(tokens: &'t TokenList<'t>, at: usize) -> Self {
        Self { tokens, at }
    }

    /// Returns the index of the next token.
    pub(super) fn at(self) -> usize {
        self.at
    }

    /// Returns all tokens.
    pub(super) fn tokens(self) -> &'t TokenList<'t> {
        self.tokens
    }

    /// Returns the next token.
    pub(super) fn peek(self) -> Option<Token<'t>> {
        self.tokens.get(self.at)
    }

    /// Returns whether the next token is preceded by white space or begins the text.
    pub(super) fn is_apart(self) -> bool {
        self.tokens.is_apart(self.at)
    }

    /// Returns whether a sign immediately precedes the next token.
    pub(super) fn is_preceded_by(self, sign: char) -> bool {
        self.at > 0 && !self.is_apart() && self.tokens.get(self.at - 1) == Some(Token::Sign(sign))
    }

    /// Skips the next token.
    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    /// Takes the next token if it is a word.
    pub(super) fn take_word(&mut self) -> Option<&'t str> {
        let Some(Token::Word(word)) = self.peek() else { return None };
        self.at += 1;
        Some(word)
    }

    /// Takes the next token if it is one of these words, in any case.
    pub(super) fn take_word_of(&mut self, words: &[&str]) -> bool {
        let is = matches!(self.peek(), Some(Token::Word(word)) if words.iter().any(|w| word.eq_ignore_ascii_case(w)));
        self.at += usize::from(is);
        is
    }

    /// Takes the next token if it is a number; returns its digits.
    pub(super) fn take_digits(&mut self) -> Option<&'t str> {
        let Some(Token::Number(digits)) = self.peek() else { return None };
        self.at += 1;
        Some(digits)
    }

    /// Takes the next token if it is a number whose digit count is in a range.
    pub(super) fn take_number(&mut self, lengths: std::ops::RangeInclusive<usize>) -> Option<i16> {
        let Some(Token::Number(digits)) = self.peek() else { return None };
        let number = digits.parse().ok().filter(|_| lengths.contains(&digits.len()))?;
        self.at += 1;
        Some(number)
    }

    /// Takes a sign and the number immediately after it.
    pub(super) fn take_sign_number(&mut self, sign: char, lengths: std::ops::RangeInclusive<usize>) -> Option<i16> {
        let mut ahead = *self;
        let digits = ahead.take_sign_digits(sign).filter(|digits| lengths.contains(&digits.len()))?;
        *self = ahead;
        digits.parse().ok()
    }

    /// Takes the next token if it is this sign.
    pub(super) fn take_sign(&mut self, sign: char) -> bool {
        let is = self.peek() == Some(Token::Sign(sign));
        self.at += usize::from(is);
        is
    }

    /// Returns whether a sign immediately follows the previous token.
    pub(super) fn is_followed_by(self, sign: char) -> bool {
        !self.is_apart() && self.peek() == Some(Token::Sign(sign))
    }

    /// Takes a sign and any number immediately after it.
    pub(super) fn take_sign_digits(&mut self, sign: char) -> Option<&'t str> {
        let mut ahead = *self;
        if ahead.is_apart() || !ahead.take_sign(sign) || ahead.is_apart() {
            return None;
        }
        let digits = ahead.take_digits()?;
        *self = ahead;
        Some(digits)
    }
}
