//! Positions in a text, and suggestions for misspelled words.

/// Returns `line:column` of a byte offset, both counted from 1, the column in characters.
pub(super) fn format_position(text: &str, offset: usize) -> String {
    let before = &text[..text.floor_char_boundary(offset.min(text.len()))];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{line}:{column}")
}

/// Returns the byte offset of a line and column, both counted from 1, the column in characters.
pub(super) fn byte_offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    start + text[start..].chars().take(column.saturating_sub(1)).map(char::len_utf8).sum::<usize>()
}

/// Returns the known word most similar to the one written, if any is similar.
pub(super) fn find_nearest<'a>(input: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let similarity = |word: &str| strsim::jaro_winkler(input, word);
    let best = known.into_iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    best.filter(|word| similarity(word) > 0.75)
}

/// Returns the offset of a word in the table starting at `from`, for errors where the parser reports only the table.
pub(super) fn word_offset(text: &str, word: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let header = rest.find('\n').unwrap_or(rest.len());
    let end = rest[header..].find("\n[").map_or(rest.len(), |at| header + at);
    let table = &rest[..end];
    let is_key = |at: &usize| table[..*at].rsplit('\n').next().is_some_and(|before| before.trim().is_empty());
    let key = table.match_indices(word).map(|(at, _)| at).find(is_key);
    key.or_else(|| table.find(word)).map_or(from, |at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_by_line_and_column_in_characters() {
        assert_eq!(format_position("a\nüb", 4), "2:2");
        assert_eq!(format_position("a", 9), "1:2");
        assert_eq!(byte_offset("a\nüb", 2, 2), 4);
        assert_eq!(byte_offset("a", 7, 7), 1);
    }

    #[test]
    fn a_word_is_guessed_only_where_it_is_alike() {
        assert_eq!(find_nearest("limit_sec", ["goal", "limit_secs"]), Some("limit_secs"));
        assert_eq!(find_nearest("zzz", ["goal", "limit_secs"]), None);
    }
}
