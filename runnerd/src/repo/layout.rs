//! Every path under `.runner/` in one work tree; who may write it is defined in `runner_core::files::layout`.
//!
//! Pure: neither checks nor creates any path.

use std::path::{Path, PathBuf};

use runner_core::files::layout;
pub use runner_core::files::layout::{PathOwnership, path_ownership};

/// The paths of one work tree; the constants are relative to its root, with `/` between names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The folder that contains everything else.
    pub const FOLDER: &str = layout::FOLDER;
    /// The goal.
    pub const GOAL: &str = layout::GOAL;
    /// The ignore rules for git under `.runner/`.
    pub const GITIGNORE: &str = layout::GITIGNORE;
    /// The attributes that make git store and check out everything there byte for byte.
    pub const GITATTRIBUTES: &str = layout::GITATTRIBUTES;
    /// The folder of committed state.
    pub const STATE: &str = layout::STATE;
    /// The task tree.
    pub const TREE: &str = layout::TREE;
    /// The tree's schema, for readers.
    pub const SCHEMA: &str = layout::SCHEMA;
    /// The schema of an agent's answer, for readers.
    pub const ANSWER_SCHEMA: &str = layout::ANSWER_SCHEMA;
    /// The configuration of the repository.
    pub const CONFIG: &str = layout::CONFIG;
    /// Bookkeeping of the current run.
    pub const RUN_STATE: &str = layout::RUN_STATE;
    /// What is remembered about the last attempt at each open node.
    pub const FEEDBACK: &str = layout::FEEDBACK;
    /// Names of the tests that passed, and of those that passed before and no longer do.
    pub const TESTS: &str = layout::TESTS;
    /// One line per passed node.
    pub const PROGRESS: &str = layout::PROGRESS;
    /// A person's guidance.
    pub const NOTES: &str = layout::NOTES;
    /// Assumptions that agents made.
    pub const ASSUMPTIONS: &str = layout::ASSUMPTIONS;
    /// Questions that agents ask.
    pub const QUESTIONS: &str = layout::QUESTIONS;
    /// What agents found important to remember.
    pub const GUARDRAILS: &str = layout::GUARDRAILS;
    /// Improvements that agents suggest.
    pub const IMPROVEMENTS: &str = layout::IMPROVEMENTS;
    /// The files that agents append to.
    pub const MEMORY: [&str; 4] = layout::MEMORY;
    /// The folder of what one session is given to read.
    pub const CONTEXT: &str = layout::CONTEXT;
    /// The records of iterations.
    pub const ITERATIONS: &str = layout::ITERATIONS;
    /// Context and artifacts of nodes.
    pub const NODES: &str = layout::NODES;
    /// Overrides of prompt templates.
    pub const PROMPTS: &str = layout::PROMPTS;

    /// Describes the work tree at `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the root of the work tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the absolute path of a name relative to the root.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Returns the path of the `.runner` folder.
    pub fn folder(&self) -> PathBuf {
        self.path(Self::FOLDER)
    }

    /// Returns the path of the goal.
    pub fn goal(&self) -> PathBuf {
        self.path(Self::GOAL)
    }

    /// Returns the path of the folder of committed state.
    pub fn state(&self) -> PathBuf {
        self.path(Self::STATE)
    }

    /// Returns the path of the task tree.
    pub fn tree(&self) -> PathBuf {
        self.path(Self::TREE)
    }

    /// Returns the path of the tree's schema.
    pub fn schema(&self) -> PathBuf {
        self.path(Self::SCHEMA)
    }

    /// Returns the path of the schema of an agent's answer.
    pub fn answer_schema(&self) -> PathBuf {
        self.path(Self::ANSWER_SCHEMA)
    }

    /// Returns the path of the configuration.
    pub fn config(&self) -> PathBuf {
        self.path(Self::CONFIG)
    }

    /// Returns the path of the run's bookkeeping.
    pub fn run_state(&self) -> PathBuf {
        self.path(Self::RUN_STATE)
    }

    /// Returns the path of the feedback on open nodes.
    pub fn feedback(&self) -> PathBuf {
        self.path(Self::FEEDBACK)
    }

    /// Returns the path of the list of passed nodes.
    pub fn progress(&self) -> PathBuf {
        self.path(Self::PROGRESS)
    }

    /// Returns the path of a person's notes.
    pub fn notes(&self) -> PathBuf {
        self.path(Self::NOTES)
    }

    /// Returns the paths of the files that agents append to.
    pub fn memory(&self) -> [PathBuf; 4] {
        Self::MEMORY.map(|relative| self.path(relative))
    }

    /// Returns the path of the folder that one session is given to read.
    pub fn context(&self) -> PathBuf {
        self.path(Self::CONTEXT)
    }

    /// Returns the path of a run's records.
    pub fn run_records(&self, run: &str) -> PathBuf {
        self.path(Self::ITERATIONS).join(run)
    }

    /// Returns the path of the record of an iteration.
    pub fn iteration(&self, run: &str, iteration: u32) -> PathBuf {
        self.run_records(run).join(format!("{iteration:04}"))
    }

    /// Returns the path of the record of the `wait`-th attempt of an iteration that left no commit.
    pub fn waited_iteration(&self, run: &str, iteration: u32, wait: u32) -> PathBuf {
        self.run_records(run).join(format!("{iteration:04}.w{wait}"))
    }

    /// Returns the path of the folder of nodes.
    pub fn nodes(&self) -> PathBuf {
        self.path(Self::NODES)
    }

    /// Returns the path of one node's folder.
    pub fn node(&self, id: &str) -> PathBuf {
        self.nodes().join(id)
    }

    /// Returns the path of the folder of prompt templates.
    pub fn prompts(&self) -> PathBuf {
        self.path(Self::PROMPTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_are_numbered_with_four_digits() {
        let layout = Layout::new("/repo");
        assert_eq!(layout.iteration("run-1", 7), Path::new("/repo/.runner/iterations/run-1/0007"));
        assert_eq!(layout.iteration("run-1", 12345), Path::new("/repo/.runner/iterations/run-1/12345"));
        let waited = layout.waited_iteration("run-1", 7, 2);
        assert_eq!(waited, Path::new("/repo/.runner/iterations/run-1/0007.w2"));
    }
}
