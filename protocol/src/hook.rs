//! The input of a hook: one JSON object on one line.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WirePath;
use crate::view::{QuestionView, StopReason};
use crate::words::{RunStatus, words};

/// Name of the format.
pub const HOOK_SCHEMA: &str = "runner/hook.v1";

words! {
    /// The hooks.
    HookName {
        /// The run is completed.
        OnComplete = "on_complete",
        /// The run is stuck.
        OnStuck = "on_stuck",
        /// The run stopped for another reason: it reached a limit, failed, was cancelled, or is held until you act.
        OnStop = "on_stop",
        /// A session has asked a question.
        OnQuestion = "on_question",
    }
}

/// The event, as a hook gets it on standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookEvent {
    /// Name of this format: `runner/hook.v1`.
    pub schema: String,
    /// The hook that receives this event.
    pub hook: HookName,
    /// When it happened.
    #[schemars(with = "String")]
    pub time: Timestamp,
    /// Id of the repository.
    pub repo: String,
    /// The working tree of the run.
    pub path: WirePath,
    /// Id of the run.
    pub run: String,
    /// The title of its goal; null if unknown.
    pub goal: Option<String>,
    /// Its branch.
    pub branch: String,
    /// Its state.
    pub state: RunStatus,
    /// Why it stopped, and how to continue.
    pub reason: Option<StopReason>,
    /// The questions, for `on_question`.
    pub questions: Vec<QuestionView>,
}
