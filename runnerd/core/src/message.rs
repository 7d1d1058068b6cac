//! The runner's commit messages, written and parsed: subject, summary, and the trailers that form the receipt.
//!
//! A message has exactly one form. [`RunnerCommit::parse`] accepts what [`RunnerCommit::compose`] writes and nothing
//! else, so that a receipt edited by hand is detected by its form alone. Whether a receipt is *true* is a question for
//! the audit, not for this module.

mod git_trailers;
mod guard_flaky;
mod headline;
mod name_list;
mod receipt;
mod rules_version;
mod summary;
mod trailer_values;
mod trailers;

use protocol::words::{GuardOutcome, VerdictName};

pub(crate) use git_trailers::{SCISSORS, ends_with_trailers, read_trailers};
pub use git_trailers::{claims_receipt, has_look_alike_trailer, has_runner_subject};
pub use guard_flaky::GuardFlaky;
pub use headline::compose_headline;
pub use name_list::{InvalidNameList, NameList};
pub use receipt::{Receipt, ReceiptSubject};
pub use rules_version::RulesError;
pub use summary::first_line;
pub(crate) use summary::sanitize_summary as safe_summary;
pub use trailer_values::{
    AgentStamp, AttemptCount, GuardRun, GuardTests, MalformedValue, ProcessEnd, ReviewRun, ReviewSignature,
    RunnerVersion, UsageLine, VerdictLine,
};

use self::trailers::TrailerReader;
use crate::driver::Driver;

/// Prefix of every subject that the runner writes.
const SCOPE: &str = "chore(loop): ";
const KIND: &str = "Runner-Commit";
const VERSION: &str = "Runner-Version";
const FROM: &str = "Runner-From";
const GUARD: &str = "Runner-Guard";
const REVERTED: &str = "Runner-Reverted";
const GUARD_WROTE: &str = "Runner-Guard-Wrote";
const HUMAN: &str = "Runner-Human";
const DRIVER: &str = "Runner-Driver";

/// Why a message is not one of the runner's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The last paragraph has no `Runner-Commit`: the commit is someone else's.
    #[error("not a commit of the runner: its last paragraph has no `Runner-Commit`")]
    NotRunner,
    /// The message is not UTF-8, which the runner always writes.
    #[error("not a commit of the runner: its message is not UTF-8")]
    Encoding,
    /// A line looks like a trailer of the runner's, in other characters.
    #[error("not a commit of the runner: a line looks like one of its trailers, in other characters")]
    LookAlike,
    /// The subject does not belong to the kind of commit that the trailers name.
    #[error("malformed subject `{0}`")]
    Subject(String),
    /// A required trailer is missing.
    #[error("trailer `{0}` is missing")]
    Missing(&'static str),
    /// A line of the last paragraph is not a trailer, or not one of this kind of commit.
    #[error("unexpected line `{0}` among the trailers")]
    Unexpected(String),
    /// A trailer has an impossible value.
    #[error("malformed value of `{name}`: {reason}")]
    Value {
        /// Name of the trailer.
        name: &'static str,
        /// What its value should be.
        reason: String,
    },
    /// The commit is the runner's, but follows rules that are not known here.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// Everything is present, but not in the one form that the runner writes.
    #[error("line {line} differs from what the runner writes")]
    Form {
        /// Number of the first line that differs, from 1.
        line: usize,
    },
}

/// A commit that the runner makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerCommit {
    /// The end of an iteration.
    Iteration(Box<Receipt>),
    /// The beginning of a run.
    Start(MarkerCommit),
    /// The result of the guard on the base.
    Baseline(MarkerCommit, GuardOutcome),
    /// Counters reset or an allowance raised, at the request of a person.
    Resume(MarkerCommit),
    /// A driver takes the run from here.
    Claim(MarkerCommit),
    /// A driver has ended, and any other may continue.
    Release(MarkerCommit),
}

