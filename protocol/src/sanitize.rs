//! Sanitizes text from the daemon, which may come from agents, for a terminal.
//!
//! Everything that a client prints and has not written itself goes through here.

use std::fmt::Write as _;

/// Returns one line: control characters become symbols, and a line break becomes a space.
pub fn sanitize(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || c == '\t' { ' ' } else { visible_char(c) }).collect()
}

/// Returns several lines: like [`sanitize`], but line breaks and tabs are kept.
pub fn sanitize_lines(text: &str) -> String {
    text.replace("\r\n", "\n").chars().map(|c| if c == '\n' || c == '\t' { c } else { visible_char(c) }).collect()
}

/// Replaces the symbols for control characters with ASCII; other text is unchanged.
pub fn ascii_symbols(text: &str) -> String {
    let mark = |c: char| if matches!(c, '\u{2400}'..='\u{2421}' | char::REPLACEMENT_CHARACTER) { '?' } else { c };
    text.chars().map(mark).collect()
}

/// Returns the text of a JSON value with these characters escaped: the value is the same.
pub fn escape_json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        // JSON itself escapes the characters below U+0020.
        if c.is_control() || is_invisible(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

fn visible_char(c: char) -> char {
    match c {
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\u{7f}' => '\u{2421}',
        c if c.is_control() || is_invisible(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// Whether a character is invisible, or changes the order of others and so the apparent meaning of a line.
///
/// Joiners are not included: scripts and emoji need them.
pub fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_sequence_is_shown_and_not_obeyed() {
        assert_eq!(sanitize("a\u{1b}[2Jb\rc\nd"), "a␛[2Jb␍c d");
        assert_eq!(sanitize_lines("a\u{9b}31m\r\nb\t\u{7f}"), "a\u{fffd}31m\nb\t␡");
    }

    #[test]
    fn where_only_ascii_is_shown_a_mark_is_ascii_and_data_is_not_touched() {
        assert_eq!(ascii_symbols(&sanitize("gr\u{f6}\u{df}er\u{1b}[2J\u{9b}")), "gr\u{f6}\u{df}er?[2J?");
    }

    #[test]
    fn text_can_neither_be_turned_round_nor_hidden() {
        assert_eq!(sanitize("a\u{202e}b\u{200b}c\u{e0041}"), "a\u{fffd}b\u{fffd}c\u{fffd}");
    }

    #[test]
    fn json_stays_the_same_value_and_holds_nothing_that_a_terminal_obeys() {
        let value = serde_json::json!("a\u{1b}[2J\u{9b}\u{7f}\u{202e}\u{e0041}ß");
        let text = escape_json(&value.to_string());
        assert_eq!(text, r#""a\u001b[2J\u009b\u007f\u202e\udb40\udc41ß""#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        assert_eq!(sanitize("größer ✔"), "größer ✔");
    }
}
