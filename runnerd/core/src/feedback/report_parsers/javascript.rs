//! Reports of JavaScript tools: jest, vitest, eslint.

use super::{LineContinuation, ReportLine, ReportParser};

/// jest.
pub(super) const JEST: ReportParser = ReportParser::tests("jest", read_jest);

/// vitest.
pub(super) const VITEST: ReportParser = ReportParser::tests("vitest", read_vitest);

/// eslint: a file, and below it a line per finding.
pub(super) const ESLINT: ReportParser = ReportParser {
    continuation: |line| {
        if finding_severity(line).is_some() { LineContinuation::Continues } else { LineContinuation::Over }
    },
    is_proof: |line| finding_severity(line) == Some("error"),
    ..ReportParser::diagnostics("eslint", read_eslint)
};

fn read_jest(line: &str) -> Option<ReportLine<'_>> {
    match line.strip_prefix("  ● ") {
        Some("Console") => return Some(ReportLine::FailureEnd),
        Some(name) => return Some(ReportLine::FailureStart(name)),
        None => {}
    }
    let ends = ["FAIL ", "Test Suites: ", "Summary of all failing tests"];
    if ends.iter().any(|end| line.starts_with(end)) {
        return Some(ReportLine::FailureEnd);
    }
    line.starts_with("PASS ").then_some(ReportLine::Routine)
}

fn read_vitest(line: &str) -> Option<ReportLine<'_>> {
    if let Some(name) = line.strip_prefix(" FAIL  ") {
        return Some(ReportLine::FailureStart(name));
    }
    if line.starts_with("⎯⎯⎯") || line.starts_with(" Test Files ") {
        return Some(ReportLine::FailureEnd);
    }
    let is_passed = line.starts_with(' ') && line.trim_start().starts_with(['✓', '✔']);
    is_passed.then_some(ReportLine::Routine)
}

fn read_eslint(line: &str) -> Option<ReportLine<'_>> {
    (is_script(line) && !line.starts_with(' ')).then_some(ReportLine::FailureStart(line))
}

/// Whether a text ends like the name of a script.
pub(in crate::feedback) fn is_script(text: &str) -> bool {
    const EXTENSIONS: &[&str] = &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte"];
    text.rsplit_once('.').is_some_and(|(_, extension)| EXTENSIONS.contains(&extension))
}

/// The severity of a finding in a line such as `  1:7  error  'a' is not used  no-unused-vars`.
fn finding_severity(line: &str) -> Option<&str> {
    let mut words = line.strip_prefix("  ")?.split_whitespace();
    let (row, column) = words.next()?.split_once(':')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    words.next().filter(|severity| is_number(row) && is_number(column) && matches!(*severity, "error" | "warning"))
}
