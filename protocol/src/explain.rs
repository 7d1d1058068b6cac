//! `tree.explain`: which leaf is next and why, and the consequences of each possible end of its session.
//!
//! Derived from the committed state. No decision is based on it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::view::{NodeRef, RunSummary, StopReason};
use crate::words::{GuardOutcome, Role, RunStatus, VerdictName, words};

words! {
    /// A way in which a session can end, as far as what follows from it differs.
    Ending {
        /// It answers `done`, the guard exits 0, and a reviewer of the agent kind accepts.
        Green = "green",
        /// It answers `done` and the guard does not exit 0.
        Red = "red",
        /// It answers `done`, the guard exits 0, and the reviewer rejects.
        Rejected = "rejected",
        /// It answers `retry`.
        Retry = "retry",
        /// It answers `retry` and has changed goal or acceptance of the node.
        Reworded = "reworded",
        /// It answers `decomposed` with two children.
        Decomposed = "decomposed",
        /// It breaks a rule: `decomposed` without children stands for all of them.
        Broken = "broken",
        /// The task tree that it leaves is not valid.
        InvalidTree = "invalid_tree",
        /// Its context was exceeded.
        ContextExceeded = "context_exceeded",
        /// It crashes.
        Crash = "crash",
        /// The model's service is not available, and nothing has changed.
        Unavailable = "unavailable",
        /// The budget runs out.
        Timeout = "timeout",
        /// The agent cannot work as it is configured, and nothing has changed.
        Misconfigured = "misconfigured",
        /// A person ends it with `pause --now`.
        Interrupted = "interrupted",
    }
}

words! {
    /// Why a session is asked to be what it is; the first that applies.
    RoleReason {
        /// A session before it has left an invalid task tree.
        Repair = "repair",
        /// The leaf is the root.
        Root = "root",
        /// It is the leaf's last attempt.
        LastAttempt = "last_attempt",
        /// None of these.
        Leaf = "leaf",
    }
}

impl RoleReason {
    /// Returns the role that follows.
    pub fn role(self) -> Role {
        match self {
            Self::Repair => Role::Repair,
            Self::Root | Self::LastAttempt => Role::Planner,
            Self::Leaf => Role::Worker,
        }
    }
}

/// `tree.explain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainReply {
    /// Id of the run that the commit names; null before the first.
    pub run: Option<String>,
    /// The run as the daemon knows it, where it does.
    pub summary: Option<RunSummary>,
    /// The commit that was read: the next session's From.
    pub commit: String,
    /// Number of the next iteration.
    pub iter: u32,
    /// What the run does next by what is committed.
    pub next: NextView,
    /// Whether that is told as if the run had been resumed, since it would be over otherwise.
    pub after_resume: bool,
    /// The next leaf; null where every leaf passes.
    pub leaf: Option<LeafView>,
    /// What each ending would lead to; empty where there is no session to come.
    pub endings: Vec<EndingView>,
}

/// What a run does next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum NextView {
    /// It goes on.
    GoesOn {
        /// The leaf.
        node: String,
        /// What its session is asked to be.
        role: Role,
    },
    /// It goes on by itself at a time.
    Waits {
        /// When.
        #[schemars(with = "String")]
        until: Timestamp,
        /// Why.
        reason: StopReason,
    },
    /// It waits for a person's review.
    WaitsForPerson {
        /// Why.
        reason: StopReason,
    },
    /// It is paused.
    Pauses {
        /// Why.
        reason: StopReason,
    },
    /// It is over.
    Ends {
        /// The terminal state.
        state: RunStatus,
        /// Why.
        reason: StopReason,
    },
}

/// The next leaf, and why it is that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeafView {
    /// The leaf.
    pub node: NodeRef,
    /// How selection comes to it: one step for each node below the root.
    pub steps: Vec<StepView>,
    /// Why its session is asked to be what it is.
    pub role_reason: RoleReason,
    /// Whether a planner may make it smaller without losing the last attempt.
    pub narrowing: bool,
}

/// One step of selection: the first of its siblings that does not pass, by `(order, id)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepView {
    /// Id of the node.
    pub node: String,
    /// Its parent.
    pub parent: String,
    /// Siblings before it, all of which pass.
    pub passed_before: u32,
    /// Its siblings, itself included.
    pub siblings: u32,
}

/// What one ending would lead to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndingView {
    /// Which.
    pub ending: Ending,
    /// The verdict.
    pub verdict: VerdictName,
    /// Its details, where it has any.
    pub detail: Option<String>,
    /// First line of the commit; null where none is made because nothing has changed.
    pub subject: Option<String>,
    /// `guard=` of the commit.
    pub guard: GuardOutcome,
    /// Whether the task tree is the one that the session leaves; else it is the one before it.
    pub tree_taken: bool,
    /// Attempts of the leaf that are charged after it.
    pub attempts: u32,
    /// Attempts of the leaf that are allowed.
    pub max_attempts: u32,
    /// Nodes that pass after it and did not before, the leaf first.
    pub passes: Vec<String>,
    /// Nodes that the tree gains.
    pub gains: Vec<String>,
    /// What the run does then.
    pub next: NextView,
}
