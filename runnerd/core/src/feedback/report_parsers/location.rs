//! Reports that begin with a place in a file: C compilers, mypy, go build and vet, tsc, and ruff's short form.

use super::python::is_rule_code;
use super::{ReportLine, ReportParser};

/// Compilers that write `file:line:column: error: …`.
pub(super) const COMPILER: ReportParser = ReportParser::diagnostics("compiler", |line| {
    let (_, message) = split_location(line)?;
    let is_error = ["error: ", "fatal error: ", "Error: "].iter().any(|word| message.starts_with(word));
    is_error.then_some(ReportLine::FailureStart(line))
});

/// mypy.
pub(super) const MYPY: ReportParser = ReportParser::diagnostics("mypy", |line| {
    let (file, message) = split_location(line)?;
    (is_file_of(file, "py") && message.starts_with("error: ")).then_some(ReportLine::FailureStart(line))
});

/// go build, go vet.
pub(super) const GO: ReportParser = ReportParser::diagnostics("go", |line| {
    let (file, _) = split_location(line)?;
    is_file_of(file, "go").then_some(ReportLine::FailureStart(line))
});

/// ruff and flake8, a line per finding.
pub(super) const RUFF_CONCISE: ReportParser = ReportParser::diagnostics("ruff", |line| {
    let (file, message) = split_location(line)?;
    (is_file_of(file, "py") && is_rule_code(message.split(' ').next()?)).then_some(ReportLine::FailureStart(line))
});

/// tsc, for people and for programs.
pub(super) const TSC: ReportParser = ReportParser::diagnostics("tsc", |line| {
    let (before, rest) = line.split_once(':').filter(|(before, _)| !before.starts_with(' '))?;
    let is_plain = before.ends_with(')') && rest.starts_with(" error TS");
    let is_pretty = skip_number(rest)
        .is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(" - error TS"));
    (is_plain || is_pretty).then_some(ReportLine::FailureStart(line))
});

/// File and text of a line such as `main.c:4:12: error: …`, the column being optional.
fn split_location(line: &str) -> Option<(&str, &str)> {
    let (file, rest) = line.split_once(':')?;
    if file.is_empty() || file.starts_with(' ') || file.contains(' ') || !file.contains('.') {
        return None;
    }
    let rest = skip_number(rest)?;
    Some((file, skip_number(rest).unwrap_or(rest).trim_start()))
}

fn is_file_of(file: &str, language: &str) -> bool {
    file.rsplit_once('.').is_some_and(|(_, extension)| extension == language)
}

fn skip_number(text: &str) -> Option<&str> {
    let (number, rest) = text.split_once(':')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_from_times_and_addresses() {
        assert_eq!(split_location("main.c:4:12: error: x"), Some(("main.c", "error: x")));
        assert_eq!(split_location("shop.py:9: error: x"), Some(("shop.py", "error: x")));
        assert_eq!(split_location("12:30:01 error: x"), None);
        assert_eq!(split_location("note: see a.c:3:4: x"), None);
    }
}
