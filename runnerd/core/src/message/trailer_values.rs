//! The values of trailers: each type has exactly one spelling, and parses only that spelling.
//!
//! Which trailers a message has is decided in the parent module.

use std::fmt;
use std::str::FromStr;

use protocol::answer::SessionUsage;
use protocol::state::UsageTotal;
use protocol::test_record::{TestRecord, TestsChange};
use protocol::words::VerdictName;
use serde::{Deserialize, Serialize};

use super::name_list::NameList;
use super::{rules_version, summary};
use crate::guard::test_results::{TestDiff, diff_records};
use crate::text::digest::{Digest, is_lower_hex};
use crate::verdict::SessionRule;

/// Longest verdict with its detail, in bytes.
const VERDICT_LIMIT: usize = 400;
/// Longest name and version of an agent, in bytes.
const AGENT_LIMIT: usize = 200;
/// Longest signature, in characters: one by a 16,384-bit RSA key has 5,600.
const SIGNATURE_LIMIT: usize = 8 * 1024;
/// How every SSH signature begins: `SSHSIG`.
const SIGNATURE_MAGIC: &str = "U1NIU0lH";

const USAGE_FORM: MalformedValue = MalformedValue(
    "`in=… cached=… out=… cost_usd=…`, each a number or `unknown`, and where it is not one `sessions=…`",
);

/// A trailer value that is not in the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub struct MalformedValue(pub(super) &'static str);

impl MalformedValue {
    /// Names the expected form.
    pub(crate) const fn new(form: &'static str) -> Self {
        Self(form)
    }
}

/// Version of the runner that wrote the commit: `0.1.0 prompt=1 templates=0123456789ab rules=1`. Commits under other
/// rules are not parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerVersion {
    /// Version of the runner, one word.
    pub version: String,
    /// Number of the prompt format.
    pub prompt_format: u32,
    /// First 12 hexadecimal digits of the digest of the built-in templates.
    pub templates: String,
}

impl fmt::Display for RunnerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, prompt_format, templates } = self;
        write!(f, "{version} prompt={prompt_format} templates={templates} {}", rules_version::CURRENT)
    }
}

impl FromStr for RunnerVersion {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        const FORM: MalformedValue =
            MalformedValue("`<version> prompt=<number> templates=<12 hexadecimal digits> rules=1`");
        let mut words = text.split(' ');
        let version = words.next().filter(|word| !word.is_empty()).ok_or(FORM)?.to_owned();
        let prompt_format = strip_key(words.next(), "prompt=").and_then(|n| n.parse().ok()).ok_or(FORM)?;
        let templates = strip_key(words.next(), "templates=").filter(|hex| hex.len() == 12 && is_lower_hex(hex));
        let templates = templates.ok_or(FORM)?.to_owned();
        words.next().filter(|word| *word == rules_version::CURRENT).ok_or(FORM)?;
        words.next().map_or(Ok(Self { version, prompt_format, templates }), |_| Err(FORM))
    }
}

/// How an iteration ended: `<name>` or `<name>: <detail>`, on one line of at most 400 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictLine {
    /// The verdict.
    pub name: VerdictName,
    /// Rule, fault or reason, if there is one.
    pub detail: Option<String>,
}

impl VerdictLine {
    /// Returns the verdict with its detail in written form: clean, on one line, bounded.
    pub fn new(name: VerdictName, detail: Option<&str>) -> Self {
        let room = VERDICT_LIMIT - name.as_str().len() - 2;
        let detail = detail.map(|detail| summary::trailer_value(detail, room)).filter(|detail| !detail.is_empty());
        Self { name, detail }
    }

    /// Returns the rule that was broken, if the verdict is about one.
    pub(crate) fn broken_rule(&self) -> Option<SessionRule> {
        self.detail.as_deref().filter(|_| self.name == VerdictName::Broken).and_then(SessionRule::parse)
    }
}

impl fmt::Display for VerdictLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &Self::new(self.name, self.detail.as_deref()).detail {
            Some(detail) => write!(f, "{}: {detail}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

impl FromStr for VerdictLine {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let (name, detail) = text.split_once(": ").map_or((text, None), |(name, detail)| (name, Some(detail)));
        let name = name.parse().map_err(|_| MalformedValue("the name of a verdict"))?;
        Ok(Self { name, detail: detail.map(str::to_owned) })
    }
}

/// Attempts charged to the node after the iteration, of those it is allowed: `1/3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptCount {
    /// Attempts charged to the node.
    pub charged: u32,
    /// Attempts the node is allowed.
    pub allowed: u32,
}

impl fmt::Display for AttemptCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.charged, self.allowed)
    }
}

impl FromStr for AttemptCount {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let pair =
            text.split_once('/').and_then(|(charged, allowed)| Some((charged.parse().ok()?, allowed.parse().ok()?)));
        let (charged, allowed) = pair.ok_or(MalformedValue("`<charged>/<allowed>`"))?;
        Ok(Self { charged, allowed })
    }
}

