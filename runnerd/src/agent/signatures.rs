//! What the end of a session is known by: `signatures.toml`, read strictly and once, and the first line that fits.
//!
//! What follows from a class is a rule of the core; what nobody knows yet is no class, and a fault.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use jiff::Timestamp;
use protocol::words::FailureClass;
use runner_core::failure::Failure;
use runner_core::feedback::clip;
use runner_core::reset_time::{self, Clock};
use serde::Deserialize;

use super::embedded;
use super::evidence::{Evidence, Signal};
use crate::config::ExecutorKind;

/// The version of the table's form.
const VERSION: u32 = 1;
/// Most bytes of what an agent says of a failure.
const MAX_WHY: usize = 500;
/// The names that programs have for a status of HTTP.
const HTTP_STATUS: [&str; 2] = ["http_status", "api_error_status"];

static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("signatures.toml")).expect("BUG: the table of signatures is wrong"));

/// A failure that is known, and the line by which it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownFailure {
    pub(super) failure: Failure,
    pub(super) signature: String,
}

/// Returns what a failed session's evidence is known to mean; none where no line fits.
pub(super) fn classify(kind: ExecutorKind, evidence: &Evidence, clock: &Clock<'_>) -> Option<KnownFailure> {
    let (line, found) = TABLE.first(kind, evidence)?;
    let class = line.class;
    let said = evidence.message().map(|message| embedded::text(message).unwrap_or_else(|| message.to_owned()));
    let why = said.unwrap_or_else(|| format!("{}: {}", found.field, found.value));
    let failure = Failure {
        class,
        why: clip(&one_line(&why), MAX_WHY),
        until: until(class, evidence, clock),
        fix: TABLE.fixes.get(&kind).and_then(|fixes| fixes.get(&class)).cloned(),
    };
    Some(KnownFailure { failure, signature: line.to_string() })
}

/// Returns when the service is expected back: the point in time that the program gives, else the one in its words.
fn until(class: FailureClass, evidence: &Evidence, clock: &Clock<'_>) -> Option<Timestamp> {
    if !runner_core::failure::passes_by_itself(class) {
        return None;
    }
    let stated = evidence.resets_at.filter(|time| *time > clock.now);
    stated.or_else(|| evidence.of("message").find_map(|message| reset_time::find(message, clock)))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, try_from = "RawTable")]
struct Table {
    lines: Vec<Signature>,
    fixes: BTreeMap<ExecutorKind, BTreeMap<FailureClass, String>>,
}

/// A signature.
#[derive(Debug)]
struct Signature {
    /// The program that shows it; none where it is of a service or a system.
    backend: Option<ExecutorKind>,
    field: String,
    matcher: Matcher,
    /// What a message must contain besides, in plain lower case.
    said: Option<String>,
    class: FailureClass,
    #[cfg_attr(not(test), expect(dead_code, reason = "for who keeps the table, and for its tests"))]
    sample: String,
}

/// How a value is compared; texts are in plain lower case.
#[derive(Debug)]
enum Matcher {
    Equals(String),
    StartsWith(String),
    Contains(String),
    Status(RangeInclusive<u16>),
}

impl Table {
    /// Returns the first line that fits, and by what.
    fn first(&self, kind: ExecutorKind, evidence: &Evidence) -> Option<(&Signature, Signal)> {
        let signals: Vec<Signal> = evidence.signals.iter().cloned().chain(derived(evidence)).collect();
        let messages: Vec<String> = evidence.of("message").map(plain).collect();
        let lines = self.lines.iter().filter(|line| line.backend.is_none_or(|backend| backend == kind));
        for line in lines.filter(|line| line.is_said(&messages)) {
            if let Some(signal) = signals.iter().find(|signal| line.fits(signal)) {
                return Some((line, signal.clone()));
            }
        }
        None
    }
}

/// Returns what stands in messages for programs; a status is taken from there only where no field gives one.
fn derived(evidence: &Evidence) -> impl Iterator<Item = Signal> {
    let has_status = evidence.signals.iter().any(|signal| HTTP_STATUS.contains(&signal.field));
    let found = evidence.of("message").flat_map(embedded::signals);
    found.filter(move |signal| !has_status || signal.field != "http_status")
}

impl Signature {
    fn is_said(&self, messages: &[String]) -> bool {
        self.said.as_ref().is_none_or(|said| messages.iter().any(|message| message.contains(said)))
    }

    fn fits(&self, signal: &Signal) -> bool {
        let is_status = self.field == HTTP_STATUS[0] && HTTP_STATUS.contains(&signal.field);
        (is_status || self.field == signal.field) && self.matcher.fits(&signal.value)
    }
}

