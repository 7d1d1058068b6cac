//! How the end of a session is classified: `signatures.toml`, parsed strictly and once; the first matching line
//! applies.
//!
//! The consequences of a class are rules of the core; an unknown failure has no class, and counts as a fault.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use jiff::Timestamp;
use protocol::words::FailureClass;
use runner_config::ExecutorKind;
use runner_core::feedback::clip_output;
use runner_core::iteration::session_failure::{ClassifiedFailure, is_transient};
use runner_core::text::reset_time::{self, Clock};
use serde::Deserialize;

use super::embedded_error;
use super::evidence::{EndEvidence, EndSignal};

/// The format version of the table.
const VERSION: u32 = 1;
/// Size limit in bytes of an agent's description of a failure.
const MAX_WHY: usize = 500;
/// The names that programs give to an HTTP status.
const HTTP_STATUS: [&str; 2] = ["http_status", "api_error_status"];

static TABLE: LazyLock<SignatureTable> =
    LazyLock::new(|| toml::from_str(include_str!("signatures.toml")).expect("BUG: the table of signatures is wrong"));

/// A classified failure, and the line that matched, if one did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownFailure {
    pub(super) failure: ClassifiedFailure,
    pub(super) signature: Option<String>,
}

/// Classifies a failed session by its evidence; `None` if no line matches.
pub(super) fn classify(kind: ExecutorKind, evidence: &EndEvidence, clock: &Clock<'_>) -> Option<KnownFailure> {
    let (signature, signal) = TABLE.first_match(kind, evidence)?;
    let class = signature.class;
    // What any program writes to its standard error may say much: it can make a run wait, but not end it.
    if kind == ExecutorKind::Command && !is_transient(class) {
        return None;
    }
    let message = evidence.first_message().map(|message| embedded_error::find_error_text(&message).unwrap_or(message));
    let why = message.unwrap_or_else(|| format!("{}: {}", signal.field, signal.value));
    let failure = ClassifiedFailure {
        class,
        why: clip_output(&join_lines(&why), MAX_WHY),
        until: stated_end(class, evidence, clock),
        fix: TABLE.fixes.get(&kind).and_then(|fixes| fixes.get(&class)).cloned(),
    };
    Some(KnownFailure { failure, signature: Some(signature.to_string()) })
}

/// Returns when the service is expected back: the point in time that the program gives, else the one in its text.
fn stated_end(class: FailureClass, evidence: &EndEvidence, clock: &Clock<'_>) -> Option<Timestamp> {
    if !is_transient(class) {
        return None;
    }
    let stated = evidence.resets_at.filter(|time| *time > clock.now);
    stated.or_else(|| evidence.field_values("message").find_map(|message| reset_time::find_reset_time(message, clock)))
}

