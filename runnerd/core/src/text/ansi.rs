//! Removes terminal escape sequences from text.
//!
//! Not a terminal: cursor movements are dropped, not applied. A sequence never extends past the end of its line, so
//! that an unterminated string sequence cannot hide what follows. Tabs and carriage returns are kept.

use std::borrow::Cow;

const ESCAPE: char = '\u{1b}';
const BELL: u8 = 0x07;

/// Returns the text without escape sequences; the result contains no escape character.
pub(crate) fn strip(text: &str) -> Cow<'_, str> {
    if !text.contains(begins_sequence) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(begins_sequence) {
        plain.push_str(&rest[..at]);
        rest = &rest[at + sequence_len(&rest[at..])..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Whether a sequence begins at the character: escape, or one of the 8-bit introducers.
fn begins_sequence(c: char) -> bool {
    matches!(c, ESCAPE | '\u{90}' | '\u{98}' | '\u{9b}' | '\u{9d}'..='\u{9f}')
}

/// Length of the sequence at the beginning of the text, in bytes.
fn sequence_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    match (text.starts_with(ESCAPE), bytes.get(1)) {
        (true, Some(b'[')) => 2 + control_len(&bytes[2..]),
        (true, Some(b']' | b'P' | b'X' | b'^' | b'_')) => 2 + string_len(&bytes[2..]),
        (true, Some(0x20..=0x2f)) => 1 + selection_len(&bytes[1..]),
        (true, Some(0x30..=0x7e)) => 2,
        (true, _) => 1,
        (false, _) if text.starts_with('\u{9b}') => 2 + control_len(&bytes[2..]),
        (false, _) => 2 + string_len(&bytes[2..]),
    }
}

/// Length of the parameters, intermediates and final byte of a control sequence.
fn control_len(bytes: &[u8]) -> usize {
    let parameters = bytes.iter().take_while(|byte| matches!(byte, 0x20..=0x3f)).count();
    parameters + usize::from(matches!(bytes.get(parameters), Some(0x40..=0x7e)))
}

/// Length of the intermediates and final byte of a sequence such as a character set selection.
fn selection_len(bytes: &[u8]) -> usize {
    let intermediates = bytes.iter().take_while(|byte| matches!(byte, 0x20..=0x2f)).count();
    intermediates + usize::from(matches!(bytes.get(intermediates), Some(0x30..=0x7e)))
}

/// Length of a string sequence including its terminator, or up to the end of the line or the next escape.
fn string_len(bytes: &[u8]) -> usize {
    let ends = |at: &usize| matches!(&bytes[*at..], [BELL | b'\n' | 0x1b, ..] | [0xc2, 0x9c, ..]);
    let end = (0..bytes.len()).find(ends).unwrap_or(bytes.len());
    match &bytes[end..] {
        [BELL, ..] => end + 1,
        [0x1b, b'\\', ..] | [0xc2, 0x9c, ..] => end + 2,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sequences_go_and_text_stays() {
        let table = [
            ("\u{1b}[1;31merror\u{1b}[0m: x", "error: x"),
            ("a\u{1b}]0;title\u{7}b", "ab"),
            ("a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\b", "alinkb"),
            ("a\u{1b}(Bb", "ab"),
            ("a\u{1b}7b\u{1b}cd", "abd"),
            ("\u{9b}31mred", "red"),
            ("\u{9d}0;t\u{9c}b", "b"),
            ("a\tb\r\n", "a\tb\r\n"),
            ("\u{1b}", ""),
            ("\u{1b}\u{1b}[0m[31mx", "[31mx"),
            ("\u{1b}[31", ""),
            ("\u{1b}[31é", "é"),
        ];
        for (given, expected) in table {
            assert_eq!(strip(given), expected, "{given:?}");
        }
    }

    #[test]
    fn an_unclosed_string_sequence_ends_with_its_line() {
        assert_eq!(strip("\u{1b}]0;hidden\nerror: seen"), "\nerror: seen");
    }

    proptest! {
        #[test]
        fn no_escape_character_is_left(text in "(\u{1b}|\\[|\\]|[0-9;]|m|\u{9b}|\u{9d}|\u{9c}|\u{7}|\\n|é|[a-z]|¢){0,40}") {
            prop_assert!(!strip(&text).contains(begins_sequence));
        }

        #[test]
        fn colours_are_removed_as_the_field_does_it(text in "(\u{1b}\\[[0-9;]{0,5}[A-Za-z]|[a-z ]|\\n){0,40}") {
            prop_assert_eq!(strip(&text).into_owned(), strip_ansi_escapes::strip_str(&text));
        }
    }
}
