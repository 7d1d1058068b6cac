//! The roles that the prompt trials cover, and the decisions each can make.

use protocol::answer::AnswerStatus;
use protocol::words::{ReviewVerdict, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A role whose sessions are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LabRole {
    /// Decides whether to split a goal.
    Planner,
    /// Works on one leaf.
    Worker,
    /// Brings back what an invalid task tree meant.
    Repair,
    /// Judges work that is said to be done.
    Reviewer,
}

impl LabRole {
    /// Returns the role's name, which is also the name of its template.
    pub(super) fn as_str(self) -> &'static str {
        let role = match self {
            Self::Planner => Role::Planner,
            Self::Worker => Role::Worker,
            Self::Repair => Role::Repair,
            Self::Reviewer => Role::Reviewer,
        };
        role.as_str()
    }
}

/// What a session decides: the status of its answer, or the verdict of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decision {
    /// The goal is met.
    Done,
    /// It is not.
    Retry,
    /// It was divided.
    Decomposed,
    /// The work holds.
    Accept,
    /// It does not.
    Reject,
}

impl Decision {
    /// Returns its name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Retry => "retry",
            Self::Decomposed => "decomposed",
            Self::Accept => ReviewVerdict::Accept.as_str(),
            Self::Reject => ReviewVerdict::Reject.as_str(),
        }
    }

    /// Returns whether only reviewers make this decision.
    pub(super) fn is_review_verdict(self) -> bool {
        matches!(self, Self::Accept | Self::Reject)
    }
}

impl From<AnswerStatus> for Decision {
    fn from(status: AnswerStatus) -> Self {
        match status {
            AnswerStatus::Done => Self::Done,
            AnswerStatus::Retry => Self::Retry,
            AnswerStatus::Decomposed => Self::Decomposed,
        }
    }
}

impl From<ReviewVerdict> for Decision {
    fn from(verdict: ReviewVerdict) -> Self {
        match verdict {
            ReviewVerdict::Accept => Self::Accept,
            ReviewVerdict::Reject => Self::Reject,
        }
    }
}
