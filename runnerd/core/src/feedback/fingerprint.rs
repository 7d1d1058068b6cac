//! Reduces a failure to a fingerprint by which it can be recognized again.
//!
//! Based only on the text that `feedback.json` keeps, so that anyone with the commit can repeat it.

use super::classify::OutputClassifier;
use super::error_words::looks_like_error;
use super::failures::FailureReport;
use super::line_shape::has_location;
use super::report_parsers::{self, ReportLevel, ReportLine};
use super::{lines, normalize};
use crate::text::digest::sha256_hex;
use crate::text::fence::one_line;

/// Digits of a digest.
const DIGEST_LEN: usize = 8;
/// Longest summary of a failure, in bytes.
const SUMMARY_LIMIT: usize = 400;
/// Most lines of one failure that distinguish it from others.
const MAX_TELLING_LINES: usize = 8;
/// Most lines that represent an output in which no failure was recognized.
const MAX_ERROR_LINES: usize = 20;
/// Number of lines from the end of such an output.
const LAST_LINES: usize = 3;

/// Fingerprint of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureFingerprint {
    /// Equal for equal failures: everything that failed, and why, without numbers and times.
    pub digest: String,
    /// What failed first and why, on one line.
    pub summary: String,
}

/// Returns the fingerprint of a failure, from its text as made by [`super::reduce`] or as written by a rule.
pub fn fingerprint_failure(text: &str) -> FailureFingerprint {
    let sorter = OutputClassifier::from_lines(lines::terminal_lines(text), text.len().max(1_000));
    let detailed: Vec<&FailureReport> =
        sorter.failures.detailed.iter().filter(|failure| says_why(failure.parser.level)).collect();
    let named = sorter.failures.names_without_lines();
    let (mut parts, words) = match (detailed.first(), named.first()) {
        (Some(first), _) => {
            (detailed.iter().map(|failure| normalize_failure(failure)).collect(), summarize_failure(first))
        }
        (None, Some(name)) => (Vec::new(), format!("{name} failed")),
        (None, None) => unrecognised_lines(text),
    };
    parts.extend(named.iter().cloned());
    parts.sort();
    parts.dedup();
    // Failures for which there was only room for the name.
    parts.extend(text.lines().filter(|line| line.starts_with("[also failed: ")).map(str::to_owned));
    let mut digest = sha256_hex(parts.join("\n").as_bytes());
    digest.truncate(DIGEST_LEN);
    FailureFingerprint { digest, summary: one_line(&words, SUMMARY_LIMIT) }
}

/// Whether a report says what went wrong, and not only that something did.
fn says_why(level: ReportLevel) -> bool {
    level != ReportLevel::Wrapper
}

/// Returns a failure without what changes from run to run; the name of a test is kept.
fn normalize_failure(failure: &FailureReport) -> String {
    let name = match failure.parser.level {
        ReportLevel::Tests => failure.name.clone(),
        ReportLevel::Diagnostics | ReportLevel::Wrapper => normalize::normalize_line(&failure.name),
    };
    let telling = telling_lines(failure).into_iter().map(normalize::normalize_line);
    std::iter::once(name).chain(telling).collect::<Vec<_>>().join("\n")
}

fn summarize_failure(failure: &FailureReport) -> String {
    let telling = telling_lines(failure);
    let error = telling.iter().position(|line| looks_like_error(line)).unwrap_or_default();
    let why = telling[error..].iter().take(2).copied().collect::<Vec<_>>().join(" ");
    if why.is_empty() { failure.name.clone() } else { format!("{}: {why}", failure.name) }
}

/// Returns the lines that distinguish a failure: its first two, errors, places, and what follows those.
fn telling_lines(failure: &FailureReport) -> Vec<&str> {
    let lines: Vec<&str> =
        failure.lines.iter().skip(1).map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    let follows = |at: usize| at.checked_sub(1).is_some_and(|before| has_content(lines[before]));
    let is_telling = |at: &usize| *at < 2 || has_content(lines[*at]) || follows(*at);
    (0..lines.len()).filter(is_telling).map(|at| lines[at]).take(MAX_TELLING_LINES).collect()
}

