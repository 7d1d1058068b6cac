//! Reports of Python tools: pytest, unittest, ruff, and exceptions outside of tests.

use super::{LineContinuation, ReportLine, ReportParser, until_blank};

/// pytest, with and without `-v`.
pub(super) const PYTEST: ReportParser = ReportParser::tests("pytest", read_pytest);

/// The standard library's unittest.
pub(super) const UNITTEST: ReportParser = ReportParser {
    is_proof: |line| line.starts_with("Traceback (most recent call last)"),
    is_noise: |line| line.len() >= 20 && line.bytes().all(|byte| byte == b'-'),
    ..ReportParser::tests("unittest", read_unittest)
};

/// An exception that ended a program.
pub(super) const TRACEBACK: ReportParser = ReportParser {
    continuation: |line| {
        if line.starts_with([' ', '\t']) { LineContinuation::Continues } else { LineContinuation::Last }
    },
    ..ReportParser::diagnostics("traceback", read_traceback)
};

/// ruff, in its long form.
pub(super) const RUFF: ReportParser = ReportParser {
    continuation: until_blank,
    is_proof: |line| line.trim_start().starts_with("--> "),
    ..ReportParser::diagnostics("ruff", |line| {
        is_rule_code(line.split(' ').next()?).then_some(ReportLine::FailureStart(line))
    })
};

fn read_pytest(line: &str) -> Option<ReportLine<'_>> {
    if line.starts_with('_') {
        return section_title(line).map(ReportLine::FailureStart);
    }
    if line.starts_with("=====") && line.ends_with('=') {
        return Some(ReportLine::FailureEnd);
    }
    for word in ["FAILED ", "ERROR ", "SUBFAILED"] {
        if let Some(rest) = line.strip_prefix(word) {
            let name = rest.split(" - ").next()?;
            return name.contains(".py").then_some(ReportLine::FailureSummary(name));
        }
    }
    let line = line.strip_suffix("%]")?;
    let line = line.rsplit_once('[').map(|(line, _)| line.trim_end())?;
    let (name, end) = line.rsplit_once(' ').filter(|(name, _)| name.contains("::"))?;
    match end {
        "PASSED" | "SKIPPED" | "XFAIL" => Some(ReportLine::Routine),
        "FAILED" | "ERROR" => Some(ReportLine::FailureName(name)),
        _ => None,
    }
}

/// The title between two rows of underscores.
fn section_title(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('_').strip_prefix(' ')?;
    let title = title.trim_end_matches('_').strip_suffix(' ')?;
    (line.ends_with('_') && !title.starts_with('_') && !title.is_empty()).then_some(title)
}

fn read_unittest(line: &str) -> Option<ReportLine<'_>> {
    if line.starts_with("=====") || line.starts_with("Ran ") {
        return Some(ReportLine::FailureEnd);
    }
    for word in ["FAIL: ", "ERROR: "] {
        if let Some(name) = line.strip_prefix(word) {
            return name.contains(" (").then_some(ReportLine::FailureStart(name));
        }
    }
    let (before, end) = line.rsplit_once(' ')?;
    let name = before.strip_suffix(" ...").filter(|name| name.contains(" ("))?;
    match end {
        "ok" => Some(ReportLine::Routine),
        "FAIL" | "ERROR" => Some(ReportLine::FailureName(name.trim_start())),
        _ => None,
    }
}

fn read_traceback(line: &str) -> Option<ReportLine<'_>> {
    line.starts_with("Traceback (most recent call last)").then_some(ReportLine::FailureStart(line))
}

/// Whether a word is the code of a rule, such as `F401` or `PLR0913`.
pub(super) fn is_rule_code(word: &str) -> bool {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let letters = word.len() - digits.len();
    (1..=5).contains(&letters) && (3..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_of_pytest_are_told_from_its_rules() {
        assert_eq!(
            read_pytest("_______ test_price[1.00-100] _______"),
            Some(ReportLine::FailureStart("test_price[1.00-100]"))
        );
        assert_eq!(
            read_pytest("_ test_of_a_very_long_name _"),
            Some(ReportLine::FailureStart("test_of_a_very_long_name"))
        );
        assert_eq!(read_pytest("_ _ _ _ _ _ _ _ _"), None);
        assert_eq!(read_pytest("__init__"), None);
    }

    #[test]
    fn codes_of_rules_are_told_from_words() {
        assert!(is_rule_code("F401") && is_rule_code("PLR0913"));
        assert!(!is_rule_code("HTTP2") && !is_rule_code("error") && !is_rule_code("E1") && !is_rule_code("A12345"));
    }
}