/// What the run's commits between iterations have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkerCommit {
    /// Id of the run.
    pub run: String,
    /// Explanation for people; may be empty.
    pub summary: String,
    /// Version of the runner that wrote the commit.
    pub version: RunnerVersion,
    /// Commit it is based on, in hexadecimal.
    pub from: Option<String>,
    /// How the guard ended, if it ran.
    pub guard_run: Option<GuardRun>,
    /// Paths that the guard changed without permission and that were restored.
    pub reverted: NameList,
    /// Paths outside `.runner/` that the guard wrote, in its own commits too.
    pub guard_wrote: NameList,
    /// Who drives the run, if stated: in a claim, in a release, and in a start that is also a claim.
    pub driver: Option<Driver>,
}

impl RunnerCommit {
    /// Returns the message: subject, summary and trailers, with a newline at the end.
    pub fn compose(&self) -> String {
        match self {
            Self::Iteration(receipt) => receipt.compose(),
            Self::Start(milestone) => milestone.compose("start", &format!("start run {}", milestone.run)),
            Self::Baseline(milestone, guard) => {
                milestone.compose("baseline", &format!("baseline run {} guard={guard}", milestone.run))
            }
            Self::Resume(milestone) => milestone.compose("resume", &format!("resume run {}", milestone.run)),
            Self::Claim(milestone) => milestone.compose("claim", &format!("claim run {}", milestone.run)),
            Self::Release(milestone) => milestone.compose("release", &format!("release run {}", milestone.run)),
        }
    }

    /// Returns the id of the commit's run.
    pub fn run(&self) -> &str {
        match self {
            Self::Iteration(receipt) => &receipt.run,
            Self::Start(milestone)
            | Self::Baseline(milestone, _)
            | Self::Resume(milestone)
            | Self::Claim(milestone)
            | Self::Release(milestone) => &milestone.run,
        }
    }

    /// Returns the commit it is based on; for an iteration, the one at which its session began.
    pub fn from(&self) -> Option<&str> {
        match self {
            Self::Iteration(receipt) => Some(&receipt.from),
            Self::Start(milestone)
            | Self::Baseline(milestone, _)
            | Self::Resume(milestone)
            | Self::Claim(milestone)
            | Self::Release(milestone) => milestone.from.as_deref(),
        }
    }

    /// Parses a message as stored in the commit, to its last byte.
    pub fn parse_bytes(message: &[u8]) -> Result<Self, MessageError> {
        let message = str::from_utf8(message).map_err(|_| MessageError::Encoding)?;
        let commit = Self::parse(message)?;
        check_end(message)?;
        Ok(commit)
    }

    /// Returns the receipt of an iteration whose leaf passed.
    pub fn accepted_receipt(&self) -> Option<&Receipt> {
        match self {
            Self::Iteration(receipt) if receipt.verdict.name == VerdictName::Accepted => Some(receipt),
            Self::Iteration(_)
            | Self::Start(_)
            | Self::Baseline(..)
            | Self::Resume(_)
            | Self::Claim(_)
            | Self::Release(_) => None,
        }
    }

    /// Whether the commit only says who drives the run. A search for the runner's last commit skips it: it settles and
    /// accepts nothing, and what a person committed before it is still to be judged after it.
    pub fn is_transparent(&self) -> bool {
        matches!(self, Self::Claim(_) | Self::Release(_))
    }

    /// Whether the commit says who drives the run from there on, or that no driver does.
    pub fn names_driver(&self) -> bool {
        matches!(self, Self::Claim(_) | Self::Release(_) | Self::Start(_))
    }