fn join_lines(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The parsed table of `signatures.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, try_from = "RawTable")]
struct SignatureTable {
    lines: Vec<FailureSignature>,
    fixes: BTreeMap<ExecutorKind, BTreeMap<FailureClass, String>>,
}

/// A line of the table: how a failure is recognized.
#[derive(Debug)]
struct FailureSignature {
    /// The program that shows it; `None` if it is a service's or the system's.
    backend: Option<ExecutorKind>,
    field: String,
    matcher: ValueMatcher,
    /// Text that a message must also contain, in normalized lower case.
    required_text: Option<String>,
    class: FailureClass,
    #[cfg_attr(not(test), expect(dead_code, reason = "for who keeps the table, and for its tests"))]
    sample: String,
}

/// How a value is compared; texts are in normalized lower case.
#[derive(Debug)]
enum ValueMatcher {
    Equals(String),
    StartsWith(String),
    Contains(String),
    Status(RangeInclusive<u16>),
}

impl SignatureTable {
    /// Returns the first line that matches, and the signal it matched.
    fn first_match(&self, kind: ExecutorKind, evidence: &EndEvidence) -> Option<(&FailureSignature, EndSignal)> {
        let signals: Vec<EndSignal> = evidence.signals.iter().cloned().chain(derived_signals(evidence)).collect();
        let messages: Vec<String> = evidence.field_values("message").map(normalize_text).collect();
        let lines = self.lines.iter().filter(|line| line.backend.is_none_or(|backend| backend == kind));
        for line in lines.filter(|line| line.matches_message(&messages)) {
            if let Some(signal) = signals.iter().find(|signal| line.matches_signal(signal)) {
                return Some((line, signal.clone()));
            }
        }
        None
    }
}

/// Returns the signals embedded in messages; a status is used only if no field has one.
fn derived_signals(evidence: &EndEvidence) -> impl Iterator<Item = EndSignal> {
    let has_status = evidence.signals.iter().any(|signal| HTTP_STATUS.contains(&signal.field));
    let embedded_signals = evidence.field_values("message").flat_map(embedded_error::find_signals);
    embedded_signals.filter(move |signal| !has_status || signal.field != "http_status")
}

impl FailureSignature {
    fn matches_message(&self, messages: &[String]) -> bool {
        self.required_text.as_ref().is_none_or(|text| messages.iter().any(|message| message.contains(text)))
    }

    fn matches_signal(&self, signal: &EndSignal) -> bool {
        let is_status = self.field == HTTP_STATUS[0] && HTTP_STATUS.contains(&signal.field);
        (is_status || self.field == signal.field) && self.matcher.matches_value(&signal.value)
    }
}

impl ValueMatcher {
    fn matches_value(&self, value: &str) -> bool {
        match self {
            Self::Equals(expected) => normalize_text(value) == *expected,
            Self::StartsWith(expected) => {
                normalize_text(value).lines().any(|line| line.trim_start().starts_with(expected))
            }
            Self::Contains(expected) => normalize_text(value).contains(expected),
            Self::Status(range) => value.trim().parse().is_ok_and(|status| range.contains(&status)),
        }
    }
}

/// Normalizes a text to lower case with straight apostrophes and ordinary spaces.
fn normalize_text(text: &str) -> String {
    let straight = |c: char| match c {
        '\u{2018}' | '\u{2019}' => '\'',
        '\n' => '\n',
        c if c.is_whitespace() => ' ',
        c => c,
    };
    text.trim().chars().map(straight).flat_map(char::to_lowercase).collect()
}

impl fmt::Display for FailureSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.backend.map_or("any", ExecutorKind::as_str), self.field)?;
        match &self.matcher {
            ValueMatcher::Equals(text) => write!(f, "equals `{text}`")?,
            ValueMatcher::StartsWith(text) => write!(f, "starts with `{text}`")?,
            ValueMatcher::Contains(text) => write!(f, "contains `{text}`")?,
            ValueMatcher::Status(range) if range.start() == range.end() => write!(f, "is {}", range.start())?,
            ValueMatcher::Status(range) => write!(f, "is {} to {}", range.start(), range.end())?,
        }
        self.required_text.as_ref().map_or(Ok(()), |phrase| write!(f, ", and it says `{phrase}`"))
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
    backend: RawBackend,
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

/// The owner of a line, as it is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum RawBackend {
    Program(ExecutorKind),
    Any(AnyBackend),
}

#[derive(Deserialize)]
enum AnyBackend {
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
enum SignatureError {
    #[error("version {0} of the table of signatures is not known")]
    Version(u32),
    #[error("signature with sample `{0}`: there must be one of equals, starts_with, contains, status")]
    Matcher(String),
    #[error("signature with sample `{0}`: a text or a version is empty")]
    Empty(String),
}

impl TryFrom<RawTable> for SignatureTable {
    type Error = SignatureError;

    fn try_from(raw: RawTable) -> Result<Self, SignatureError> {
        if raw.version != VERSION {
            return Err(SignatureError::Version(raw.version));
        }
        let lines = raw.signatures.into_iter().map(FailureSignature::try_from).collect::<Result<_, _>>()?;
        Ok(Self { lines, fixes: raw.fixes })
    }
}

impl TryFrom<RawLine> for FailureSignature {
    type Error = SignatureError;

    fn try_from(raw: RawLine) -> Result<Self, SignatureError> {
        let texts = [&raw.equals, &raw.starts_with, &raw.contains, &raw.said];
        if texts.into_iter().flatten().chain([&raw.since, &raw.field, &raw.sample]).any(|text| text.trim().is_empty()) {
            return Err(SignatureError::Empty(raw.sample));
        }
        let matchers = [
            raw.equals.as_deref().map(|text| ValueMatcher::Equals(normalize_text(text))),
            raw.starts_with.as_deref().map(|text| ValueMatcher::StartsWith(normalize_text(text))),
            raw.contains.as_deref().map(|text| ValueMatcher::Contains(normalize_text(text))),
            raw.status.map(|status| match status {
                RawStatus::One(status) => ValueMatcher::Status(status..=status),
                RawStatus::Range([first, last]) => ValueMatcher::Status(first..=last),
            }),
        ];
        let mut matchers = matchers.into_iter().flatten();
        let (Some(matcher), None) = (matchers.next(), matchers.next()) else {
            return Err(SignatureError::Matcher(raw.sample));
        };
        let backend = match raw.backend {
            RawBackend::Program(kind) => Some(kind),
            RawBackend::Any(AnyBackend::Any) => None,
        };
        let required_text = raw.said.as_deref().map(normalize_text);
        Ok(Self { backend, field: raw.field, matcher, required_text, class: raw.class, sample: raw.sample })
    }
}
