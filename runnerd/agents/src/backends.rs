//! Maps each kind of agent to its backend.

use runner_config::ExecutorKind;

use super::backend::AgentBackend;
use super::{claude, codex, command, gemini, opencode};

/// Returns the backend for a kind.
pub(super) fn backend_for(kind: ExecutorKind) -> &'static dyn AgentBackend {
    match kind {
        ExecutorKind::Command => &command::CommandBackend,
        ExecutorKind::Codex => &codex::CodexBackend,
        ExecutorKind::Claude => &claude::ClaudeBackend,
        ExecutorKind::Gemini => &gemini::GeminiBackend,
        ExecutorKind::Opencode => &opencode::OpencodeBackend,
    }
}
