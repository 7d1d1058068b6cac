//! The rules that a session can break, and the description of a breach.

use serde::{Deserialize, Serialize};

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleBreach {
    /// The broken rule.
    pub rule: SessionRule,
    /// The node or path concerned.
    pub at: String,
    /// What was observed.
    #[serde(rename = "seen")]
    pub details: String,
}

/// The rules whose breach costs an attempt, in order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionRule {
    /// The tree must be valid.
    ValidTree,
    /// A passed node never changes.
    PassedNode,
    /// A node is not removed or renamed.
    KeepNodes,
    /// A node is not moved.
    KeepPlace,
    /// Goal and acceptance do not change with `done`.
    KeepGoal,
    /// Children come with `decomposed` only.
    ChildrenOnlyWithDecomposed,
    /// `decomposed` needs children.
    DecomposedNeedsChildren,
    /// Children are given in one way only.
    ChildrenOneWay,
    /// A session adds a bounded number of nodes.
    NodeCount,
    /// A chain of single children ends.
    SingleChild,
    /// History is not rewritten.
    History,
    /// A run changes only what is in its scope.
    Scope,
    /// The root is not done if nothing was changed.
    RootNeedsChange,
    /// A planner does not touch code (strict).
    PlannerNoCode,
    /// A worker does not decompose (strict).
    WorkerNoChildren,
    /// A session fits into its context window.
    Context,
}

impl SessionRule {
    /// Every rule, in declaration order.
    pub const ALL: [Self; 16] = [
        Self::ValidTree,
        Self::PassedNode,
        Self::KeepNodes,
        Self::KeepPlace,
        Self::KeepGoal,
        Self::ChildrenOnlyWithDecomposed,
        Self::DecomposedNeedsChildren,
        Self::ChildrenOneWay,
        Self::NodeCount,
        Self::SingleChild,
        Self::History,
        Self::Scope,
        Self::RootNeedsChange,
        Self::PlannerNoCode,
        Self::WorkerNoChildren,
        Self::Context,
    ];

    /// Returns the rule as a sentence for the agent, the log and the receipt.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ValidTree => "the task tree must be valid",
            Self::PassedNode => "a task that passed must not change",
            Self::KeepNodes => "a task must not be removed or renamed",
            Self::KeepPlace => "a task must not be moved",
            Self::KeepGoal => {
                "goal and acceptance of your own task, and of those that pass with it, must not change with `done`"
            }
            Self::ChildrenOnlyWithDecomposed => "your own task gets subtasks only with `decomposed`",
            Self::DecomposedNeedsChildren => "`decomposed` needs subtasks",
            Self::ChildrenOneWay => "subtasks come in the answer or in the tree, not in both",
            Self::NodeCount => "a session adds at most 12 tasks",
            Self::SingleChild => "a third single subtask in a row is refused",
            Self::History => "history must not be rewritten",
            Self::Scope => "a run must change only files in its scope",
            Self::RootNeedsChange => "the root cannot be done while nothing outside .runner/ has changed",
            Self::PlannerNoCode => "a planner must not touch code in strict mode",
            Self::WorkerNoChildren => "a worker must not decompose in strict mode",
            Self::Context => "a session must fit into the model's context",
        }
    }
}
