//! Breaks a sentence into lines at its spaces.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

/// Returns a text in lines of less than `width` columns behind `indent` spaces, those after the first behind two more; what
/// has no space is longer than a line.
pub(crate) fn flowed(indent: usize, width: usize, text: &str) -> String {
    let margin = " ".repeat(indent);
    let mut lines = vec![margin.clone()];
    for word in text.split(' ') {
        let line = lines.last().map_or("", String::as_str);
        if line.width() > indent && line.width() + word.width() >= width {
            lines.push(format!("{margin}  "));
        }
        if let Some(line) = lines.last_mut() {
            let gap = if line.trim().is_empty() { "" } else { " " };
            let _ = write!(line, "{gap}{word}");
        }
    }
    lines.join("\n") + "\n"
}
