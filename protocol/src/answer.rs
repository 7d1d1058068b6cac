//! The answer of an agent or a reviewer at the end of a session.
//!
//! Only its format; `runner-core` decides whether an answer is acceptable.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tree::ChildSpec;
use crate::words::ReviewVerdict;

/// The answer of a session: `{"status", "summary", "children"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentAnswer {
    /// What the agent claims.
    pub status: AnswerStatus,
    /// What was done and what is left, 1 to 20,000 bytes.
    #[schemars(length(min = 1, max = 20000))]
    pub summary: String,
    /// The parts of a decomposition, to be inserted under the selected node; else null.
    #[serde(default)]
    pub children: Option<Vec<ChildSpec>>,
}

/// The claim of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerStatus {
    /// The selected node is finished; the guard is asked.
    Done,
    /// Not finished; another session is to go on.
    Retry,
    /// The selected node was split into children.
    Decomposed,
}

/// The answer of a reviewer: `{"verdict", "reasons"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewAnswer {
    /// What is decided of the node.
    pub verdict: ReviewVerdict,
    /// What it is decided by, at most 20 texts of 1 to 2,000 bytes; a rejection has at least one.
    #[schemars(length(max = 20))]
    pub reasons: Vec<String>,
}

/// Why a session ended without an answer, as `$RUNNER_OUTPUT` may state it: `{"error": …}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentError {
    /// What kind of end it was.
    pub class: AgentErrorClass,
    /// When the service can be asked again, where it is known.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub until: Option<Timestamp>,
    /// What happened, for people.
    pub message: String,
}

/// The classes of [`AgentError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentErrorClass {
    /// The model's service refused or could not be reached: usage limit, overload, network.
    Unavailable,
    /// The agent cannot work until a person changes something: login, model name, binary.
    Misconfigured,
    /// The session outgrew the context of the model.
    ContextExceeded,
}

/// What one session consumed; a field that the backend did not report is null, never 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionUsage {
    /// Input tokens that were not read from a cache.
    #[serde(default, alias = "in")]
    pub input_tokens: Option<u64>,
    /// Input tokens that were read from a cache.
    #[serde(default, alias = "cached")]
    pub cached_tokens: Option<u64>,
    /// Output tokens.
    #[serde(default, alias = "out")]
    pub output_tokens: Option<u64>,
    /// Cost in millionths of a US dollar.
    #[serde(default)]
    pub cost_micro_usd: Option<u64>,
}
