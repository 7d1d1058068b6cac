//! The runners of tests and the compilers whose reports are recognised: what a line means to each of them.
//!
//! A recogniser is a row of functions that look at one line. What a row does not know stays in the rest of the
//! output: being recognised puts a failure first, and being unknown loses nothing.

mod go;
mod javascript;
mod location;
mod python;
mod rust;
mod wrapper;

/// What a line means to a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportLine<'a> {
    /// A failure of this name begins; what follows belongs to it.
    FailureStart(&'a str),
    /// This failed; the line says no more.
    FailureName(&'a str),
    /// This failed, and the line says why in brief.
    FailureSummary(&'a str),
    /// A step that went well: such lines in a row say little.
    Routine,
    /// Nothing more belongs to the failure.
    FailureEnd,
}

/// Whether a line belongs to the failure that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineContinuation {
    /// It does, and more may come.
    Continues,
    /// It does, as the last one.
    Last,
    /// It does not.
    Over,
}

/// What kind of report a runner writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportLevel {
    /// Of tests: what a test printed may stand in it, whatever that looks like.
    Tests,
    /// Of places in the code, each complete in itself.
    Diagnostics,
    /// Of a command that it ran, without saying what went wrong there.
    Wrapper,
}

/// A program whose reports are recognised.
#[derive(Debug)]
pub(super) struct ReportParser {
    /// Its name.
    pub(super) name: &'static str,
    /// What it reports.
    pub(super) level: ReportLevel,
    /// What a line means to it.
    pub(super) parse: fn(&str) -> Option<ReportLine<'_>>,
    /// Whether a line belongs to its failure that is open.
    pub(super) continuation: fn(&str) -> LineContinuation,
    /// Whether a line shows that what has begun is a failure; one such line is needed.
    pub(super) is_proof: fn(&str) -> bool,
    /// Whether a line of a failure tells nothing about it.
    pub(super) is_noise: fn(&str) -> bool,
}

impl ReportParser {
    /// A runner of tests: a failure goes on until another sign, and needs no proof.
    const fn tests(name: &'static str, read: fn(&str) -> Option<ReportLine<'_>>) -> Self {
        Self { name, level: ReportLevel::Tests, parse: read, continuation: |_| LineContinuation::Continues, is_proof: |_| true, is_noise: |_| false }
    }

    /// A program that reports places, each with the indented lines below it.
    const fn diagnostics(name: &'static str, read: fn(&str) -> Option<ReportLine<'_>>) -> Self {
        Self { level: ReportLevel::Diagnostics, continuation: while_indented, ..Self::tests(name, read) }
    }
}

/// All of them; the first that knows a line decides what it means.
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

/// Returns who knows the line, and what it means, in a failure of the level or outside of all.
pub(super) fn parse_line(line: &str, open: Option<ReportLevel>) -> Option<(&'static ReportParser, ReportLine<'_>)> {
    for runner in PARSERS {
        let is_heard = open != Some(ReportLevel::Tests) || runner.level != ReportLevel::Diagnostics;
        if is_heard && let Some(sign) = (runner.parse)(line) {
            return Some((runner, sign));
        }
    }
    None
}

/// Indented lines continue what is open.
fn while_indented(line: &str) -> LineContinuation {
    if line.starts_with([' ', '\t']) { LineContinuation::Continues } else { LineContinuation::Over }
}

/// What is open goes on to a blank line.
fn until_blank(line: &str) -> LineContinuation {
    if line.is_empty() { LineContinuation::Last } else { LineContinuation::Continues }
}
