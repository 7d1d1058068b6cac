//! Decides what fits into an exported file: replies and texts, counted in their encoded size. Reads nothing.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::text::TextEnds;
use crate::wire::Shortened;

/// Maximum encoded size of one text in the file, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 512 * 1024;

/// A piece that the file may contain.
#[derive(Debug)]
pub(super) enum BundlePiece {
    /// A JSON reply, with its name.
    Reply(String, Value),
    /// A text with its name, and a note if it was shortened.
    Text(String, String, Option<Shortened>),
}

/// Collects pieces as long as they fit.
#[derive(Debug)]
pub(super) struct ExportBundle {
    remaining: usize,
    pub(super) replies: BTreeMap<String, Value>,
    pub(super) texts: BTreeMap<String, String>,
    pub(super) shortened: Vec<Shortened>,
}

impl ExportBundle {
    /// Creates a bundle with room for this many bytes.
    pub(super) fn new(room: usize) -> Self {
        Self { remaining: room, replies: BTreeMap::new(), texts: BTreeMap::new(), shortened: Vec::new() }
    }

    /// Adds all pieces, or none if they do not fit together; returns whether they were added.
    pub(super) fn add_all(&mut self, pieces: Vec<BundlePiece>) -> bool {
        let size: usize = pieces.iter().map(BundlePiece::encoded_size).sum();
        let Some(room) = self.remaining.checked_sub(size) else { return false };
        self.remaining = room;
        for piece in pieces {
            match piece {
                BundlePiece::Reply(name, reply) => drop(self.replies.insert(name, reply)),
                BundlePiece::Text(name, text, shortened) => {
                    self.shortened.extend(shortened);
                    self.texts.insert(name, text);
                }
            }
        }
        true
    }
}

impl BundlePiece {
    fn encoded_size(&self) -> usize {
        // Plus a colon and a comma.
        let size = |name: &str, value: usize| to_embedded_json(name).len() + value + 2;
        match self {
            Self::Reply(name, reply) => size(name, to_embedded_json(reply).len()),
            Self::Text(name, text, _) => size(name, to_embedded_json(text).len()),
        }
    }
}

/// Encodes a value for the file: JSON in which nothing can close the enclosing HTML element.
pub(super) fn to_embedded_json(value: &(impl Serialize + ?Sized)) -> String {
    let text = serde_json::to_string(value).expect("BUG: a reply has no form as JSON");
    text.replace('<', "\\u003c")
}

/// Returns the part of a text that goes into the file, and its length in bytes: all of it, else its ends up to [`MAX_TEXT_BYTES`]
/// encoded bytes, in whole lines around a line that states how much is missing. If `head_only`, just the beginning is
/// kept, because only that makes sense.
pub(super) fn excerpt(ends: &TextEnds, head_only: bool) -> (String, u64) {
    if ends.tail.is_empty() {
        let whole = String::from_utf8_lossy(&ends.head);
        if to_embedded_json(&*whole).len() <= MAX_TEXT_BYTES {
            return (whole.into_owned(), ends.size);
        }
    }
    let tail = if ends.tail.is_empty() { &ends.head } else { &ends.tail };
    let mut take = MAX_TEXT_BYTES / 2;
    loop {
        let first = whole_lines_of_head(&ends.head[..take.min(ends.head.len())]);
        let last = if head_only { &[] } else { whole_lines_of_tail(&tail[tail.len().saturating_sub(take)..]) };
        let length = (first.len() + last.len()) as u64;
        let head = String::from_utf8_lossy(first);
        let tail = String::from_utf8_lossy(last);
        let line_end = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        let missing = ends.size.saturating_sub(length);
        let text = format!("{head}{line_end}[{missing} bytes are left out of this file]\n{tail}");
        if to_embedded_json(&text).len() <= MAX_TEXT_BYTES || take == 0 {
            return (text, length);
        }
        take /= 2;
    }
}

/// Drops an incomplete line at the end.
fn whole_lines_of_head(bytes: &[u8]) -> &[u8] {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(bytes, |end| &bytes[..=end])
}

/// Drops an incomplete line at the beginning.
fn whole_lines_of_tail(bytes: &[u8]) -> &[u8] {
    bytes.iter().position(|byte| *byte == b'\n').map_or(bytes, |end| &bytes[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole_text(text: &str) -> TextEnds {
        TextEnds { head: text.into(), tail: Vec::new(), size: text.len() as u64 }
    }

    #[test]
    fn nothing_that_is_written_ends_the_element_around_it() {
        let hostile = "</script><!--<script>\u{2028}</SCRIPT";
        let text = to_embedded_json(hostile);
        assert!(!text.contains('<'), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).expect("JSON"), hostile);
    }

    #[test]
    fn a_parcel_takes_what_fits_together_and_nothing_of_the_rest() {
        let text = |name: &str, bytes| BundlePiece::Text(name.into(), "x".repeat(bytes), None);
        let mut parcel = ExportBundle::new(100);
        assert!(parcel.add_all(vec![text("a", 40)]));
        assert!(!parcel.add_all(vec![text("b", 10), text("c", 60)]), "together they are too much");
        assert!(parcel.add_all(vec![text("d", 40)]));
        assert_eq!(parcel.texts.keys().collect::<Vec<_>>(), ["a", "d"]);
        let all = to_embedded_json(&parcel.texts);
        assert!(all.len() <= 100 && parcel.remaining < 20, "{} bytes", all.len());
    }

    #[test]
    fn a_text_that_fits_is_whole_and_of_a_long_one_both_ends_are_there() {
        assert_eq!(excerpt(&whole_text("one\ntwo"), false), ("one\ntwo".into(), 7));
        let long = (0..200_000).map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat();
        let (text, length) = excerpt(&whole_text(&long), false);
        assert!(to_embedded_json(&text).len() <= MAX_TEXT_BYTES && length > (MAX_TEXT_BYTES / 4) as u64, "{length}");
        assert!(text.starts_with("line 0\n") && text.ends_with("\nline 199999\n"));
        let missing = format!("\n[{} bytes are left out of this file]\nline ", long.len() as u64 - length);
        assert!(text.contains(&missing));
        let (diff, _) = excerpt(&whole_text(&long), true);
        assert!(diff.starts_with("line 0\n") && diff.ends_with(" bytes are left out of this file]\n"));
    }

    #[test]
    fn a_text_that_grows_as_it_is_written_is_cut_by_what_it_takes_there() {
        for hostile in ["<", "\u{1b}", "\u{fffd}", "ü"] {
            let (text, length) = excerpt(&whole_text(&hostile.repeat(MAX_TEXT_BYTES)), false);
            assert!(to_embedded_json(&text).len() <= MAX_TEXT_BYTES && length > 0, "{hostile:?}: {length}");
        }
    }
}
