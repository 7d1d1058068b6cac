//! Cutting text to a number of bytes: on character boundaries, head and tail kept, the cut marked.
//!
//! Which text is cut, and how far, is decided by the callers.

/// How a text is to be cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut<'a> {
    /// The most bytes that the result may have, the mark included.
    pub(crate) limit: usize,
    /// How much of what is kept comes from the head, in eighths; the rest comes from the tail.
    pub(crate) head_eighths: usize,
    /// Bytes in front of the text that were left out before.
    pub(crate) before: usize,
    /// What the mark adds, such as where the whole text is; may be empty.
    pub(crate) hint: &'a str,
}

/// A text within its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The text, with a mark where something is missing.
    pub(crate) text: String,
    /// How many bytes are missing.
    pub(crate) cut_bytes: usize,
}

impl Cut<'_> {
    /// Cuts the text, if it must be.
    pub(crate) fn apply(&self, text: &str) -> Piece {
        if text.len() <= self.limit && self.before == 0 {
            return Piece { text: text.to_owned(), cut_bytes: 0 };
        }
        let reserved = self.mark(text.len() + self.before).len() + 2;
        let Some(room) = self.limit.checked_sub(reserved) else {
            let text_kept = fit(text, self.limit);
            return Piece { cut_bytes: self.before + text.len().saturating_sub(text_kept.len()), text: text_kept };
        };
        if text.len() <= room {
            return Piece { text: format!("{}\n{text}", self.mark(self.before)), cut_bytes: self.before };
        }
        let head = head_of(text, room * self.head_eighths / 8);
        let tail = tail_of(text, room - room * self.head_eighths / 8);
        let cut_bytes = text.len() - head.len() - tail.len() + self.before;
        let newline = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        Piece { text: format!("{head}{newline}{}\n{tail}", self.mark(cut_bytes)), cut_bytes }
    }

    fn mark(&self, bytes: usize) -> String {
        format!("[… {bytes} bytes left out{} …]", self.hint)
    }
}

/// Returns the text within `limit` bytes, an ellipsis in place of what its end lost.
pub(crate) fn fit(text: &str, limit: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() <= limit {
        return text.to_owned();
    }
    match limit.checked_sub(ELLIPSIS.len()) {
        Some(room) => format!("{}{ELLIPSIS}", &text[..text.floor_char_boundary(room)]),
        None => text[..text.floor_char_boundary(limit)].to_owned(),
    }
}

/// The longest head within `limit`, up to the end of a line where that costs at most a quarter of it.
fn head_of(text: &str, limit: usize) -> &str {
    let end = text.floor_char_boundary(limit);
    match text[..end].rfind('\n') {
        Some(line_end) if line_end + 1 >= end - end / 4 => &text[..=line_end],
        _ => &text[..end],
    }
}

/// The longest tail within `limit`, from the start of a line where that costs at most a quarter of it.
fn tail_of(text: &str, limit: usize) -> &str {
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
        let piece = Cut { limit: 100, head_eighths: 4, before: 0, hint: "" }.apply(&text);
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
        let piece = Cut { limit: 100, head_eighths: 0, before: 7, hint: "; see x" }.apply("rest");
        assert_eq!(piece, Piece { text: "[… 7 bytes left out; see x …]\nrest".to_owned(), cut_bytes: 7 });
    }

    proptest! {
        #[test]
        fn never_above_the_limit(text in any::<String>(), limit in 0usize..200, head in 0usize..=8, before in 0usize..9) {
            let piece = Cut { limit, head_eighths: head, before, hint: "" }.apply(&text);
            prop_assert!(piece.text.len() <= limit);
            prop_assert!(fit(&text, limit).len() <= limit);
        }
    }
}