impl Matcher {
    fn fits(&self, value: &str) -> bool {
        match self {
            Self::Equals(wanted) => plain(value) == *wanted,
            Self::StartsWith(wanted) => plain(value).lines().any(|line| line.trim_start().starts_with(wanted)),
            Self::Contains(wanted) => plain(value).contains(wanted),
            Self::Status(range) => value.trim().parse().is_ok_and(|status| range.contains(&status)),
        }
    }
}

/// Returns a text in lower case with straight apostrophes and ordinary spaces.
fn plain(text: &str) -> String {
    let straight = |c: char| match c {
        '\u{2018}' | '\u{2019}' => '\'',
        '\n' => '\n',
        c if c.is_whitespace() => ' ',
        c => c,
    };
    text.trim().chars().map(straight).flat_map(char::to_lowercase).collect()
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.backend.map_or("any", ExecutorKind::as_str), self.field)?;
        match &self.matcher {
            Matcher::Equals(text) => write!(f, "equals `{text}`")?,
            Matcher::StartsWith(text) => write!(f, "starts with `{text}`")?,
            Matcher::Contains(text) => write!(f, "contains `{text}`")?,
            Matcher::Status(range) if range.start() == range.end() => write!(f, "is {}", range.start())?,
            Matcher::Status(range) => write!(f, "is {} to {}", range.start(), range.end())?,
        }
        self.said.as_ref().map_or(Ok(()), |said| write!(f, ", and it says `{said}`"))
    }
}

/// The table as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    version: u32,
    signatures: Vec<RawLine>,
    fixes: BTreeMap<ExecutorKind, BTreeMap<FailureClass, String>>,
}

/// A line as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLine {
    backend: Whose,
    field: String,
    equals: Option<String>,
    starts_with: Option<String>,
    contains: Option<String>,
    status: Option<RawStatus>,
    said: Option<String>,
    class: FailureClass,
    since: String,
    sample: String,
}

/// Whose a line is, as it is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Whose {
    Program(ExecutorKind),
    Any(Any),
}

#[derive(Deserialize)]
enum Any {
    #[serde(rename = "any")]
    Any,
}

/// A status as it is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum RawStatus {
    One(u16),
    Range([u16; 2]),
}

/// What is wrong with the table.
#[derive(Debug, thiserror::Error)]
enum TableError {
    #[error("version {0} of the table of signatures is not known")]
    Version(u32),
    #[error("signature with sample `{0}`: there must be one of equals, starts_with, contains, status")]
    Matcher(String),
    #[error("signature with sample `{0}`: a text or a version is empty")]
    Empty(String),
}

impl TryFrom<RawTable> for Table {
    type Error = TableError;

    fn try_from(raw: RawTable) -> Result<Self, TableError> {
        if raw.version != VERSION {
            return Err(TableError::Version(raw.version));
        }
        let lines = raw.signatures.into_iter().map(Signature::try_from).collect::<Result<_, _>>()?;
        Ok(Self { lines, fixes: raw.fixes })
    }
}

impl TryFrom<RawLine> for Signature {
    type Error = TableError;

    fn try_from(raw: RawLine) -> Result<Self, TableError> {
        let texts = [&raw.equals, &raw.starts_with, &raw.contains, &raw.said];
        if texts.into_iter().flatten().chain([&raw.since, &raw.field, &raw.sample]).any(|text| text.trim().is_empty()) {
            return Err(TableError::Empty(raw.sample));
        }
        let matchers = [
            raw.equals.as_deref().map(|text| Matcher::Equals(plain(text))),
            raw.starts_with.as_deref().map(|text| Matcher::StartsWith(plain(text))),
            raw.contains.as_deref().map(|text| Matcher::Contains(plain(text))),
            raw.status.map(|status| match status {
                RawStatus::One(status) => Matcher::Status(status..=status),
                RawStatus::Range([first, last]) => Matcher::Status(first..=last),
            }),
        ];
        let mut matchers = matchers.into_iter().flatten();
        let (Some(matcher), None) = (matchers.next(), matchers.next()) else {
            return Err(TableError::Matcher(raw.sample));
        };
        let backend = match raw.backend {
            Whose::Program(kind) => Some(kind),
            Whose::Any(Any::Any) => None,
        };
        let said = raw.said.as_deref().map(plain);
        Ok(Self { backend, field: raw.field, matcher, said, class: raw.class, sample: raw.sample })
    }
}