/// Which agent ran: `<kind> <version>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStamp {
    /// Kind of the backend, one word.
    pub kind: String,
    /// Version as reported by the program.
    pub version: String,
}

impl AgentStamp {
    /// Returns the stamp in written form: clean, on one line, bounded; an empty version becomes `unknown`.
    pub fn new(kind: &str, version: &str) -> Self {
        let version = summary::trailer_value(version, AGENT_LIMIT - kind.len().min(AGENT_LIMIT));
        let version = if version.is_empty() { "unknown".to_owned() } else { version };
        Self { kind: kind.to_owned(), version }
    }
}

impl fmt::Display for AgentStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, Self::new(&self.kind, &self.version).version)
    }
}

impl FromStr for AgentStamp {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let (kind, version) = text.split_once(' ').ok_or(MalformedValue("`<kind> <version>`"))?;
        Ok(Self { kind: kind.to_owned(), version: version.to_owned() })
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    /// The process exited with this code.
    Exit(i32),
    /// The process was killed by this signal.
    Signal(i32),
}

/// A run of the guard: `exit=0 sha256:…` or `signal=9 sha256:…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardRun {
    /// How the process ended.
    pub end: ProcessEnd,
    /// Digest of its output, as recorded.
    pub output: Digest,
}

impl fmt::Display for GuardRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end {
            ProcessEnd::Exit(code) => write!(f, "exit={code} {}", self.output),
            ProcessEnd::Signal(number) => write!(f, "signal={number} {}", self.output),
        }
    }
}

impl FromStr for GuardRun {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        const FORM: MalformedValue = MalformedValue("`exit=<code> sha256:<hex>` or `signal=<number> sha256:<hex>`");
        let (end, output) = text.split_once(' ').ok_or(FORM)?;
        let (how, number) = end.split_once('=').ok_or(FORM)?;
        let number = number.parse().map_err(|_| FORM)?;
        let end = match how {
            "exit" => ProcessEnd::Exit(number),
            "signal" => ProcessEnd::Signal(number),
            _ => return Err(FORM),
        };
        Ok(Self { end, output: output.parse().map_err(|_| FORM)? })
    }
}

/// A review decision: `accept prompt=sha256:… output=sha256:…`; without digests if a person decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewRun {
    /// Whether the node was accepted.
    pub accepted: bool,
    /// Digest of the reviewer's prompt.
    pub prompt: Option<Digest>,
    /// Digest of the reviewer's answer.
    pub output: Option<Digest>,
}

impl fmt::Display for ReviewRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.accepted { "accept" } else { "reject" })?;
        self.prompt.iter().try_for_each(|digest| write!(f, " prompt={digest}"))?;
        self.output.iter().try_for_each(|digest| write!(f, " output={digest}"))
    }
}

impl FromStr for ReviewRun {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        const FORM: MalformedValue = MalformedValue("`accept` or `reject`, then `prompt=` and `output=` with digests");
        let mut words = text.split(' ');
        let accepted = match words.next() {
            Some("accept") => true,
            Some("reject") => false,
            _ => return Err(FORM),
        };
        let mut review = Self { accepted, prompt: None, output: None };
        for word in words {
            let (slot, digest) = match word.split_once('=').ok_or(FORM)? {
                ("prompt", digest) => (&mut review.prompt, digest),
                ("output", digest) => (&mut review.output, digest),
                _ => return Err(FORM),
            };
            *slot = Some(digest.parse().map_err(|_| FORM)?);
        }
        Ok(review)
    }
}

/// The signature of a person's decision: an SSH signature in base64 without armor, on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ReviewSignature(String);

impl ReviewSignature {
    /// Returns the signature with the armor lines that `ssh-keygen` expects.
    pub fn armored(&self) -> String {
        let Self(base64) = self;
        format!("-----BEGIN SSH SIGNATURE-----\n{base64}\n-----END SSH SIGNATURE-----\n")
    }
}

impl fmt::Display for ReviewSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ReviewSignature {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let is_of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        let is_one =
            text.len() <= SIGNATURE_LIMIT && text.starts_with(SIGNATURE_MAGIC) && text.bytes().all(is_of_base64);
        if is_one {
            Ok(Self(text.to_owned()))
        } else {
            Err(MalformedValue("a signature of SSH's, in base64 on one line"))
        }
    }
}

impl TryFrom<String> for ReviewSignature {
    type Error = MalformedValue;

    fn try_from(text: String) -> Result<Self, MalformedValue> {
        text.parse()
    }
}

impl From<ReviewSignature> for String {
    fn from(ReviewSignature(base64): ReviewSignature) -> Self {
        base64
    }
}

/// How the tests that passed differ from those before: `+3 -1 shop tests::a`. The names are of those that are lost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardTests {
    /// Number of tests that pass now and did not before.
    pub added: usize,
    /// Number of tests that passed before and do not now.
    pub lost: usize,
    /// Their names.
    pub names: NameList,
}

