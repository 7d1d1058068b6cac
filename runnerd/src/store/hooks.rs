//! Events waiting for a hook: part of `repo.json`, so that an event and what it reports are written together.

use protocol::hook::HookEvent;
use serde::{Deserialize, Serialize};

/// Pending events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookQueue {
    /// Events, oldest first.
    pub queue: Vec<PendingHook>,
    /// The last iteration whose questions were reported, as `<run>/<iter>`.
    #[serde(rename = "asked")]
    pub last_questions: Option<String>,
}

/// An event waiting for its hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingHook {
    /// What happened.
    pub event: HookEvent,
    /// Whether its program was started: it is not started a second time.
    pub begun: bool,
}
