//! Reports of `go test`, with and without `-v`.

use super::{Runner, Sign};

/// go test. With `-v`, what a test says comes before the line which says that it failed.
pub(super) const GO_TEST: Runner = Runner {
    proves: |line| line.starts_with("--- FAIL: ") || line.starts_with("panic: "),
    ..Runner::tests("go test", read)
};

fn read(line: &str) -> Option<Sign<'_>> {
    for word in ["=== RUN   ", "=== CONT  ", "=== NAME  "] {
        if let Some(name) = line.strip_prefix(word) {
            // A part of a test belongs to it.
            return (!name.contains('/')).then_some(Sign::Begins(name));
        }
    }
    if let Some(rest) = line.strip_prefix("--- FAIL: ") {
        return rest.split(' ').next().map(Sign::Begins);
    }
    if line.starts_with("--- PASS: ") || line.starts_with("--- SKIP: ") || line.starts_with("ok  \t") {
        return Some(Sign::Routine);
    }
    let is_end = matches!(line, "FAIL" | "PASS") || line.starts_with("FAIL\t") || line.starts_with("?   \t");
    is_end.then_some(Sign::Ends)
}
