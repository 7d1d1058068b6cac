//! Reports of `go test`, with and without `-v`.

use super::{ReportLine, ReportParser};

/// go test. With `-v`, a test's output comes before the line that says it failed.
pub(super) const GO_TEST: ReportParser = ReportParser {
    is_proof: |line| line.starts_with("--- FAIL: ") || line.starts_with("panic: "),
    ..ReportParser::tests("go test", read_go_test)
};

fn read_go_test(line: &str) -> Option<ReportLine<'_>> {
    for word in ["=== RUN   ", "=== CONT  ", "=== NAME  "] {
        if let Some(name) = line.strip_prefix(word) {
            // A subtest belongs to its test.
            return (!name.contains('/')).then_some(ReportLine::FailureStart(name));
        }
    }
    if let Some(rest) = line.strip_prefix("--- FAIL: ") {
        return rest.split(' ').next().map(ReportLine::FailureStart);
    }
    if line.starts_with("--- PASS: ") || line.starts_with("--- SKIP: ") || line.starts_with("ok  \t") {
        return Some(ReportLine::Routine);
    }
    let is_end = matches!(line, "FAIL" | "PASS") || line.starts_with("FAIL\t") || line.starts_with("?   \t");
    is_end.then_some(ReportLine::FailureEnd)
}
