//! The lines that `codex exec --json` prints: what is needed of them, in their own words.
//!
//! Each line is read in one pass into few fields; what is not named here is passed over and takes no memory. A line that
//! does not fit is one that nobody here knows.

use protocol::answer::SessionUsage;
use serde::Deserialize;

/// A line.
#[derive(Debug, Deserialize)]
pub(super) struct CodexEvent {
    /// Which event.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// With `thread.started`: the session.
    pub(super) thread_id: Option<String>,
    /// With `item.*`: a step of the work.
    pub(super) item: Option<CodexItem>,
    /// With `turn.completed`: what the whole session consumed.
    pub(super) usage: Option<CodexTokens>,
    /// With `turn.failed`: why.
    pub(super) error: Option<CodexFailure>,
    /// With `error`: what happened; the session may go on.
    pub(super) message: Option<String>,
}

impl CodexEvent {
    /// Reads a line.
    pub(super) fn parse_line(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

/// A step of the work.
#[derive(Debug, Deserialize)]
pub(super) struct CodexItem {
    /// Of which kind.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// What it says, for a message or for reasoning.
    pub(super) text: Option<String>,
    /// A warning.
    pub(super) message: Option<String>,
    /// A shell command.
    pub(super) command: Option<String>,
    /// What it printed.
    pub(super) aggregated_output: Option<String>,
    /// How the command ended.
    pub(super) exit_code: Option<i64>,
    /// `in_progress`, `completed` or `failed`.
    pub(super) status: Option<String>,
    /// Files that are changed.
    pub(super) changes: Option<Vec<CodexChange>>,
    /// Whose tool is used.
    pub(super) server: Option<String>,
    /// Which tool is used.
    pub(super) tool: Option<String>,
    /// What the web is searched for.
    pub(super) query: Option<String>,
}

/// A file that is changed.
#[derive(Debug, Deserialize)]
pub(super) struct CodexChange {
    /// Which one.
    pub(super) path: String,
}

/// Why a turn failed.
#[derive(Debug, Deserialize)]
pub(super) struct CodexFailure {
    /// For people.
    pub(super) message: String,
}

/// Tokens, as the program counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct CodexTokens {
    /// Of the input, those that were cached included.
    #[serde(rename = "input_tokens")]
    input: u64,
    /// Of the input, those that were cached.
    #[serde(default, rename = "cached_input_tokens")]
    cached: u64,
    /// Of the output, reasoning included.
    #[serde(rename = "output_tokens")]
    output: u64,
}

impl From<CodexTokens> for SessionUsage {
    fn from(tokens: CodexTokens) -> Self {
        Self {
            input_tokens: Some(tokens.input.saturating_sub(tokens.cached)),
            cached_tokens: Some(tokens.cached),
            output_tokens: Some(tokens.output),
            cost_micro_usd: None,
        }
    }
}
