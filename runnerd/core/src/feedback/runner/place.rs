//! Reports that begin with a place in a file: C compilers, mypy, go build and vet, tsc, and ruff's short form.

use super::python::is_code;
use super::{Runner, Sign};

/// Compilers that write `file:line:column: error: …`.
pub(super) const COMPILER: Runner = Runner::diagnostics("compiler", |line| {
    let (_, said) = place(line)?;
    let is_error = ["error: ", "fatal error: ", "Error: "].iter().any(|word| said.starts_with(word));
    is_error.then_some(Sign::Begins(line))
});

/// mypy.
pub(super) const MYPY: Runner = Runner::diagnostics("mypy", |line| {
    let (file, said) = place(line)?;
    (is_in(file, "py") && said.starts_with("error: ")).then_some(Sign::Begins(line))
});

/// go build, go vet.
pub(super) const GO: Runner = Runner::diagnostics("go", |line| {
    let (file, _) = place(line)?;
    is_in(file, "go").then_some(Sign::Begins(line))
});

/// ruff and flake8, a line per finding.
pub(super) const RUFF_CONCISE: Runner = Runner::diagnostics("ruff", |line| {
    let (file, said) = place(line)?;
    (is_in(file, "py") && is_code(said.split(' ').next()?)).then_some(Sign::Begins(line))
});

/// tsc, for people and for programs.
pub(super) const TSC: Runner = Runner::diagnostics("tsc", |line| {
    let (before, rest) = line.split_once(':').filter(|(before, _)| !before.starts_with(' '))?;
    let is_plain = before.ends_with(')') && rest.starts_with(" error TS");
    let is_pretty = after_number(rest)
        .is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(" - error TS"));
    (is_plain || is_pretty).then_some(Sign::Begins(line))
});

/// File and text of a line such as `main.c:4:12: error: …`, the column being optional.
fn place(line: &str) -> Option<(&str, &str)> {
    let (file, rest) = line.split_once(':')?;
    if file.is_empty() || file.starts_with(' ') || file.contains(' ') || !file.contains('.') {
        return None;
    }
    let rest = after_number(rest)?;
    Some((file, after_number(rest).unwrap_or(rest).trim_start()))
}

fn is_in(file: &str, language: &str) -> bool {
    file.rsplit_once('.').is_some_and(|(_, extension)| extension == language)
}

fn after_number(text: &str) -> Option<&str> {
    let (number, rest) = text.split_once(':')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_from_times_and_addresses() {
        assert_eq!(place("main.c:4:12: error: x"), Some(("main.c", "error: x")));
        assert_eq!(place("shop.py:9: error: x"), Some(("shop.py", "error: x")));
        assert_eq!(place("12:30:01 error: x"), None);
        assert_eq!(place("note: see a.c:3:4: x"), None);
    }
}
