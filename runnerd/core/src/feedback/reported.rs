//! What failed in an output, for readers who want the lines and not the text that sessions are told.

use protocol::reply::ReportedFailure;

use super::failures::Failure;
use super::lines;
use super::runner::Level;
use super::sort::Sorter;

/// Most failures that are told.
const MOST: usize = 20;
/// Most lines of one.
const MOST_LINES: usize = 12;
/// Bytes of failures that are held.
const LIMIT_BYTES: usize = 64 * 1024;

/// Returns what runners of tests and compilers have reported as failed, in order; nothing where none is known to have
/// written the output. That a build tool ended because of it is told where nothing else is.
pub fn reported(output: &[u8]) -> Vec<ReportedFailure> {
    let output = String::from_utf8_lossy(output);
    let told = Sorter::of(lines::of(&output), LIMIT_BYTES).failures.told;
    let is_cause = |failure: &&Failure| failure.runner.level != Level::Wrapper;
    let causes: Vec<&Failure> = told.iter().filter(is_cause).collect();
    let shown = if causes.is_empty() { told.iter().collect() } else { causes };
    shown.into_iter().take(MOST).map(view).collect()
}

fn view(failure: &Failure) -> ReportedFailure {
    let lines = failure.lines.iter().filter(|line| !line.trim().is_empty());
    ReportedFailure { name: failure.name.clone(), lines: lines.take(MOST_LINES).cloned().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_with_the_line_that_names_it_and_without_its_build_tool() {
        let output = b"ok 1\nnot ok 2 - rejects IIII\n  expected an error\nmake: *** [Makefile:3: test] Error 1\n";
        let told = reported(output);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].lines[0], "not ok 2 - rejects IIII");
    }

    #[test]
    fn what_no_runner_has_written_tells_no_failure_and_much_is_bounded() {
        assert_eq!(reported(b"all is well\n"), []);
        let many: String = (0..500).map(|at| format!("not ok {at} - case {at}\n  why\n")).collect();
        let told = reported(many.as_bytes());
        assert!(!told.is_empty() && told.len() <= MOST && told.iter().all(|one| one.lines.len() <= MOST_LINES));
    }
}
