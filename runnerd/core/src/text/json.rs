//! Canonical JSON, and bounds that hold before a parser recurses.
//!
//! Knows nothing of what the JSON means.

use std::io::{self, Write};

use serde::Serialize;

/// Renders `value` canonically: two-space indent, keys in declaration order, a newline at the end.
pub fn to_canonical_json<T: Serialize>(value: &T) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("BUG: a data contract does not serialize");
    text.push('\n');
    text
}

/// Whether `text` is the canonical form of `value`, checked without writing it.
pub fn is_canonical<T: Serialize>(value: &T, text: &[u8]) -> bool {
    let mut rest = ExpectedBytes(text);
    serde_json::to_writer_pretty(&mut rest, value).is_ok() && rest.0 == b"\n"
}

/// The bytes of a known text that have yet to be written.
struct ExpectedBytes<'a>(&'a [u8]);

impl Write for ExpectedBytes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bounds on a text before it is parsed.
#[derive(Debug, Clone, Copy)]
pub struct JsonBounds {
    /// Most bytes.
    pub bytes: usize,
    /// Most objects.
    pub objects: usize,
    /// Deepest nesting of objects and arrays.
    pub nesting: usize,
}

/// A bound that a text exceeds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonBoundsError {
    /// Too many bytes.
    #[error("it has {found} bytes, more than {limit}")]
    Bytes {
        /// Bytes in the text.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Too many objects.
    #[error("it has more than {limit} objects (line {line}, column {column})")]
    Objects {
        /// Objects allowed.
        limit: usize,
        /// Line of the first excess object, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
    },
    /// Nested too deeply.
    #[error("it nests deeper than {limit} levels (line {line}, column {column})")]
    Nesting {
        /// Levels allowed.
        limit: usize,
        /// Line of the first level that is too deep, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
    },
}

/// Checks `text` against `bounds` in one pass and constant memory; returns the number of objects.
pub fn check_bounds(text: &[u8], bounds: JsonBounds) -> Result<usize, JsonBoundsError> {
    if text.len() > bounds.bytes {
        return Err(JsonBoundsError::Bytes { found: text.len(), limit: bounds.bytes });
    }
    let mut nesting = 0_usize;
    let mut objects = 0_usize;
    let mut next = 0;
    while let Some(&byte) = text.get(next) {
        let at = next;
        next += 1;
        match byte {
            b'"' => next += string_len(&text[next..]),
            b'{' | b'[' => {
                nesting += 1;
                objects += usize::from(byte == b'{');
            }
            b'}' | b']' => nesting = nesting.saturating_sub(1),
            _ => continue,
        }
        if nesting > bounds.nesting {
            let (line, column) = line_and_column(text, at);
            return Err(JsonBoundsError::Nesting { limit: bounds.nesting, line, column });
        }
        if objects > bounds.objects {
            let (line, column) = line_and_column(text, at);
            return Err(JsonBoundsError::Objects { limit: bounds.objects, line, column });
        }
    }
    Ok(objects)
}

/// Returns the number of bytes up to the end of the string that they begin in, including its closing quote.
fn string_len(text: &[u8]) -> usize {
    let mut length = 0;
    while let Some(at) = text[length..].iter().position(|byte| matches!(byte, b'"' | b'\\')) {
        length += at + 1;
        if text[length - 1] == b'"' {
            return length;
        }
        // An escaped character ends nothing.
        length = text.len().min(length + 1);
    }
    text.len()
}

/// Returns line and column, both from 1, of the byte at `at`.
fn line_and_column(text: &[u8], at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line = before.split(|&byte| byte == b'\n').count();
    let column = at - before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1) + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: JsonBounds = JsonBounds { bytes: 100, objects: 2, nesting: 3 };

    #[test]
    fn only_what_would_be_written_is_canonical() {
        let value = (vec!["a\n", "\u{1}✓"], 1.5, Some(false));
        let text = to_canonical_json(&value);
        assert!(is_canonical(&value, text.as_bytes()));
        for other in [format!("{text} "), text.replace("  ", " "), text.trim_end().to_owned(), String::new()] {
            assert!(!is_canonical(&value, other.as_bytes()), "{other:?}");
        }
    }

    #[test]
    fn braces_in_strings_do_not_count() {
        assert_eq!(check_bounds(br#"{"a": "{{{[[[\"{{", "b": "\\"}"#, BOUNDS), Ok(1));
    }

    #[test]
    fn each_bound_names_its_place() {
        assert_eq!(check_bounds(&[b' '; 101], BOUNDS), Err(JsonBoundsError::Bytes { found: 101, limit: 100 }));
        assert_eq!(
            check_bounds(b"[{},\n {}, {}]", BOUNDS),
            Err(JsonBoundsError::Objects { limit: 2, line: 2, column: 6 })
        );
        assert_eq!(check_bounds(b"[[\n[[", BOUNDS), Err(JsonBoundsError::Nesting { limit: 3, line: 2, column: 2 }));
    }
}