    /// Parses a message that [`RunnerCommit::compose`] has written; the newline at its end may be missing.
    pub fn parse(message: &str) -> Result<Self, MessageError> {
        let parts = &MessageParts::split_message(message);
        rules_version::check(parts.trailers)?;
        let mut trailers = TrailerReader::parse(parts.trailers)?;
        let kind: String = trailers.take_optional(KIND)?.ok_or(MessageError::NotRunner)?;
        let commit = match kind.as_str() {
            "iteration" => Self::Iteration(Box::new(Receipt::parse_trailers(parts, &mut trailers)?)),
            "start" => Self::Start(MarkerCommit::parse_start(parts, &mut trailers)?),
            "resume" => Self::Resume(MarkerCommit::parse_trailers(
                parts,
                &mut trailers,
                parts.run_in_subject("resume run ", ""),
            )?),
            "claim" => Self::Claim(MarkerCommit::parse_driver_marker(parts, &mut trailers, "claim run ")?),
            "release" => Self::Release(MarkerCommit::parse_driver_marker(parts, &mut trailers, "release run ")?),
            "baseline" => {
                let (run, guard) = parts.parse_baseline().ok_or_else(|| parts.subject_error())?;
                Self::Baseline(MarkerCommit::parse_trailers(parts, &mut trailers, Some(run))?, guard)
            }
            _ => return Err(MessageError::Value { name: KIND, reason: format!("unknown kind `{kind}`") }),
        };
        trailers.finish()?;
        check_form(message, &commit.compose())?;
        Ok(commit)
    }
}

impl MarkerCommit {
    fn compose(&self, kind: &str, subject: &str) -> String {
        let mut trailers = vec![(KIND, kind.to_owned()), (VERSION, self.version.to_string())];
        trailers.extend(self.from.clone().map(|from| (FROM, from)));
        trailers.extend(self.guard_run.as_ref().map(|run| (GUARD, run.to_string())));
        let names = [(REVERTED, &self.reverted), (GUARD_WROTE, &self.guard_wrote)];
        let names = names.into_iter().filter(|(_, list)| !list.is_empty());
        trailers.extend(names.map(|(name, list)| (name, list.to_string())));
        trailers.extend(self.driver.as_ref().map(|driver| (DRIVER, driver.to_string())));
        join_message(subject, &self.summary, &trailers)
    }

    fn parse_trailers(
        parts: &MessageParts<'_>,
        trailers: &mut TrailerReader<'_>,
        run: Option<&str>,
    ) -> Result<Self, MessageError> {
        Ok(Self {
            run: run.ok_or_else(|| parts.subject_error())?.to_owned(),
            summary: parts.summary.to_owned(),
            version: trailers.take_required(VERSION)?,
            from: trailers.take_object_id(FROM)?,
            guard_run: trailers.take_optional(GUARD)?,
            reverted: trailers.take_optional(REVERTED)?.unwrap_or_default(),
            guard_wrote: trailers.take_optional(GUARD_WROTE)?.unwrap_or_default(),
            driver: None,
        })
    }

    fn parse_start(parts: &MessageParts<'_>, trailers: &mut TrailerReader<'_>) -> Result<Self, MessageError> {
        let driver = trailers.take_optional(DRIVER)?;
        Ok(Self { driver, ..Self::parse_trailers(parts, trailers, parts.run_in_subject("start run ", ""))? })
    }

    /// Parses a commit that only says who drives the run.
    fn parse_driver_marker(
        parts: &MessageParts<'_>,
        trailers: &mut TrailerReader<'_>,
        before: &str,
    ) -> Result<Self, MessageError> {
        Ok(Self {
            run: parts.run_in_subject(before, "").ok_or_else(|| parts.subject_error())?.to_owned(),
            summary: parts.summary.to_owned(),
            version: trailers.take_required(VERSION)?,
            from: None,
            guard_run: None,
            reverted: NameList::default(),
            guard_wrote: NameList::default(),
            driver: Some(trailers.take_required(DRIVER)?),
        })
    }
}

/// Returns the message of a commit that `runnerctl` makes for a person: `Runner-Human: <command>` and no receipt.
pub fn compose_human(run: &str, command: &str, summary: &str) -> String {
    let command = summary::trailer_value(command, 100);
    join_message(&format!("{command} run {run}"), summary, &[(HUMAN, command)])
}

