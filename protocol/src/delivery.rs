//! The content of a run's pull request, and the feedback on it.
//!
//! Data only. `runner-core` writes the texts; the client sends them to the forge.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WirePath;
use crate::reply::ChangeReply;
use crate::request::AtRun;
use crate::words::words;

/// The first line of the runner's part of a description; text that people write around that part stays.
pub const DESCRIPTION_BEGINS: &str = "<!-- runnerd: begin -->";
/// The last line of that part.
pub const DESCRIPTION_ENDS: &str = "<!-- runnerd: end -->";
/// The maximum number of items in one feedback request.
pub const MAX_FEEDBACK_ITEMS: usize = 200;

/// `delivery.describe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DescribeParams {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// Id of the run, or a unique prefix; default: the branch that is checked out, or the only run.
    #[serde(default)]
    pub run: Option<String>,
    /// Name of the remote to push to; default: the one in the configuration.
    #[serde(default)]
    pub remote: Option<String>,
    /// Confirm the program of `[deliver] command`.
    #[serde(default)]
    pub confirmed: bool,
}

/// `delivery.describe`: the texts and settings for delivering a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DescribeReply {
    /// Id of the run.
    pub run: String,
    /// The last commit of its branch.
    pub tip: String,
    /// The branch to push: `deliver/<run>`.
    pub branch: String,
    /// The branch here that the run was started from, if it has the run's result already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed_on: Option<String>,
    /// The run whose session may be active in this repository and may have changed git's configuration; null without
    /// such a run.
    pub at_work: Option<String>,
    /// Leaf tasks that have passed.
    pub leaves_passed: u32,
    /// The total number.
    pub leaves_total: u32,
    /// The title, one line of plain text.
    pub title: String,
    /// The description as Markdown, at most 60,000 bytes.
    pub body: String,
    /// The remote: the requested one, otherwise the configured one.
    pub remote: String,
    /// `[deliver] base` of the run's configuration.
    pub base: Option<String>,
    /// `[deliver] command` of the run's configuration; empty if it is not set.
    pub command: Vec<String>,
    /// Whether `[deliver] on_complete` requests delivery when the run is completed.
    pub on_complete: bool,
}

words! {
    /// The kind of a feedback item.
    FeedbackKind {
        /// A check that failed.
        Check = "check",
        /// A reviewer's statement about the whole change.
        Review = "review",
        /// A comment, on a line or on the whole change.
        Comment = "comment",
    }
}

/// A piece of feedback that a forge reports on a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeedbackItem {
    /// Its kind.
    pub kind: FeedbackKind,
    /// The forge's id for it, which does not change.
    pub id: String,
    /// The author, or the name of the check.
    pub by: String,
    /// The place that it refers to, such as `src/lib.rs:42`.
    pub at: Option<String>,
    /// Its text; may be empty for a check.
    pub text: String,
    /// The address at which it can be read.
    pub url: Option<String>,
    /// The end of a failed check's output, of which the last 32 KiB are used: the sessions get the lines that describe
    /// the failure. It does not identify the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// `delivery.feedback`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeedbackParams {
    /// The run.
    #[serde(flatten)]
    pub at: AtRun,
    /// The request that the feedback is on, such as `pull request 5, https://…`.
    pub request: String,
    /// The feedback, oldest first; at most 200 items.
    pub items: Vec<FeedbackItem>,
    /// Add a task below the root for it; otherwise it becomes a note to the next session.
    #[serde(default)]
    pub add: bool,
    /// Only return the text, without writing it.
    #[serde(default)]
    pub dry_run: bool,
}

/// `delivery.feedback`: the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeedbackReply {
    /// Items that are in the text.
    #[serde(rename = "told")]
    pub included: u32,
    /// Items that the run already had.
    pub known: u32,
    /// Items that did not fit; the next request includes them.
    #[serde(rename = "left")]
    pub omitted: u32,
    /// The text for the sessions; empty if nothing is new.
    pub text: String,
    /// The change that adds the note or the task; null if nothing is new, or for a dry run.
    pub change: Option<ChangeReply>,
}
