//! `tree.explain`: which task is next and why, and the consequences of each possible end of its session.
//!
//! Derived from the committed state. No decision is based on it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::view::{NodeRef, RunSummary, StopReason};
use crate::words::{GuardOutcome, Role, RunStatus, VerdictName, words};

words! {
    /// A way in which a session can end; ways with the same consequences are combined.
    Ending {
        /// It answers `done`, the guard exits 0, and an agent as reviewer accepts.
        Green = "green",
        /// It answers `done` and the guard does not exit 0.
        Red = "red",
        /// It answers `done`, the guard exits 0, and the reviewer rejects.
        Rejected = "rejected",
        /// It answers `retry`.
        Retry = "retry",
        /// It answers `retry` and has changed the task's goal or acceptance.
        Reworded = "reworded",
        /// It answers `decomposed` with two children.
        Decomposed = "decomposed",
        /// It breaks a rule, for example with `decomposed` without children.
        Broken = "broken",
        /// The task tree that it leaves behind is not valid.
        InvalidTree = "invalid_tree",
        /// Its context is exceeded.
        ContextExceeded = "context_exceeded",
        /// It crashes.
        Crash = "crash",
        /// The model's service is unavailable, and nothing has changed.
        Unavailable = "unavailable",
        /// The time budget runs out.
        Timeout = "timeout",
        /// The agent cannot work as configured, and nothing has changed.
        Misconfigured = "misconfigured",
        /// A person ends it with `pause --now`.
        Interrupted = "interrupted",
    }
}

words! {
    /// The reason for the session's role; the first that applies.
    RoleReason {
        /// An earlier session left an invalid task tree.
        Repair = "repair",
        /// The task is the root of the tree.
        Root = "root",
        /// It is the task's last attempt.
        LastAttempt = "last_attempt",
        /// None of these.
        Leaf = "leaf",
    }
}

impl RoleReason {
    /// Returns the resulting role.
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
    /// Id of the run according to the commit; null before the first run.
    pub run: Option<String>,
    /// The run, if the daemon knows it.
    pub summary: Option<RunSummary>,
    /// The commit that was read: the starting commit of the next session (`Runner-From`).
    pub commit: String,
    /// Number of the next iteration.
    pub iter: u32,
    /// The run's next step, according to the committed state.
    pub next: NextView,
    /// Whether this assumes that the run is resumed, because it has ended.
    pub after_resume: bool,
    /// The next task; null if every task passes.
    pub leaf: Option<LeafView>,
    /// The consequences of each ending; empty if no session follows.
    pub endings: Vec<EndingView>,
}

/// The next step of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum NextView {
    /// It continues.
    GoesOn {
        /// The task.
        node: String,
        /// The role of its session.
        role: Role,
    },
    /// It continues automatically at a known time.
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
    /// It has ended.
    Ends {
        /// The terminal state.
        state: RunStatus,
        /// Why.
        reason: StopReason,
    },
}

/// The next task, and why it is next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeafView {
    /// The task.
    pub node: NodeRef,
    /// The steps by which it is selected: one for each task below the root.
    pub steps: Vec<StepView>,
    /// The reason for the role of its session.
    pub role_reason: RoleReason,
    /// Whether a planner may make the task smaller without using up the last attempt.
    pub narrowing: bool,
}

/// One step of selection: the first of the siblings that has not passed, by `(order, id)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepView {
    /// Id of the task.
    pub node: String,
    /// Its parent.
    pub parent: String,
    /// Siblings before it, all of which have passed.
    pub passed_before: u32,
    /// All siblings, including itself.
    pub siblings: u32,
}

/// The consequences of one ending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndingView {
    /// The ending.
    pub ending: Ending,
    /// The verdict.
    pub verdict: VerdictName,
    /// Details of the verdict, if there are any.
    pub detail: Option<String>,
    /// First line of the commit; null if no commit is made because nothing has changed.
    pub subject: Option<String>,
    /// `guard=` of the commit.
    pub guard: GuardOutcome,
    /// Whether the session's task tree is used; if false, the previous one is kept.
    pub tree_taken: bool,
    /// The task's charged attempts afterwards.
    pub attempts: u32,
    /// The task's maximum attempts.
    pub max_attempts: u32,
    /// Tasks that pass as a result, the leaf task first.
    pub passes: Vec<String>,
    /// Tasks that are added to the tree.
    pub gains: Vec<String>,
    /// The run's next step afterwards.
    pub next: NextView,
}
