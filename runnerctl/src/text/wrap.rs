//! Wraps long text to the terminal's width, at its spaces.

use unicode_width::UnicodeWidthStr as _;

/// Wraps a text at its spaces into lines of at most `width` columns, with a margin before all but the first.
///
/// A word stays whole even if it is longer than a line, so that a path can still be copied.
pub(crate) fn wrap_text(text: &str, width: usize, margin: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("BUG: no line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.width() + 1 + word.width() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join(&format!("\n{}", " ".repeat(margin)))
}

/// Wraps a text into lines of less than `width` columns, indented by `indent` spaces, and by two more after the first
/// line.
pub(crate) fn wrap_indented(indent: usize, width: usize, text: &str) -> String {
    let margin = indent + 2;
    format!("{}{}\n", " ".repeat(indent), wrap_text(text, width.saturating_sub(margin + 1), margin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_broken_at_its_spaces_and_nowhere_else() {
        assert_eq!(wrap_text("one two three", 7, 2), "one two\n  three");
        assert_eq!(wrap_text("a /long/path/that/is/copied b", 6, 1), "a\n /long/path/that/is/copied\n b");
        assert_eq!(wrap_text("two  spaces", 40, 0), "two  spaces", "what fits is as it was");
    }
}
