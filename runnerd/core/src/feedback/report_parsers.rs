//! The test runners and compilers whose reports are recognized, and what a line means to each of them.
//!
//! A recognizer is a row of functions that examine one line. What no row recognizes stays in the rest of the output:
//! recognition only puts a failure first, so an unknown format loses nothing.

mod go;
mod javascript;
mod location;
mod python;
mod rust;
mod wrapper;

pub(super) use javascript::is_script;
pub(super) use rust::read_nextest_status;

/// Meaning of a line to a test runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportLine<'a> {
    /// A failure of this name begins; the following lines belong to it.
    FailureStart(&'a str),
    /// This failed; the line says no more.
    FailureName(&'a str),
    /// This failed, and the line briefly says why.
    FailureSummary(&'a str),
    /// A step that succeeded: runs of such lines carry little information.
    Routine,
    /// The failure ends here.
    FailureEnd,
}

/// Whether a line belongs to the open failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineContinuation {
    /// It belongs to the failure, and more may follow.
    Continues,
    /// It is the last line of the failure.
    Last,
    /// It does not belong to the failure.
    Over,
}

/// Kind of report that a program writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportLevel {
    /// About tests: a test's own output may be part of it, whatever that looks like.
    Tests,
    /// About places in the code, each complete in itself.
    Diagnostics,
    /// About a command that it ran, without saying what went wrong there.
    Wrapper,
}

/// A program whose reports are recognised.
#[derive(Debug)]
pub(super) struct ReportParser {
    /// Name of the program.
    pub(super) name: &'static str,
    /// Kind of its reports.
    pub(super) level: ReportLevel,
    /// Returns what a line means to it, if anything.
    pub(super) parse: fn(&str) -> Option<ReportLine<'_>>,
    /// Returns whether a line belongs to its open failure.
    pub(super) continuation: fn(&str) -> LineContinuation,
    /// Whether a line proves that what has begun is a failure; one such line is required.
    pub(super) is_proof: fn(&str) -> bool,
    /// Whether a line of a failure carries no information about it.
    pub(super) is_noise: fn(&str) -> bool,
}

impl ReportParser {
    /// A test runner: a failure continues until another sign, and needs no proof.
    const fn tests(name: &'static str, read: fn(&str) -> Option<ReportLine<'_>>) -> Self {
        Self {
            name,
            level: ReportLevel::Tests,
            parse: read,
            continuation: |_| LineContinuation::Continues,
            is_proof: |_| true,
            is_noise: |_| false,
        }
    }

    /// A program that reports places, each followed by indented lines.
    const fn diagnostics(name: &'static str, read: fn(&str) -> Option<ReportLine<'_>>) -> Self {
        Self { level: ReportLevel::Diagnostics, continuation: while_indented, ..Self::tests(name, read) }
    }
}

/// All recognizers; the first one that recognizes a line determines its meaning.
const PARSERS: &[&ReportParser] = &[
    &wrapper::JUST,
    &wrapper::MAKE,
    &rust::NEXTEST,
    &rust::CARGO_TEST,
    &rust::RUSTC,
    &rust::PANIC,
    &python::PYTEST,
    &python::UNITTEST,
    &python::TRACEBACK,
    &javascript::JEST,
    &javascript::VITEST,
    &javascript::ESLINT,
    &go::GO_TEST,
    &python::RUFF,
    &location::TSC,
    &location::GO,
    &location::MYPY,
    &location::RUFF_CONCISE,
    &location::COMPILER,
];

/// Returns the recognizer of a line and the line's meaning, inside a failure of the given level or outside of any.
pub(super) fn parse_line(line: &str, open: Option<ReportLevel>) -> Option<(&'static ReportParser, ReportLine<'_>)> {
    for runner in PARSERS {
        let is_heard = open != Some(ReportLevel::Tests) || runner.level != ReportLevel::Diagnostics;
        if is_heard && let Some(sign) = (runner.parse)(line) {
            return Some((runner, sign));
        }
    }
    None
}

/// Indented lines belong to the open failure.
fn while_indented(line: &str) -> LineContinuation {
    if line.starts_with([' ', '\t']) { LineContinuation::Continues } else { LineContinuation::Over }
}

/// The open failure continues up to a blank line.
fn until_blank(line: &str) -> LineContinuation {
    if line.is_empty() { LineContinuation::Last } else { LineContinuation::Continues }
}
