//! Makes text of the daemon's, and so of agents, harmless for a terminal.
//!
//! Everything that is printed and was not written in this program goes through here.

/// Returns one line: control characters are shown as symbols, a line break becomes a space.
pub(crate) fn safe(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || c == '\t' { ' ' } else { shown(c) }).collect()
}

/// Returns several lines: as [`safe`], but line breaks and tabs stay.
pub(crate) fn safe_lines(text: &str) -> String {
    text.replace("\r\n", "\n").chars().map(|c| if c == '\n' || c == '\t' { c } else { shown(c) }).collect()
}

fn shown(c: char) -> char {
    match c {
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\u{7f}' => '\u{2421}',
        c if c.is_control() || reorders(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// Whether a character changes the order in which others are shown, and so what a line seems to say.
fn reorders(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_sequence_is_shown_and_not_obeyed() {
        assert_eq!(safe("a\u{1b}[2Jb\rc\nd"), "a␛[2Jb␍c d");
        assert_eq!(safe_lines("a\u{9b}31m\r\nb\t\u{7f}"), "a\u{fffd}31m\nb\t␡");
    }

    #[test]
    fn text_cannot_be_turned_round() {
        assert_eq!(safe("a\u{202e}b"), "a\u{fffd}b");
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        assert_eq!(safe("größer ✔"), "größer ✔");
    }
}