/// A commit that `runnerctl` makes for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HumanCommit {
    /// Id of the run.
    pub run: String,
    /// The command that made it.
    pub command: String,
    /// What the command did.
    pub summary: String,
}

impl HumanCommit {
    /// Parses a message as stored in the commit, to its last byte; `None` if git finds no `Runner-Human` in it.
    pub fn parse_bytes(message: &[u8]) -> Option<Result<Self, MessageError>> {
        let read = || Self::parse(str::from_utf8(message).map_err(|_| MessageError::Encoding)?);
        git_trailers::has_trailer(message, HUMAN).then(read)
    }

    /// Parses a message that [`compose_human`] has written.
    fn parse(message: &str) -> Result<Self, MessageError> {
        let parts = MessageParts::split_message(message);
        let mut trailers = TrailerReader::parse(parts.trailers)?;
        let command: String = trailers.take_required(HUMAN)?;
        trailers.finish()?;
        let run = parts.run_in_subject(&format!("{command} run "), "").ok_or_else(|| parts.subject_error())?.to_owned();
        check_form(message, &compose_human(&run, &command, parts.summary))?;
        check_end(message)?;
        Ok(Self { run, command, summary: parts.summary.to_owned() })
    }
}

/// The paragraphs of a message.
struct MessageParts<'a> {
    subject: &'a str,
    summary: &'a str,
    /// The last paragraph, unless it is the subject.
    trailers: &'a str,
}

impl<'a> MessageParts<'a> {
    fn split_message(message: &'a str) -> Self {
        let message = message.trim_end_matches('\n');
        let (head, trailers) = message.rsplit_once("\n\n").unwrap_or((message, ""));
        let (subject, summary) = head.split_once('\n').unwrap_or((head, ""));
        Self { subject, summary: summary.strip_prefix('\n').unwrap_or(summary), trailers }
    }

    /// The subject without the scope that every commit of the runner has.
    fn scoped_subject(&self) -> Option<&'a str> {
        self.subject.strip_prefix(SCOPE)
    }

    /// The part of the subject between `before` and `after`.
    fn run_in_subject(&self, before: &str, after: &str) -> Option<&'a str> {
        self.scoped_subject()?.strip_prefix(before)?.strip_suffix(after)
    }

    /// Run and guard of a subject `baseline run <run> guard=<guard>`.
    fn parse_baseline(&self) -> Option<(&'a str, GuardOutcome)> {
        GuardOutcome::ALL
            .iter()
            .find_map(|&guard| Some((self.run_in_subject("baseline run ", &format!(" guard={guard}"))?, guard)))
    }

    fn subject_error(&self) -> MessageError {
        MessageError::Subject(self.subject.to_owned())
    }
}

fn join_message(subject: &str, summary: &str, trailers: &[(&str, String)]) -> String {
    let mut message = format!("{SCOPE}{subject}\n\n");
    let summary = summary::sanitize_summary(summary);
    if !summary.is_empty() {
        message.push_str(&summary);
        message.push_str("\n\n");
    }
    message.extend(trailers.iter().flat_map(|(name, value)| [name, ": ", value, "\n"]));
    message
}

/// Compares a message with the one composed from its own contents.
fn check_form(message: &str, composed: &str) -> Result<(), MessageError> {
    if message.trim_end_matches('\n') == composed.trim_end_matches('\n') {
        return Ok(());
    }
    let same = message.lines().zip(composed.lines()).take_while(|(given, own)| given == own).count();
    Err(MessageError::Form { line: same + 1 })
}

/// Checks that a stored message ends in exactly one newline: git prints the same for any number.
fn check_end(message: &str) -> Result<(), MessageError> {
    let is_right = message.strip_suffix('\n').is_some_and(|rest| !rest.ends_with('\n'));
    if is_right { Ok(()) } else { Err(MessageError::Form { line: message.trim_end_matches('\n').lines().count() + 1 }) }
}

#[cfg(test)]
pub(crate) mod tests;
