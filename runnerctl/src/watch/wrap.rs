//! Cuts a line into rows of the screen, by its displayed width.

use std::ops::Range;

use unicode_width::UnicodeWidthChar as _;

/// Returns the parts of a line that fit into rows of `width` columns; an empty line is one empty row.
pub(crate) fn wrap_ranges(line: &str, width: usize) -> Vec<Range<usize>> {
    let width = width.max(2);
    let mut rows = Vec::new();
    let mut start = 0;
    let mut used = 0;
    for (at, c) in line.char_indices() {
        let columns = c.width().unwrap_or(0);
        if used + columns > width {
            rows.push(start..at);
            (start, used) = (at, 0);
        }
        used += columns;
    }
    rows.push(start..line.len());
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped_texts(line: &str, width: usize) -> Vec<&str> {
        wrap_ranges(line, width).into_iter().map(|row| &line[row]).collect()
    }

    #[test]
    fn a_long_line_takes_as_many_rows_as_it_needs() {
        assert_eq!(wrapped_texts("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(wrapped_texts("abc", 3), ["abc"]);
        assert_eq!(wrapped_texts("", 3), [""]);
    }

    #[test]
    fn a_wide_character_is_never_cut_in_half() {
        assert_eq!(wrapped_texts("a漢字b", 3), ["a漢", "字b"]);
        assert_eq!(wrapped_texts("漢字", 1), ["漢", "字"], "a column is too narrow for any");
    }
}
