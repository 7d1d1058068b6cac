//! Decides whether a line reports an error, judging by its words. Knows no tool's format.

/// Words that occur in lines which report an error, by their first letter.
const ERROR_WORDS: &[(u8, &[&str])] = &[
    (b'a', &["assertion"]),
    (b'c', &["cannot"]),
    (b'e', &["error", "exception"]),
    (b'f', &["fail", "failed", "failure", "fatal"]),
    (b'n', &["not ok", "no such file", "not found"]),
    (b'p', &["panic", "panicked"]),
    (b's', &["segmentation fault"]),
    (b't', &["traceback"]),
    (b'u', &["undefined"]),
];

/// Marks before the description of a failure.
const FAILURE_MARKS: [char; 3] = ['✗', '✘', '✖'];

/// Whether the line reports an error: `0 errors` and `thiserror` do not.
pub(super) fn looks_like_error(line: &str) -> bool {
    let bytes = line.as_bytes();
    let mut before = b' ';
    for (at, byte) in bytes.iter().enumerate() {
        let begins = if before.is_ascii_lowercase() { byte.is_ascii_uppercase() } else { is_word_boundary(before) };
        if begins && byte.is_ascii_alphabetic() && begins_error_word(line, at) {
            return true;
        }
        before = *byte;
    }
    !line.is_ascii() && line.contains(FAILURE_MARKS)
}

/// Whether a byte is not part of a word, so that a word begins or ends there.
fn is_word_boundary(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric()
}

/// Whether a word for an error, or its plural, begins at a position where a word begins.
fn begins_error_word(line: &str, at: usize) -> bool {
    let letter = line.as_bytes()[at].to_ascii_lowercase();
    let Ok(row) = ERROR_WORDS.binary_search_by_key(&letter, |(letter, _)| *letter) else { return false };
    ERROR_WORDS[row].1.iter().any(|word| {
        let matches_word =
            line.as_bytes()[at..].get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes()));
        matches_word && is_whole_word(&line[at + word.len()..]) && !is_negated(&line[..at], &line[at + word.len()..])
    })
}

/// Whether the word before ends there, or after the `s` of its plural.
fn is_whole_word(after: &str) -> bool {
    let after = after.strip_prefix(['s', 'S']).unwrap_or(after);
    !after.starts_with(char::is_alphanumeric)
}

/// Whether the words around it say that there was no error.
fn is_negated(before: &str, after: &str) -> bool {
    let last = before.split_whitespace().next_back().unwrap_or_default();
    let counted_none = ["0", "no", "without"].iter().any(|none| last.eq_ignore_ascii_case(none));
    let after = after.strip_prefix('s').unwrap_or(after).trim_start_matches([' ', ':', '=']);
    let zero = after.strip_prefix('0').is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'));
    counted_none || zero
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_report_errors_are_told_from_lines_that_do_not() {
        let errors = [
            "error: x",
            "TypeError: x is undefined",
            "test a ... FAILED",
            "thread 'main' panicked at src/lib.rs",
            "2 errors",
            "java.lang.NullPointerException",
            "not ok 3 - parses",
            "0 errors, 3 failures",
        ];
        let others = [
            "Compiling thiserror v2.0",
            "0 errors",
            "5 passed; 0 failed",
            "errors: 0",
            "failed=0",
            "no errors found",
            "step 4",
        ];
        assert_eq!(errors.iter().filter(|line| !looks_like_error(line)).collect::<Vec<_>>(), Vec::<&&str>::new());
        assert_eq!(others.iter().filter(|line| looks_like_error(line)).collect::<Vec<_>>(), Vec::<&&str>::new());
    }
}
