//! Lists the failures in an output, for readers who want the lines and not the text for sessions.

use std::collections::BTreeSet;

use protocol::reply::ReportedFailure;

use super::classify::OutputClassifier;
use super::failures::FailureReport;
use super::lines;
use super::report_parsers::ReportLevel;
use crate::guard::flakes::{has_file, is_source_file};
use crate::guard::test_results::clean_name;

/// Most failures that are listed.
const MAX_FAILURES: usize = 20;
/// Most names that are listed.
const MAX_NAMES: usize = 200;
/// Most lines of one failure.
const MAX_LINES: usize = 12;
/// Most bytes of failures that are held.
const LIMIT_BYTES: usize = 64 * 1024;

/// Returns the failures reported by test runners and compilers, in order; empty if no known one has written the output.
/// The resulting failure of a build tool is not a separate failure.
pub fn list_failures(output: &[u8]) -> Vec<ReportedFailure> {
    let output = String::from_utf8_lossy(output);
    let detailed = OutputClassifier::from_lines(lines::terminal_lines(&output), LIMIT_BYTES).failures.detailed;
    detailed
        .iter()
        .filter(|failure| failure.parser.level != ReportLevel::Wrapper)
        .take(MAX_FAILURES)
        .map(to_reported_failure)
        .collect()
}

/// Returns the names of the failures that known programs reported, each with its file if that is known; empty if no known
/// one has written the output.
pub fn list_failing_names(output: &[u8]) -> Vec<String> {
    let output = String::from_utf8_lossy(output);
    let failures = OutputClassifier::from_lines(lines::terminal_lines(&output), LIMIT_BYTES).failures;
    let detailed = failures.detailed.iter().filter(|failure| failure.parser.level != ReportLevel::Wrapper);
    let names = detailed.map(name_with_file).chain(failures.names_without_lines().iter().cloned());
    let names: BTreeSet<String> = names.map(|name| clean_name(&name)).collect();
    names.into_iter().take(MAX_NAMES).collect()
}

fn name_with_file(failure: &FailureReport) -> String {
    let name = &failure.name;
    let file = if has_file(name) { None } else { failure.lines.iter().find_map(|line| find_file(line)) };
    file.map_or_else(|| name.clone(), |file| format!("{file} {name}"))
}

/// Returns the file of a line such as `panicked at src/lib.rs:3:5`; of a path that is absolute, its end.
fn find_file(line: &str) -> Option<String> {
    let is_delimiter = |c: char| c.is_whitespace() || "\"'`()[]<>,".contains(c);
    let words = line.split(is_delimiter).map(|word| word.split(':').next().unwrap_or(word));
    let file = words.map(|word| word.trim_start_matches("./")).find(|word| is_source_file(word))?;
    let parts: Vec<&str> = file.split('/').collect();
    let own = if file.starts_with('/') { &parts[parts.len().saturating_sub(2)..] } else { &parts[..] };
    Some(own.join("/").trim_start_matches('/').to_owned())
}

fn to_reported_failure(failure: &FailureReport) -> ReportedFailure {
    let lines = failure.lines.iter().filter(|line| !line.trim().is_empty());
    ReportedFailure { name: failure.name.clone(), lines: lines.take(MAX_LINES).cloned().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_with_the_line_that_names_it_and_without_its_build_tool() {
        let output = "=== RUN   TestReject\n--- FAIL: TestReject (0.00s)\n    roman_test.go:12: want an error\nFAIL\n\
                      make: *** [Makefile:3: test] Error 1\n";
        let failures = list_failures(output.as_bytes());
        assert_eq!(failures.len(), 1, "{failures:?}");
        for line in ["--- FAIL: TestReject (0.00s)", "    roman_test.go:12: want an error"] {
            assert!(failures[0].lines.iter().any(|text| text == line), "{failures:?}");
        }
        assert_eq!(list_failures(b"make: *** [Makefile:3: test] Error 1\n"), []);
    }

    #[test]
    fn names_of_failures_have_their_file_if_it_is_known() {
        let names = |output: &str| list_failing_names(output.as_bytes());
        let go = "--- FAIL: TestReject (0.00s)\n    roman_test.go:12: want an error\nFAIL\n";
        assert_eq!(names(go), ["roman_test.go TestReject"]);
        let rust = "---- shop::pays stdout ----\n\nthread 'shop::pays' panicked at src/shop.rs:3:5:\nno\n\nfailures:\n    shop::pays\n";
        assert_eq!(names(rust), ["src/shop.rs shop::pays"]);
        let python = "FAIL: test_pay (test_shop.Pay.test_pay)\nTraceback (most recent call last):\n  \
                      File \"/home/me/shop/tests/test_shop.py\", line 5, in test_pay\nAssertionError: 1 != 2\n";
        assert_eq!(names(python), ["tests/test_shop.py test_pay (test_shop.Pay.test_pay)"]);
        let pytest = "FAILED tests/test_shop.py::test_pay - assert 1 == 2\n==== 1 failed in 0.02s ====\n";
        assert_eq!(names(pytest), ["tests/test_shop.py::test_pay"]);
        assert_eq!(names("it failed\n"), Vec::<String>::new());
        assert!(
            names(&(0..900).map(|at| format!("--- FAIL: Test{at} (0.00s)\n")).collect::<Vec<_>>().concat()).len()
                <= MAX_NAMES
        );
    }

    #[test]
    fn what_no_runner_has_written_tells_no_failure_and_much_is_bounded() {
        assert_eq!(list_failures(b"all is well\n"), []);
        let many: Vec<String> =
            (0..500).map(|at| format!("--- FAIL: Test{at} (0.00s)\n    a_test.go:{at}: why\n")).collect();
        let failures = list_failures(many.concat().as_bytes());
        assert!(
            !failures.is_empty()
                && failures.len() <= MAX_FAILURES
                && failures.iter().all(|one| one.lines.len() <= MAX_LINES)
        );
    }
}
