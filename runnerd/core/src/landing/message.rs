//! The messages of landed commits, and the trailer by which they are known again.

use std::fmt;
use std::str::FromStr;

use super::harmless;
use crate::digest::is_lower_hex;
use crate::fence::one_line;
use crate::message::safe_summary;
use crate::validate::MAX_TITLE_BYTES;

/// The trailer that says what a commit brings.
pub const LANDED: &str = "Runner-Landed";
/// The trailer that says which git made the merge.
const MERGED: &str = "Runner-Merged";
/// What stands for the node of a person's own commit.
pub const NO_NODE: &str = "-";

/// The value of `Runner-Landed`: `<run>@<commit> <node>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LandedTrailer {
    /// Id of the run.
    pub run: String,
    /// The commit of the run whose files were brought.
    pub commit: String,
    /// The node that passed with it, or [`NO_NODE`].
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

/// Words, and whose they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageText<'a> {
    /// A person's: what they order, as to close an issue, is theirs to order.
    Person(&'a str),
    /// An agent's, or of somebody who is not known: nothing in them is an order to anybody.
    Agent(&'a str),
}

impl MessageText<'_> {
    fn subject(self) -> String {
        let line = |text: &str| safe_summary(&one_line(text, MAX_TITLE_BYTES)).replace('\n', " ");
        match self {
            Self::Person(text) => line(text),
            Self::Agent(text) => harmless::sanitize_subject(&line(text)),
        }
    }

    fn paragraph(self) -> String {
        match self {
            Self::Person(text) => safe_summary(text),
            Self::Agent(text) => harmless::sanitize_paragraphs(&safe_summary(text)),
        }
    }
}

/// What a landed commit is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedMessage<'a> {
    /// The first line: a leaf's title.
    pub subject: MessageText<'a>,
    /// The paragraphs behind it: a goal, a summary.
    pub body: &'a [MessageText<'a>],
    /// Who else wrote it, as `Name <address>`.
    pub co_authors: &'a [String],
    /// The version of git that merged it.
    pub git: &'a str,
    /// What it brings; the last is its own.
    pub landed: &'a [LandedTrailer],
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

    /// Returns a person's own message with the trailers of a landed commit behind it: into its last paragraph, where that is
    /// one of trailers.
    pub fn append_to(&self, message: &str) -> String {
        let kept: Vec<String> = message.trim_end().lines().map(quote_line).collect();
        let text = kept.join("\n");
        let is_of_trailers = |paragraph: &str| !paragraph.is_empty() && paragraph.lines().all(is_trailer);
        let between =
            if text.rsplit_once("\n\n").is_some_and(|(_, last)| is_of_trailers(last)) { "\n" } else { "\n\n" };
        format!("{text}{between}{}", self.trailers())
    }

    fn trailers(&self) -> String {
        let others = self.co_authors.iter().map(|other| format!("Co-authored-by: {other}\n"));
        let merged = std::iter::once(format!("{MERGED}: git/{}\n", self.git));
        let landed = self.landed.iter().map(|landed| format!("{LANDED}: {landed}\n"));
        others.chain(merged).chain(landed).collect()
    }
}

/// A landed commit, as it stands on a branch or as a run's commits make it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LandedCommitFields<'a> {
    /// The ids of its parents.
    pub parents: &'a [String],
    /// Who wrote it, as `Name <address>`.
    pub author: &'a str,
    /// Its message.
    pub message: &'a str,
}

impl LandedCommitFields<'_> {
    /// Says in what it differs from the one that the run's commits make.
    pub fn describe_difference(&self, made: &Self) -> Option<String> {
        let fields = |head: &Self| {
            let landed: Vec<String> = parse_landed(head.message).iter().map(LandedTrailer::to_string).collect();
            let subject = head.message.lines().next().unwrap_or_default().to_owned();
            [
                ("parents", head.parents.join(" ")),
                ("author", head.author.to_owned()),
                (LANDED, landed.join(", ")),
                ("subject", subject),
            ]
        };
        let differing = fields(made).into_iter().zip(fields(self)).find(|(made, found)| made != found);
        differing.map(|((at, made), (_, found))| format!("{at}: expected {made}, found {found}"))
    }
}

/// Returns what a message says that its commit has landed, its own last.
pub fn parse_landed(message: &str) -> Vec<LandedTrailer> {
    trailer_values(message, LANDED).filter_map(|value| value.parse().ok()).collect()
}

/// Returns the version of git that a message names.
pub fn parse_git_version(message: &str) -> Option<&str> {
    trailer_values(message, MERGED).find_map(|value| value.strip_prefix("git/"))
}

fn trailer_values<'a>(message: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let last = message.trim_end().rsplit_once("\n\n").map_or("", |(_, last)| last);
    last.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// A line of a person's that could be taken for a trailer of the runner's is none.
fn quote_line(line: &str) -> String {
    let is_runners = line.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("runner-"));
    if is_runners { format!("> {line}") } else { line.to_owned() }
}

fn is_trailer(line: &str) -> bool {
    let token = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    line.split_once(": ").is_some_and(|(name, _)| token(name))
}
