//! The task tree, version 1: the format of `.runner/state/tree.json`.
//!
//! Only the format. Limits, invariants and permissions to change it are rules, and are in `runner-core`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the task tree that this crate describes.
pub const TREE_VERSION: u32 = 1;

/// A task tree file: a version and the root task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskTree {
    /// Version of the format, always 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// The root of the tree: the goal as a whole.
    pub root: Node,
}

/// One task. Sessions work on tasks without children; a task with children passes when they pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Unique in the tree, ignoring case; `[A-Za-z0-9][A-Za-z0-9._-]{0,199}`.
    #[schemars(length(min = 1, max = 200))]
    pub id: String,
    /// Place among the siblings; ties are broken by the bytes of the id.
    pub order: i64,
    /// Its title, at most 200 bytes.
    #[schemars(length(max = 200))]
    pub title: String,
    /// The condition that must be true when it is done, at most 8 KiB.
    #[schemars(length(max = 8192))]
    pub goal: String,
    /// Testable statements, at most 20 of at most 400 bytes each.
    #[schemars(length(max = 20), inner(length(max = 400)))]
    pub acceptance: Vec<String>,
    /// Whether it is done; only the runner writes it.
    pub passes: bool,
    /// Attempts charged so far; only the runner writes it.
    pub attempts: u32,
    /// Attempts allowed, at least 1; only the runner writes it once the task exists.
    #[schemars(range(min = 1))]
    pub max_attempts: u32,
    /// The subtasks that it was split into.
    pub children: Vec<Node>,
}

impl Node {
    /// Returns whether this node has no children and is therefore worked on itself.
    pub fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    /// Counts the leaves that pass, and all of them: itself, if it is one.
    pub fn leaves(&self) -> (u32, u32) {
        if self.is_leaf() {
            return (u32::from(self.passes), 1);
        }
        self.children.iter().map(Self::leaves).fold((0, 0), |(passed, all), (more, of)| (passed + more, all + of))
    }
}

/// A child that an agent proposes; ids, order and counters are given by the runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChildSpec {
    /// Its title, at most 200 bytes.
    #[schemars(length(min = 1, max = 200))]
    pub title: String,
    /// The condition that must be true when it is done, at most 8 KiB.
    #[schemars(length(min = 1, max = 8192))]
    pub goal: String,
    /// Testable statements, at most 20 of at most 400 bytes each.
    #[schemars(length(max = 20), inner(length(max = 400)))]
    pub acceptance: Vec<String>,
}
