//! Events that wait for a hook: a part of `repo.json`, so that an event and what it tells of are one write.

use protocol::hook::HookEvent;
use serde::{Deserialize, Serialize};

/// What waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookQueue {
    /// Events, oldest first.
    pub queue: Vec<PendingHook>,
    /// The last iteration whose questions were told, as `<run>/<iter>`.
    pub asked: Option<String>,
}

/// An event that waits for its hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingHook {
    /// What happened.
    pub event: HookEvent,
    /// Whether its program was started: it is not started again.
    pub begun: bool,
}
