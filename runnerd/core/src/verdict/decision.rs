//! A person's decision on a finished node, and the verdict that follows from it.

use serde::{Deserialize, Serialize};

use super::Verdict;

/// Most bytes of a person's reasons.
pub const MAX_REASONS_BYTES: usize = 8 * 1024;

/// What a person decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Decision {
    /// The node passes.
    Approve,
    /// The node stays open.
    Reject {
        /// The person's reasons.
        reasons: String,
    },
}

/// What is wrong with a person's reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReasons {
    /// There are no reasons.
    #[error("a rejection needs a reason: the next session reads it")]
    None,
    /// The reasons are too long.
    #[error("a reason may have {MAX_REASONS_BYTES} bytes, and this one has {0}")]
    TooLong(usize),
}

impl Decision {
    /// Checks the reasons of a rejection.
    pub fn check(&self) -> Result<(), InvalidReasons> {
        let Self::Reject { reasons } = self else { return Ok(()) };
        match reasons.len() {
            _ if reasons.trim().is_empty() => Err(InvalidReasons::None),
            bytes if bytes > MAX_REASONS_BYTES => Err(InvalidReasons::TooLong(bytes)),
            _ => Ok(()),
        }
    }

    /// Returns the verdict of the iteration that consists of the decision.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Approve => Verdict::Accepted,
            Self::Reject { reasons } => Verdict::Rejected { reasons: reasons.clone() },
        }
    }

    /// Returns the decision in words, for the commit's message and the next status.
    pub fn summary(&self) -> String {
        match self {
            Self::Approve => "approved by a person".to_owned(),
            Self::Reject { reasons } => reasons.clone(),
        }
    }
}
