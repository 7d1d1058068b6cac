//! What ends a session or a guard before its time. What follows from it is the table's.

use serde::{Deserialize, Serialize};

/// Why a session or guard was ended before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// `pause --now`.
    Pause,
    /// `cancel`.
    Cancel,
    /// An orderly stop of the daemon.
    Shutdown,
    /// The daemon or the machine died; nobody asked for it.
    Death,
    /// HEAD was found elsewhere than on the run's branch, which still holds the work: who moved it is not known.
    Elsewhere,
}
