//! The content of a run's pull request, and the feedback on it.
//!
//! Data only. `runner-core` writes the texts; the client sends them to the forge.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WirePath;
use crate::reply::ChangeReply;
use crate::request::AtRun;
use crate::words::words;

/// What the runner's part of a description begins with: what people write around it stays.
pub const DESCRIPTION_BEGINS: &str = "<!-- runnerd: begin -->";
/// What it ends with.
pub const DESCRIPTION_ENDS: &str = "<!-- runnerd: end -->";
/// Most items that one request of feedback carries.
pub const MAX_FEEDBACK_ITEMS: usize = 200;

/// `delivery.describe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DescribeParams {
    /// Absolute path inside the work tree.
    pub path: WirePath,
    /// Id of the run, or an unambiguous beginning of it; default: the branch that is checked out, or the only one.
    #[serde(default)]
    pub run: Option<String>,
    /// Where it is to be pushed: the name of a remote; default: that of the configuration.
    #[serde(default)]
    pub remote: Option<String>,
    /// Confirm the program of `[deliver] command`.
    #[serde(default)]
    pub confirmed: bool,
}

/// `delivery.describe`: what is to be said of a run to those who are to take it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DescribeReply {
    /// Id of the run.
    pub run: String,
    /// The last commit of its branch.
    pub tip: String,
    /// The branch that it is delivered as: `deliver/<run>`.
    pub branch: String,
    /// The run whose session may be at work in this repository, and could have changed git's configuration; null where none is.
    pub at_work: Option<String>,
    /// How many leaves pass.
    pub leaves_passed: u32,
    /// How many there are.
    pub leaves_total: u32,
    /// One line for a title, as plain text.
    pub title: String,
    /// The description as Markdown, at most 60,000 bytes.
    pub body: String,
    /// The remote: as asked for, else as configured.
    pub remote: String,
    /// `[deliver] base` of the run's configuration.
    pub base: Option<String>,
    /// `[deliver] command` of the run's configuration; empty where there is none.
    pub command: Vec<String>,
    /// Whether `[deliver] on_complete` asks that it is delivered when it is completed.
    pub on_complete: bool,
}

words! {
    /// What a piece of feedback is.
    FeedbackKind {
        /// A check that failed.
        Check = "check",
        /// What a reviewer says of the whole.
        Review = "review",
        /// A comment, on a line or on the whole.
        Comment = "comment",
    }
}

/// One thing that a forge told of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeedbackItem {
    /// What it is.
    pub kind: FeedbackKind,
    /// By what the forge knows it: the same for the same thing.
    pub id: String,
    /// Who said it, or the name of the check.
    pub by: String,
    /// What it is about, such as `src/lib.rs:42`.
    pub at: Option<String>,
    /// What was said; may be empty for a check.
    pub text: String,
    /// Where it can be read.
    pub url: Option<String>,
    /// The end of what a failed check has printed, of which sessions are told the lines that say what failed; at most 32 KiB are
    /// of use. The same check is known again without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// `delivery.feedback`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeedbackParams {
    /// Which run.
    #[serde(flatten)]
    pub at: AtRun,
    /// What the feedback is on, such as `pull request 5, https://…`.
    pub request: String,
    /// What was told, oldest first; at most 200 items.
    pub items: Vec<FeedbackItem>,
    /// Add a leaf below the root for it; else it is a note to the next session.
    #[serde(default)]
    pub add: bool,
    /// Only tell what would be written.
    #[serde(default)]
    pub dry_run: bool,
}

/// `delivery.feedback`: what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeedbackReply {
    /// Items that are in the text.
    pub told: u32,
    /// Items that the run had been told before.
    pub known: u32,
    /// Items that found no room, and are told by the next request.
    pub left: u32,
    /// What sessions are told; empty where nothing is new.
    pub text: String,
    /// What became of the note or the leaf; null where nothing is new, or only a look was asked for.
    pub change: Option<ChangeReply>,
}
