//! Lists the failures in an output, for readers who want the lines and not the text for sessions.

use protocol::reply::ReportedFailure;

use super::classify::OutputClassifier;
use super::failures::FailureReport;
use super::lines;
use super::report_parsers::ReportLevel;

/// Most failures that are listed.
const MAX_FAILURES: usize = 20;
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
