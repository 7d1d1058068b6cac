//! Which backend there is for each kind of agent.

use super::backend::Backend;
use super::{claude, codex, command, gemini, opencode};
use crate::config::ExecutorKind;

/// Returns the backend for a kind.
pub(super) fn of(kind: ExecutorKind) -> &'static dyn Backend {
    match kind {
        ExecutorKind::Command => &command::Command,
        ExecutorKind::Codex => &codex::Codex,
        ExecutorKind::Claude => &claude::Claude,
        ExecutorKind::Gemini => &gemini::Gemini,
        ExecutorKind::Opencode => &opencode::Opencode,
    }
}
