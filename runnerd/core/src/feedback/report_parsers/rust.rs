//! Reports of cargo: its test harness, nextest, rustc with clippy, and panics outside of tests.

use super::{LineContinuation, ReportLevel, ReportLine, ReportParser, until_blank};

/// The test harness of the standard library, including documentation tests.
pub(super) const CARGO_TEST: ReportParser =
    ReportParser { is_noise: is_std_frame, ..ReportParser::tests("cargo test", read_cargo) };

/// cargo-nextest.
pub(super) const NEXTEST: ReportParser = ReportParser {
    continuation: |line| {
        if line.is_empty() || line.starts_with(' ') { LineContinuation::Continues } else { LineContinuation::Over }
    },
    is_noise: is_nextest_noise,
    ..ReportParser::tests("nextest", read_nextest)
};

/// The compiler, and clippy if warnings are errors.
pub(super) const RUSTC: ReportParser = ReportParser {
    continuation: until_blank,
    is_proof: |line| line.trim_start().starts_with("--> "),
    ..ReportParser::diagnostics("rustc", read_rustc)
};

/// A panic in a program, or in a test whose output is not captured.
pub(super) const PANIC: ReportParser = ReportParser {
    level: ReportLevel::Diagnostics,
    continuation: after_panic,
    is_noise: is_std_frame,
    ..ReportParser::tests("panic", read_panic)
};

/// Prefixes of cargo's own progress messages.
const CARGO_STEPS: &[&str] =
    &["Compiling ", "Checking ", "Downloading ", "Downloaded ", "Fresh ", "Adding ", "Locking ", "Dirty "];

fn read_cargo(line: &str) -> Option<ReportLine<'_>> {
    if let Some(test) = line.strip_prefix("test ") {
        let (name, end) = test.rsplit_once(" ... ")?;
        return match end {
            "FAILED" => Some(ReportLine::FailureName(name)),
            "ok" | "ignored" => Some(ReportLine::Routine),
            _ => None,
        };
    }
    if let Some(rest) = line.strip_prefix("---- ") {
        let name = rest.strip_suffix(" stdout ----").or_else(|| rest.strip_suffix(" ----"))?;
        return Some(ReportLine::FailureStart(name));
    }
    if line == "failures:" || line.starts_with("test result: ") {
        return Some(ReportLine::FailureEnd);
    }
    let step = line.strip_prefix("  ")?.trim_start();
    CARGO_STEPS.iter().any(|word| step.starts_with(word)).then_some(ReportLine::Routine)
}

fn read_nextest(line: &str) -> Option<ReportLine<'_>> {
    if line.starts_with("────") {
        return Some(ReportLine::FailureEnd);
    }
    let status = line.strip_prefix(' ')?.trim_start();
    if status.starts_with("Summary [") || status.starts_with("Cancelling ") || status.starts_with("Canceling ") {
        return Some(ReportLine::FailureEnd);
    }
    let (word, name) = read_nextest_status(line)?;
    match word {
        "PASS" | "SLOW" | "LEAK" | "SKIP" => Some(ReportLine::Routine),
        "FAIL" | "TIMEOUT" | "ABORT" | "LEAK-FAIL" | "XFAIL" => Some(ReportLine::FailureStart(name)),
        signal if signal.starts_with("SIG") => Some(ReportLine::FailureStart(name)),
        _ => None,
    }
}

/// Returns the last word of a status and the test of a line such as `PASS [   0.005s] (2/6) shop tests::a`.
pub(in crate::feedback) fn read_nextest_status(line: &str) -> Option<(&str, &str)> {
    let (word, rest) = line.strip_prefix(' ')?.trim_start().split_once(" [")?;
    let (time, name) = rest.split_once("] ")?;
    if !time.trim_start_matches([' ', '>']).starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let name = name.trim_start();
    let name = if name.starts_with('(') { name.split_once(") ").map_or(name, |(_, name)| name) } else { name };
    // The number of tries follows the word.
    let word = word.strip_prefix("FLAKY ").map_or(word, |_| "FLAKY");
    Some((word.rsplit(' ').next()?, name))
}

/// Output of the harness inside nextest about the single test that it ran.
fn is_nextest_noise(line: &str) -> bool {
    let text = line.trim_start();
    let is_verdict = text.starts_with("test ") && text.ends_with(" ... FAILED");
    let is_sum = text.starts_with("test result: FAILED. 0 passed; 1 failed");
    text == "running 1 test" || text == "failures:" || is_verdict || is_sum || is_std_frame(line)
}

fn read_rustc(line: &str) -> Option<ReportLine<'_>> {
    let is_error = line.starts_with("error: ") || (line.starts_with("error[E") && line.contains("]: "));
    is_error.then_some(ReportLine::FailureStart(line))
}

fn read_panic(line: &str) -> Option<ReportLine<'_>> {
    (line.starts_with("thread '") && line.contains(" panicked at ")).then_some(ReportLine::FailureStart(line))
}

fn after_panic(line: &str) -> LineContinuation {
    if line == "FAILED" || line.starts_with("test ") { LineContinuation::Over } else { until_blank(line) }
}

/// Whether a line belongs to a frame of the standard library in a backtrace; its caller is the test's own.
fn is_std_frame(line: &str) -> bool {
    let text = line.trim_start();
    if text.starts_with("at /rustc/") {
        return true;
    }
    let Some((number, symbol)) = text.split_once(": ") else { return false };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let symbol = symbol.trim_start_matches("<fn() -> ").trim_start_matches('<');
    let of_std = ["core::", "std::", "alloc::", "__rustc::", "test::", "rust_begin_unwind", "__rust_"];
    is_number && of_std.iter().any(|path| symbol.starts_with(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_the_standard_library_are_noise() {
        assert!(is_std_frame("   1: core::panicking::panic_fmt"));
        assert!(is_std_frame("             at /rustc/59807616e1fa/library/core/src/panicking.rs:80:14"));
        assert!(is_std_frame("   7: <fn() -> core::result::Result<(), E> as core::ops::FnOnce<()>>::call_once"));
        assert!(!is_std_frame("   4: shop::tests::price_is_in_cents"));
        assert!(!is_std_frame("             at ./src/lib.rs:34:9"));
    }

    #[test]
    fn lines_of_nextest_have_the_name_behind_time_and_count() {
        let table = [
            ("        FAIL [   0.005s] (2/6) shop tests::a", Some(ReportLine::FailureStart("shop tests::a"))),
            ("  TRY 2 FAIL [   0.005s] shop tests::a", Some(ReportLine::FailureStart("shop tests::a"))),
            ("     SIGABRT [   0.005s] shop tests::a", Some(ReportLine::FailureStart("shop tests::a"))),
            ("     TIMEOUT [>  60.005s] shop tests::a", Some(ReportLine::FailureStart("shop tests::a"))),
            ("        PASS [   0.005s] shop tests::a", Some(ReportLine::Routine)),
            ("     Summary [   0.036s] 6 tests run: 2 passed, 4 failed, 0 skipped", Some(ReportLine::FailureEnd)),
            ("        FAIL something [else] here", None),
        ];
        for (line, sign) in table {
            assert_eq!(read_nextest(line), sign, "{line}");
        }
    }
}
