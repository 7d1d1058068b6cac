//! What a run's branch says about the run without a daemon that drives it: at a remote, or in a clone.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::state::UsageTotal;
use crate::view::NodeRef;
use crate::words::words;

words! {
    /// How far a run is, as its branch tells. Whether a driver is alive is not told by it.
    BranchState {
        /// Every leaf passes.
        Completed = "completed",
        /// The next leaf has no attempts left.
        Stuck = "stuck",
        /// A driver has claimed it, and not released it.
        Claimed = "claimed",
        /// Its last driver has released it: another one may go on at once.
        Released = "released",
        /// It is not done, and the commits that are there name no driver.
        Open = "open",
        /// What is committed cannot be read.
        Unreadable = "unreadable",
    }
}

/// A run, as its branch tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchView {
    /// Id of the run.
    pub run: String,
    /// What its goal is called; null where that cannot be read.
    pub goal: Option<String>,
    /// How far it is.
    pub state: BranchState,
    /// Who has claimed it and not released it: `<engine>/<job>.<attempt>@<host>`.
    pub driver: Option<String>,
    /// The commit that its branch names.
    pub tip: String,
    /// The first line of that commit.
    pub subject: String,
    /// When that was committed, by the clock of whoever did.
    #[schemars(with = "Option<String>")]
    pub moved_at: Option<Timestamp>,
    /// Leaves that pass.
    pub leaves_passed: u32,
    /// Leaves of the tree.
    pub leaves_total: u32,
    /// Iterations that are committed.
    pub iterations: u32,
    /// The node of the next iteration.
    pub node: Option<NodeRef>,
    /// What the committed iterations have consumed.
    pub usage: UsageTotal,
    /// Time spent in them, in milliseconds.
    pub elapsed_ms: u64,
    /// Questions that are open.
    pub questions: u32,
    /// What cannot be read, and why.
    pub fault: Option<String>,
}
