//! What a run's branch says about the run without a daemon that drives it: at a remote, or in a clone.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::state::UsageTotal;
use crate::view::NodeRef;
use crate::words::words;

words! {
    /// How far a run has progressed, according to its branch. The branch does not show whether a driver is alive.
    BranchState {
        /// Every task has passed.
        Completed = "completed",
        /// The next task has no attempts left.
        Stuck = "stuck",
        /// A driver has claimed the run and has not released it.
        Claimed = "claimed",
        /// The last driver has released the run: another one may continue it at once.
        Released = "released",
        /// The run is not complete, and its commits name no driver.
        Open = "open",
        /// The committed state cannot be read.
        Unreadable = "unreadable",
    }
}

/// A run, according to its branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchView {
    /// Id of the run.
    pub run: String,
    /// The title of its goal; null if the goal cannot be read.
    pub goal: Option<String>,
    /// How far it has progressed.
    pub state: BranchState,
    /// The driver that has claimed the run and has not released it: `<engine>/<job>.<attempt>@<host>`.
    pub driver: Option<String>,
    /// The commit at the tip of its branch.
    pub tip: String,
    /// The first line of that commit.
    pub subject: String,
    /// When that commit was made, by the committer's clock.
    #[schemars(with = "Option<String>")]
    pub moved_at: Option<Timestamp>,
    /// Leaf tasks that have passed.
    pub leaves_passed: u32,
    /// Leaf tasks of the tree.
    pub leaves_total: u32,
    /// Committed iterations.
    pub iterations: u32,
    /// The task of the next iteration.
    pub node: Option<NodeRef>,
    /// Tokens and cost of the committed iterations.
    pub usage: UsageTotal,
    /// Time spent in them, in milliseconds.
    pub elapsed_ms: u64,
    /// Open questions.
    pub questions: u32,
    /// The part that cannot be read, and why.
    pub fault: Option<String>,
}

/// A working tree that is on the branch of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunCheckout {
    /// The branch.
    pub branch: String,
    /// The branch that the run started from; null if unknown.
    pub back: Option<String>,
    /// Files of the runner there with changes that are not committed, which git does not take to that branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncommitted: Vec<String>,
}
