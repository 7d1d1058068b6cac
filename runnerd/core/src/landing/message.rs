//! The messages of landed commits, and the trailer that identifies them.

use std::fmt;
use std::str::FromStr;

use super::sanitize_message;
use crate::message::{SCISSORS, ends_with_trailers, read_trailers, safe_summary};
use crate::text::digest::is_lower_hex;
use crate::text::fence::one_line;
use crate::tree::validate::MAX_TITLE_BYTES;

/// The trailer that says what a commit lands.
pub const LANDED: &str = "Runner-Landed";
/// The trailer that names the version of git that made the merge.
const MERGED: &str = "Runner-Merged";
/// The trailer that names a file that a person accepted although it does not show that a conflict is resolved.
const ACCEPTED: &str = "Runner-Accepted";
/// Stands for the node of a person's own commit.
pub const NO_NODE: &str = "-";

/// The value of `Runner-Landed`: `<run>@<commit> <node>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LandedTrailer {
    /// Id of the run.
    pub run: String,
    /// The run's commit whose files were landed.
    pub commit: String,
    /// The node that passed with that commit, or [`NO_NODE`].
    pub node: String,
}

impl fmt::Display for LandedTrailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{} {}", self.run, self.commit, self.node)
    }
}

/// The text is not `<run>@<commit> <node>`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected `<run>@<commit> <node>`")]
pub struct InvalidLandedTrailer;

impl FromStr for LandedTrailer {
    type Err = InvalidLandedTrailer;

    fn from_str(text: &str) -> Result<Self, InvalidLandedTrailer> {
        let (of, node) = text.split_once(' ').ok_or(InvalidLandedTrailer)?;
        let (run, commit) = of.rsplit_once('@').ok_or(InvalidLandedTrailer)?;
        let is_commit = matches!(commit.len(), 40 | 64) && is_lower_hex(commit);
        if run.is_empty() || node.is_empty() || node.contains(' ') || !is_commit {
            return Err(InvalidLandedTrailer);
        }
        Ok(Self { run: run.to_owned(), commit: commit.to_owned(), node: node.to_owned() })
    }
}

/// Text for a message, by its author.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageText<'a> {
    /// A person's: commands in it, such as closing an issue, are theirs to give.
    Person(&'a str),
    /// An agent's, or an unknown author's: nothing in it may act as a command.
    Agent(&'a str),
}

impl MessageText<'_> {
    fn subject(self) -> String {
        let line = |text: &str| safe_summary(&one_line(text, MAX_TITLE_BYTES)).replace('\n', " ");
        match self {
            Self::Person(text) => line(text),
            Self::Agent(text) => sanitize_message::sanitize_subject(&line(text)),
        }
    }

    fn paragraph(self) -> String {
        match self {
            Self::Person(text) => safe_summary(text),
            Self::Agent(text) => sanitize_message::sanitize_paragraphs(&safe_summary(text)),
        }
    }
}

/// Content of a landed commit's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedMessage<'a> {
    /// The first line: a leaf's title.
    pub subject: MessageText<'a>,
    /// The paragraphs after it: a goal, a summary.
    pub body: &'a [MessageText<'a>],
    /// Further authors, as `Name <address>`.
    pub co_authors: &'a [String],
    /// The version of git that merged it.
    pub git: &'a str,
    /// What the commit lands; the last entry is its own.
    pub landed: &'a [LandedTrailer],
    /// The files of a resolution that a person has accepted.
    pub accepted: &'a [String],
}

impl LandedMessage<'_> {
    /// Returns the message, with a newline at the end.
    pub fn compose(&self) -> String {
        let subject = self.subject.subject();
        let paragraphs = self.body.iter().map(|words| words.paragraph());
        let paragraphs = paragraphs.filter(|text| !text.is_empty() && *text != subject);
        let text = paragraphs.fold(subject.clone(), |text, paragraph| text + "\n\n" + &paragraph);
        format!("{text}\n\n{}", self.trailers())
    }

    /// Returns a person's own message with the trailers of a landed commit appended, to its last paragraph if that
    /// consists of trailers.
    pub fn append_to(&self, message: &str) -> String {
        let lines: Vec<String> = message.trim_end().lines().map(quote_line).collect();
        let text = lines.join("\n");
        let between = if ends_with_trailers(format!("{text}\n").as_bytes()) { "\n" } else { "\n\n" };
        format!("{text}{between}{}", self.trailers())
    }

    fn trailers(&self) -> String {
        let others = self.co_authors.iter().map(|other| format!("Co-authored-by: {other}\n"));
        let merged = std::iter::once(format!("{MERGED}: git/{}\n", self.git));
        let landed = self.landed.iter().map(|landed| format!("{LANDED}: {landed}\n"));
        let accepted = self.accepted.iter().map(|path| format!("{ACCEPTED}: {}\n", one_line(path, usize::MAX)));
        others.chain(merged).chain(accepted).chain(landed).collect()
    }
}

/// A landed commit, either as found on a branch or as rebuilt from a run's commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LandedCommitFields<'a> {
    /// The ids of its parents.
    pub parents: &'a [String],
    /// Its author, as `Name <address>`.
    pub author: &'a str,
    /// Its message.
    pub message: &'a str,
}

impl LandedCommitFields<'_> {
    /// Describes how it differs from the one rebuilt from the run's commits.
    pub fn describe_difference(&self, expected: &Self) -> Option<String> {
        let fields = |head: &Self| {
            let subject = head.message.lines().next().unwrap_or_default().to_owned();
            [
                ("parents", head.parents.join(" ")),
                ("author", head.author.to_owned()),
                (LANDED, landing_values(head.message).join(", ")),
                ("subject", subject),
            ]
        };
        let differing = fields(expected).into_iter().zip(fields(self)).find(|(expected, found)| expected != found);
        differing.map(|((at, expected), (_, found))| format!("{at}: expected {expected}, found {found}"))
    }
}

/// Returns the values of the trailer of a landed commit that any program finds in a message, its own last.
pub fn landing_values(message: &str) -> Vec<String> {
    read_trailers(message.as_bytes(), LANDED)
}

/// Returns what a commit has landed according to its message, its own entry last.
pub fn parse_landed(message: &str) -> Vec<LandedTrailer> {
    landing_values(message).iter().filter_map(|value| value.parse().ok()).collect()
}

/// Returns the files that a person has accepted according to a message.
pub fn parse_accepted(message: &str) -> Vec<String> {
    read_trailers(message.as_bytes(), ACCEPTED)
}

/// Returns the version of git named in a message.
pub fn parse_git_version(message: &str) -> Option<String> {
    let named = read_trailers(message.as_bytes(), MERGED);
    named.iter().find_map(|value| value.strip_prefix("git/")).map(str::to_owned)
}

/// Quotes a person's line that could be mistaken for one of the runner's trailers, or for the end of the message.
fn quote_line(line: &str) -> String {
    let is_runners = line.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("runner-"));
    if is_runners || line == SCISSORS { format!("> {line}") } else { line.to_owned() }
}
