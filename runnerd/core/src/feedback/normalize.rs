//! Removes everything from a line that changes from run to run.
//!
//! Numbers with their units, hexadecimal ids, times and the names of temporary folders become `#`, so that the same
//! failure reads the same the next time.

use crate::text::fence::clean;

/// Hexadecimal words of at least this length are ids.
const ID_LEN: usize = 6;

/// Returns the line without what changes from run to run.
pub(super) fn normalize_line(line: &str) -> String {
    let line = clean(line);
    let mut shape = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some(c) = rest.chars().next() {
        let is_part: fn(char) -> bool = if shape.ends_with("/tmp/") {
            |c| !c.is_whitespace() && !matches!(c, '/' | '"' | '\'' | ':' | ')')
        } else {
            |c| c.is_alphanumeric() || c == '_'
        };
        let word = rest.len() - rest.trim_start_matches(is_part).len();
        let (token, after) = rest.split_at(if word == 0 { c.len_utf8() } else { word });
        rest = after;
        if word > 0 && (shape.ends_with("/tmp/") || is_id(token)) {
            push_number(&mut shape);
        } else {
            push_word(&mut shape, token);
        }
    }
    shape
}

/// Whether the token is a hexadecimal id.
fn is_id(token: &str) -> bool {
    let digits = token.strip_prefix("0x").unwrap_or(token);
    let has_digit = token.contains(|c: char| c.is_ascii_digit());
    has_digit && digits.chars().all(|c| c.is_ascii_hexdigit()) && (token.len() >= ID_LEN || digits.len() < token.len())
}

/// Adds a number; one that continues after a point, a colon or a dash is the same number.
fn push_number(shape: &mut String) {
    let joint = ["#.", "#:", "#-", "#,"].iter().any(|joint| shape.ends_with(joint));
    if joint {
        shape.pop();
    } else if !shape.ends_with('#') {
        shape.push('#');
    }
}

/// Adds a word with its digits as numbers, omitting units after a number.
fn push_word(shape: &mut String, word: &str) {
    const UNITS: &[&str] = &["s", "ms", "us", "µs", "ns", "m", "min", "h", "kB", "KB", "MB", "GB", "KiB", "MiB", "GiB"];
    let letters = word.trim_start_matches(|c: char| c.is_ascii_digit());
    if letters.len() < word.len() && (UNITS.contains(&letters) || is_time_suffix(letters)) {
        return push_number(shape);
    }
    for c in word.chars() {
        if c.is_ascii_digit() { push_number(shape) } else { shape.push(c) }
    }
}

/// Whether what follows digits makes them part of a time such as `22T05` or `31Z`.
fn is_time_suffix(letters: &str) -> bool {
    letters == "Z" || letters.strip_prefix('T').is_some_and(|hour| hour.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_from_run_to_run_is_taken_out() {
        let table = [
            ("finished in 0.19s", "finished in #"),
            ("took 120 ms", "took # ms"),
            ("2026-11-22T05:01:16.618Z waiting", "# waiting"),
            ("<function price at 0x7fa3f43a0860>", "<function price at #>"),
            ("commit 1a2b3c4d5e", "commit #"),
            ("src/lib.rs:34:9: x", "src/lib.rs:#: x"),
            ("/tmp/.tmpAbC12/x.rs", "/tmp/#/x.rs"),
            ("no number", "no number"),
        ];
        for (line, shape) in table {
            assert_eq!(normalize_line(line), shape, "{line}");
        }
    }
}
