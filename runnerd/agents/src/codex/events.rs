//! The lines that `codex exec --json` prints: the fields that are needed, under their own names.
//!
//! Each line is parsed in one pass into few fields; fields not named here are skipped without using memory. A line that
//! does not fit is treated as unknown.

use protocol::answer::SessionUsage;
use serde::Deserialize;

/// A line of output: an event.
#[derive(Debug, Deserialize)]
pub(super) struct CodexEvent {
    /// The type of the event.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// With `thread.started`: the session id.
    pub(super) thread_id: Option<String>,
    /// With `item.*`: a step of the work.
    pub(super) item: Option<CodexItem>,
    /// With `turn.completed`: what the whole session consumed.
    pub(super) usage: Option<CodexTokens>,
    /// With `turn.failed`: why.
    pub(super) error: Option<CodexFailure>,
    /// With `error`: what happened; the session may continue.
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
    /// The type of the step.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// The text of a message or of reasoning.
    pub(super) text: Option<String>,
    /// The text of a warning.
    pub(super) message: Option<String>,
    /// A shell command.
    pub(super) command: Option<String>,
    /// The output of the command.
    pub(super) aggregated_output: Option<String>,
    /// The exit code of the command.
    pub(super) exit_code: Option<i64>,
    /// `in_progress`, `completed` or `failed`.
    pub(super) status: Option<String>,
    /// The changed files.
    pub(super) changes: Option<Vec<CodexChange>>,
    /// The server of the tool that is used.
    pub(super) server: Option<String>,
    /// The tool that is used.
    pub(super) tool: Option<String>,
    /// The query of a web search.
    pub(super) query: Option<String>,
}

/// A changed file.
#[derive(Debug, Deserialize)]
pub(super) struct CodexChange {
    /// Its path.
    pub(super) path: String,
}

/// Why a turn failed.
#[derive(Debug, Deserialize)]
pub(super) struct CodexFailure {
    /// A message for people.
    pub(super) message: String,
}

/// Tokens, as the program counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct CodexTokens {
    /// Input tokens, including cached ones.
    #[serde(rename = "input_tokens")]
    input: u64,
    /// Cached input tokens.
    #[serde(default, rename = "cached_input_tokens")]
    cached: u64,
    /// Output tokens, including reasoning.
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
