//! The input of a hook: one JSON object on one line.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WirePath;
use crate::view::{QuestionView, StopReason};
use crate::words::{RunStatus, words};

/// Name of the form.
pub const HOOK_SCHEMA: &str = "runner/hook.v1";

words! {
    /// The hooks.
    HookName {
        /// The run is completed.
        OnComplete = "on_complete",
        /// The run is stuck.
        OnStuck = "on_stuck",
        /// The run stopped otherwise: at a limit, failed, cancelled, or held until a person looks.
        OnStop = "on_stop",
        /// A session has asked something.
        OnQuestion = "on_question",
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookEvent {
    /// Name of this form: `runner/hook.v1`.
    pub schema: String,
    /// Which hook it is for.
    pub hook: HookName,
    /// When it happened.
    #[schemars(with = "String")]
    pub time: Timestamp,
    /// Id of the repository.
    pub repo: String,
    /// The work tree of the run.
    pub path: WirePath,
    /// Id of the run.
    pub run: String,
    /// What its goal is called; null where nobody has told.
    pub goal: Option<String>,
    /// Its branch.
    pub branch: String,
    /// Its state.
    pub state: RunStatus,
    /// Why it stopped, and what goes on.
    pub reason: Option<StopReason>,
    /// What was asked, for `on_question`.
    pub questions: Vec<QuestionView>,
}