impl GuardTests {
    /// Returns the difference between two records; `None` if there is none.
    pub fn between(before: &TestRecord, after: &TestRecord) -> Option<Self> {
        let TestDiff { added, lost } = diff_records(before, after);
        let tests = Self { added: added.len(), lost: lost.len(), names: NameList::new(lost) };
        (tests != Self::default()).then_some(tests)
    }

    /// Returns it for readers.
    pub fn to_change(&self) -> TestsChange {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let names = self.names.items().iter().map(|name| String::from_utf8_lossy(name).into_owned());
        TestsChange { added: count(self.added), lost: count(self.lost), names: names.collect() }
    }
}

impl fmt::Display for GuardTests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { added, lost, names } = self;
        write!(f, "+{added} -{lost}")?;
        if names.is_empty() { Ok(()) } else { write!(f, " {names}") }
    }
}

impl FromStr for GuardTests {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        const FORM: MalformedValue = MalformedValue("`+<number> -<number> <names>`");
        let (added, rest) = text.strip_prefix('+').and_then(|text| text.split_once(" -")).ok_or(FORM)?;
        let (lost, names) = rest.split_once(' ').map_or((rest, None), |(lost, names)| (lost, Some(names)));
        let number = |text: &str| text.parse().map_err(|_| FORM);
        let names: NameList = names.map_or(Ok(NameList::default()), str::parse).map_err(|_| FORM)?;
        let tests = Self { added: number(added)?, lost: number(lost)?, names };
        let is_counted = tests.lost == tests.names.items().len() + tests.names.more();
        if is_counted && tests.to_string() == text { Ok(tests) } else { Err(FORM) }
    }
}

/// What an iteration consumed: `in=1 cached=2 out=3 cost_usd=0.012345`, with `unknown` if no session reported it.
///
/// If attempts without a commit preceded the session, `sessions=3` follows; if some of them did not report their usage,
/// so do `tokens_unknown=1` and `cost_unknown=2`, and the figures are too low by that much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageLine(pub UsageTotal);

impl fmt::Display for UsageLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |tokens: Option<u64>| tokens.map_or_else(|| "unknown".to_owned(), |tokens| tokens.to_string());
        let dollars = |micro: u64| format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
        let Self(usage) = self;
        write!(
            f,
            "in={} cached={} out={} cost_usd={}",
            count(usage.input_tokens),
            count(usage.cached_tokens),
            count(usage.output_tokens),
            usage.cost_micro_usd.map_or_else(|| "unknown".to_owned(), dollars)
        )?;
        if usage.sessions == 1 {
            return Ok(());
        }
        write!(f, " sessions={}", usage.sessions)?;
        let unknown = [("tokens_unknown", usage.tokens_unknown), ("cost_unknown", usage.cost_unknown)];
        unknown.iter().filter(|(_, count)| *count > 0).try_for_each(|(key, count)| write!(f, " {key}={count}"))
    }
}

impl FromStr for UsageLine {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let mut words = text.split(' ').peekable();
        let mut next = |key| strip_key(words.next(), key).ok_or(USAGE_FORM);
        let usage = SessionUsage {
            input_tokens: parse_known(next("in=")?, |n| n.parse().ok())?,
            cached_tokens: parse_known(next("cached=")?, |n| n.parse().ok())?,
            output_tokens: parse_known(next("out=")?, |n| n.parse().ok())?,
            cost_micro_usd: parse_known(next("cost_usd=")?, parse_micro_dollars)?,
        };
        let mut counted = |key| match words.next_if(|word| word.starts_with(key)) {
            Some(word) => strip_key(Some(word), key).and_then(|n| n.parse().ok()).map(Some).ok_or(USAGE_FORM),
            None => Ok(None),
        };
        let one = UsageTotal::from(&usage);
        let total = match counted("sessions=")? {
            None => one,
            Some(sessions) => UsageTotal {
                sessions,
                tokens_unknown: counted("tokens_unknown=")?.unwrap_or(0),
                cost_unknown: counted("cost_unknown=")?.unwrap_or(0),
                ..one
            },
        };
        words.next().map_or(Ok(Self(total)), |_| Err(USAGE_FORM))
    }
}

/// Returns `None` for `unknown`, otherwise what `read` parses from the text.
fn parse_known(text: &str, read: impl Fn(&str) -> Option<u64>) -> Result<Option<u64>, MalformedValue> {
    if text == "unknown" { Ok(None) } else { read(text).map(Some).ok_or(USAGE_FORM) }
}

fn parse_micro_dollars(text: &str) -> Option<u64> {
    let (dollars, fraction) = text.split_once('.')?;
    let fraction: u64 = fraction.parse().ok().filter(|_| fraction.len() == 6)?;
    dollars.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(fraction)
}

fn strip_key<'a>(word: Option<&'a str>, key: &str) -> Option<&'a str> {
    word?.strip_prefix(key)
}
