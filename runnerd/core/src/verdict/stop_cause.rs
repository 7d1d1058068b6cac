//! Causes that end a session or a guard early. What follows from them is decided by the table.

use serde::{Deserialize, Serialize};

/// Why a session or guard was ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// `pause --now`.
    Pause,
    /// `cancel`.
    Cancel,
    /// An orderly stop of the daemon.
    Shutdown,
    /// The daemon or the machine died; no stop was requested.
    Death,
    /// HEAD was not on the run's branch, which still has the work; who moved it is unknown.
    Elsewhere,
}
