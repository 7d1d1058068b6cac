//! Cuts text to a number of bytes: at character boundaries, keeping head and tail, and marking the cut.
//!
//! The callers decide which text is cut, and how far.

/// How to cut a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClipOptions<'a> {
    /// Most bytes of the result, including the mark.
    pub(crate) limit: usize,
    /// How much of what is kept comes from the head, in eighths; the rest comes from the tail.
    pub(crate) head_eighths: usize,
    /// Bytes that were already cut from the front of the text.
    pub(crate) omitted_bytes: usize,
    /// Added to the mark, such as where to find the whole text; may be empty.
    pub(crate) hint: &'a str,
}

/// A text within its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClippedText {
    /// The text, with a mark where something is missing.
    pub(crate) text: String,
    /// Number of bytes that are missing.
    pub(crate) cut_bytes: usize,
}

impl ClipOptions<'_> {
    /// Cuts the text, if necessary.
    pub(crate) fn apply(&self, text: &str) -> ClippedText {
        if text.len() <= self.limit && self.omitted_bytes == 0 {
            return ClippedText { text: text.to_owned(), cut_bytes: 0 };
        }
        let reserved = self.mark(text.len() + self.omitted_bytes).len() + 2;
        let Some(room) = self.limit.checked_sub(reserved) else {
            let text_kept = truncate_text(text, self.limit);
            return ClippedText {
                cut_bytes: self.omitted_bytes + text.len().saturating_sub(text_kept.len()),
                text: text_kept,
            };
        };
        if text.len() <= room {
            return ClippedText {
                text: format!("{}\n{text}", self.mark(self.omitted_bytes)),
                cut_bytes: self.omitted_bytes,
            };
        }
        let head = clipped_head(text, room * self.head_eighths / 8);
        let tail = clipped_tail(text, room - room * self.head_eighths / 8);
        let cut_bytes = text.len() - head.len() - tail.len() + self.omitted_bytes;
        let newline = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        ClippedText { text: format!("{head}{newline}{}\n{tail}", self.mark(cut_bytes)), cut_bytes }
    }

    fn mark(&self, bytes: usize) -> String {
        format!("[… {bytes} bytes left out{} …]", self.hint)
    }
}

/// Returns the text within `limit` bytes, with an ellipsis in place of what was cut from its end.
pub(crate) fn truncate_text(text: &str, limit: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() <= limit {
        return text.to_owned();
    }
    match limit.checked_sub(ELLIPSIS.len()) {
        Some(room) => format!("{}{ELLIPSIS}", &text[..text.floor_char_boundary(room)]),
        None => text[..text.floor_char_boundary(limit)].to_owned(),
    }
}

/// The longest head within `limit`, up to the end of a line if that costs at most a quarter of it.
fn clipped_head(text: &str, limit: usize) -> &str {
    let end = text.floor_char_boundary(limit);
    match text[..end].rfind('\n') {
        Some(line_end) if line_end + 1 >= end - end / 4 => &text[..=line_end],
        _ => &text[..end],
    }
}

/// The longest tail within `limit`, from the start of a line if that costs at most a quarter of it.
fn clipped_tail(text: &str, limit: usize) -> &str {
    let start = text.ceil_char_boundary(text.len() - limit.min(text.len()));
    let tail = &text[start..];
    match tail.find('\n') {
        Some(line_end) if line_end < tail.len() / 4 => &tail[line_end + 1..],
        _ => tail,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn head_and_tail_are_kept_and_the_cut_says_how_much() {
        let text = "first line\n".to_owned() + &"middle\n".repeat(100) + "last line\n";
        let piece = ClipOptions { limit: 100, head_eighths: 4, omitted_bytes: 0, hint: "" }.apply(&text);
        insta::assert_snapshot!(piece.text, @r"
        first line
        middle
        middle
        middle
        [… 658 bytes left out …]
        middle
        middle
        middle
        last line
        ");
        assert_eq!(piece.cut_bytes, 658);
    }

    #[test]
    fn what_was_left_out_before_is_counted() {
        let piece = ClipOptions { limit: 100, head_eighths: 0, omitted_bytes: 7, hint: "; see x" }.apply("rest");
        assert_eq!(piece, ClippedText { text: "[… 7 bytes left out; see x …]\nrest".to_owned(), cut_bytes: 7 });
    }

    proptest! {
        #[test]
        fn never_above_the_limit(text in any::<String>(), limit in 0usize..200, head in 0usize..=8, before in 0usize..9) {
            let piece = ClipOptions { limit, head_eighths: head, omitted_bytes: before, hint: "" }.apply(&text);
            prop_assert!(piece.text.len() <= limit);
            prop_assert!(truncate_text(&text, limit).len() <= limit);
        }
    }
}
