//! A person's decision on a finished task, and the exact text that they sign for it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::request::AtRun;
use crate::words::ReviewVerdict;

/// The namespace of these signatures: a signature made for something else, such as a commit, is not accepted.
pub const NAMESPACE: &str = "runner-review";

/// `review.pending`: the task that waits for a person's review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PendingReview {
    /// Id of the run.
    pub run: String,
    /// Id of the task.
    pub node: String,
    /// Number of the iteration that finished the task.
    pub iteration: u32,
    /// The commit of that iteration.
    pub commit: String,
}

/// `review.approve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApproveParams {
    /// The run.
    #[serde(flatten)]
    pub at: AtRun,
    /// Number of the iteration to decide on, from `review.pending`; refused if another one is pending by then.
    pub iteration: u32,
    /// The person's SSH signature of the decision, in base64 without its armor, for `[review] sign`.
    #[serde(default)]
    pub signature: Option<String>,
}

/// `review.reject`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RejectParams {
    /// The run.
    #[serde(flatten)]
    pub at: AtRun,
    /// Number of the iteration to decide on, from `review.pending`; refused if another one is pending by then.
    pub iteration: u32,
    /// The reason, at most 8 KiB; the next session on the task reads it.
    pub reason: String,
    /// The person's SSH signature of the decision, in base64 without its armor, for `[review] sign`.
    #[serde(default)]
    pub signature: Option<String>,
}

/// A person's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewStatement<'a> {
    /// The review that it decides.
    pub review: &'a PendingReview,
    /// The decision.
    pub verdict: ReviewVerdict,
    /// The reason; empty for an approval.
    pub reason: &'a str,
}

/// The bytes that are signed: one line per fact, an empty line, and the reason as given.
impl fmt::Display for ReviewStatement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PendingReview { run, node, iteration, commit } = self.review;
        let Self { verdict, reason, .. } = self;
        write!(f, "run {run}\nnode {node}\niteration {iteration}\ncommit {commit}\nverdict {verdict}\n\n{reason}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_names_all_that_the_word_is_about() {
        let on = PendingReview { run: "tidy".into(), node: "root.2".into(), iteration: 7, commit: "ab12".into() };
        let word = |verdict, reason| ReviewStatement { review: &on, verdict, reason }.to_string();
        let facts = "run tidy\nnode root.2\niteration 7\ncommit ab12\nverdict";
        assert_eq!(word(ReviewVerdict::Accept, ""), format!("{facts} accept\n\n"));
        assert_eq!(word(ReviewVerdict::Reject, "No test.\n"), format!("{facts} reject\n\nNo test.\n"));
    }
}