fn has_content(line: &str) -> bool {
    looks_like_error(line) || has_location(line)
}

/// Returns the lines that represent a text without a recognized failure, and the most informative one.
fn unrecognised_lines(text: &str) -> (Vec<String>, String) {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty() && !is_wrapper_line(line)).collect();
    let errors = lines.iter().copied().filter(|line| looks_like_error(line)).take(MAX_ERROR_LINES);
    let last = lines.iter().copied().skip(lines.len().saturating_sub(LAST_LINES));
    let words = errors.clone().next().or(lines.last().copied()).unwrap_or("it said nothing").to_owned();
    (errors.chain(last).map(normalize::normalize_line).collect(), words)
}

/// Whether the line is the runner's own, or comes from a program that only names the step that failed.
fn is_wrapper_line(line: &str) -> bool {
    let is_wrapper = matches!(report_parsers::parse_line(line, None), Some((by, ReportLine::FailureStart(_))) if !says_why(by.level));
    is_wrapper
        || line.starts_with("[… ")
        || line.starts_with(super::HEADING)
        || line.trim_end() == super::REST_HEADING.trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: &str = "---- tests::a stdout ----\n\nthread 'tests::a' (812) panicked at src/lib.rs:34:9:\n\
                          assertion `left == right` failed\n  left: 1\n right: 2\n\nfailures:\n    tests::a\n";

    fn digest(text: &str) -> String {
        fingerprint_failure(text).digest
    }

    #[test]
    fn numbers_and_times_do_not_make_another_failure() {
        let later = FAILED.replace("812", "99").replace("34:9", "51:5").replace("left: 1", "left: 7");
        assert_eq!(digest(&later), digest(FAILED));
        assert_eq!(digest("request 7f3b01ac timed out after 2.5s\n"), digest("request 99ab01ac timed out after 31s\n"));
        assert_eq!(digest("error: no space in /tmp/.tmpAb1/x\n"), digest("error: no space in /tmp/.tmpZz9/x\n"));
    }

    #[test]
    fn another_test_message_or_set_of_failures_is_another_failure() {
        let others = [
            FAILED.replace("tests::a", "tests::b"),
            FAILED.replace("assertion `left == right` failed", "index out of bounds"),
            FAILED.replace("src/lib.rs", "src/other.rs"),
            FAILED.to_owned() + &FAILED.replace("tests::a", "tests::a2"),
        ];
        for other in others {
            assert_ne!(digest(&other), digest(FAILED), "{other}");
        }
    }

    #[test]
    fn names_alone_tell_failures_apart() {
        let of = |name: &str| format!("test {name} ... FAILED\ntest result: FAILED. 0 passed; 1 failed; in 0.01s\n");
        assert_eq!(digest(&of("case_1")), digest(&of("case_1").replace("0.01", "0.73")));
        assert_ne!(digest(&of("case_1")), digest(&of("case_2")));
        assert_eq!(fingerprint_failure(&of("case_1")).summary, "case_1 failed");
    }

    #[test]
    fn wrapper_is_not_what_failed() {
        let of = |line: &str| format!("{line}\nmake: *** [Makefile:11: check] Error 1\n");
        assert_ne!(digest(&of("ledger does not match")), digest(&of("port is taken")));
        assert_eq!(fingerprint_failure(&of("error: port is taken")).summary, "error: port is taken");
    }

    #[test]
    fn words_name_the_first_failure_with_its_place_and_message() {
        let words = "tests::a: thread 'tests::a' (812) panicked at src/lib.rs:34:9: assertion `left == right` failed";
        assert_eq!(fingerprint_failure(FAILED).summary, words);
        assert_eq!(fingerprint_failure("").summary, "it said nothing");
    }
}
