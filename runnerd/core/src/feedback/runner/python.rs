//! Reports of Python's tools: pytest, unittest, ruff, and exceptions outside of tests.

use super::{Next, Runner, Sign, until_blank};

/// pytest, with and without `-v`.
pub(super) const PYTEST: Runner = Runner::tests("pytest", read_pytest);

/// The standard library's unittest.
pub(super) const UNITTEST: Runner = Runner {
    proves: |line| line.starts_with("Traceback (most recent call last)"),
    is_noise: |line| line.len() >= 20 && line.bytes().all(|byte| byte == b'-'),
    ..Runner::tests("unittest", read_unittest)
};

/// An exception that ended a program.
pub(super) const TRACEBACK: Runner = Runner {
    next: |line| if line.starts_with([' ', '\t']) { Next::Continues } else { Next::Last },
    ..Runner::diagnostics("traceback", read_traceback)
};

/// ruff, in its long form.
pub(super) const RUFF: Runner = Runner {
    next: until_blank,
    proves: |line| line.trim_start().starts_with("--> "),
    ..Runner::diagnostics("ruff", |line| is_code(line.split(' ').next()?).then_some(Sign::Begins(line)))
};

fn read_pytest(line: &str) -> Option<Sign<'_>> {
    if line.starts_with('_') {
        return title(line).map(Sign::Begins);
    }
    if line.starts_with("=====") && line.ends_with('=') {
        return Some(Sign::Ends);
    }
    for word in ["FAILED ", "ERROR ", "SUBFAILED"] {
        if let Some(rest) = line.strip_prefix(word) {
            let name = rest.split(" - ").next()?;
            return name.contains(".py").then_some(Sign::Sums(name));
        }
    }
    let line = line.strip_suffix("%]")?;
    let line = line.rsplit_once('[').map(|(line, _)| line.trim_end())?;
    let (name, end) = line.rsplit_once(' ').filter(|(name, _)| name.contains("::"))?;
    match end {
        "PASSED" | "SKIPPED" | "XFAIL" => Some(Sign::Routine),
        "FAILED" | "ERROR" => Some(Sign::Names(name)),
        _ => None,
    }
}

/// The title between two rows of underscores.
fn title(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('_').strip_prefix(' ')?;
    let title = title.trim_end_matches('_').strip_suffix(' ')?;
    (line.ends_with('_') && !title.starts_with('_') && !title.is_empty()).then_some(title)
}

fn read_unittest(line: &str) -> Option<Sign<'_>> {
    if line.starts_with("=====") || line.starts_with("Ran ") {
        return Some(Sign::Ends);
    }
    for word in ["FAIL: ", "ERROR: "] {
        if let Some(name) = line.strip_prefix(word) {
            return name.contains(" (").then_some(Sign::Begins(name));
        }
    }
    let (before, end) = line.rsplit_once(' ')?;
    let name = before.strip_suffix(" ...").filter(|name| name.contains(" ("))?;
    match end {
        "ok" => Some(Sign::Routine),
        "FAIL" | "ERROR" => Some(Sign::Names(name.trim_start())),
        _ => None,
    }
}

fn read_traceback(line: &str) -> Option<Sign<'_>> {
    line.starts_with("Traceback (most recent call last)").then_some(Sign::Begins(line))
}

/// Whether a word is the code of a rule, such as `F401` or `PLR0913`.
pub(super) fn is_code(word: &str) -> bool {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let letters = word.len() - digits.len();
    (1..=5).contains(&letters) && (3..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_of_pytest_are_told_from_its_rules() {
        assert_eq!(read_pytest("_______ test_price[1.00-100] _______"), Some(Sign::Begins("test_price[1.00-100]")));
        assert_eq!(read_pytest("_ test_of_a_very_long_name _"), Some(Sign::Begins("test_of_a_very_long_name")));
        assert_eq!(read_pytest("_ _ _ _ _ _ _ _ _"), None);
        assert_eq!(read_pytest("__init__"), None);
    }

    #[test]
    fn codes_of_rules_are_told_from_words() {
        assert!(is_code("F401") && is_code("PLR0913"));
        assert!(!is_code("HTTP2") && !is_code("error") && !is_code("E1") && !is_code("A12345"));
    }
}
