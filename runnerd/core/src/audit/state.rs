//! The files of a commit that rules and prompts read, carried along from commit to commit: only what a commit changed is parsed
//! again.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use protocol::state::RunState;
use protocol::tree::TaskTree;
use runner_config::is_instruction_path;

use super::commit_data::{PathChange, PathEntry};
use crate::committed_state::{CommittedState, FileFault, StateFault, StateFiles};
use crate::tree;

/// The files of one commit under `.runner/`, and the repository's instructions.
#[derive(Debug, Clone, Default)]
pub(super) struct RunnerFiles {
    files: Arc<BTreeMap<Vec<u8>, PathEntry>>,
    /// The parsed files, including those from earlier commits.
    parsed: StateFiles,
}

/// A commit in which everything that decisions depend on can be parsed.
#[derive(Debug, Clone)]
pub(super) struct AuditedState<'a> {
    files: &'a RunnerFiles,
    state: CommittedState,
}

/// Parses the files that decisions depend on, for the paths that a commit changed.
pub fn parse_changes(changes: &[PathChange]) -> StateFiles {
    let mut parsed = StateFiles::default();
    for change in changes {
        let bytes = match &change.new {
            None => Err(FileFault::Missing),
            Some(stored) => stored.content.as_deref().ok_or(FileFault::NoFile),
        };
        parsed.parse_file(str::from_utf8(&change.path).unwrap_or_default(), bytes, Path::new(""));
    }
    parsed
}

impl RunnerFiles {
    /// Applies a commit's changes.
    pub(super) fn apply_changes(&mut self, changes: &[PathChange], parsed: &StateFiles) {
        let is_carried = |path: &[u8]| path.starts_with(b".runner/") || is_instruction_path(path);
        for change in changes.iter().filter(|change| is_carried(&change.path)) {
            let files = Arc::make_mut(&mut self.files);
            match &change.new {
                Some(stored) => files.insert(change.path.clone(), stored.clone()),
                None => files.remove(&change.path),
            };
        }
        self.parsed.update(parsed);
    }

    /// Returns the files that decisions depend on, or the first one that cannot be parsed.
    pub(super) fn committed_state(&self) -> Result<AuditedState<'_>, StateFault> {
        Ok(AuditedState { files: self, state: self.parsed.committed_state()? })
    }

    /// Returns the task tree, if it can be parsed.
    pub(super) fn tree(&self) -> Option<&TaskTree> {
        self.parsed.tree()
    }

    /// Whether the configuration can be parsed and requests the guard on the base.
    pub(super) fn asks_baseline(&self) -> bool {
        self.parsed.asks_baseline()
    }

    /// Returns the bookkeeping, if it can be parsed.
    pub(super) fn run_state(&self) -> Option<&RunState> {
        self.parsed.run_state()
    }

    /// Returns the bytes of a file; `None` if there is none.
    pub(super) fn bytes(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path.as_bytes())?.content.as_deref()
    }
}

impl<'a> AuditedState<'a> {
    /// Returns all files of the commit.
    pub(super) fn files(&self) -> &'a RunnerFiles {
        self.files
    }

    /// Returns the bytes of a file; `None` if there is none.
    pub(super) fn bytes(&self, path: &str) -> Option<&[u8]> {
        self.files.bytes(path)
    }
}

impl Deref for AuditedState<'_> {
    type Target = CommittedState;

    fn deref(&self) -> &CommittedState {
        &self.state
    }
}

/// Returns the ids of the leaves that pass.
pub(super) fn passed_leaves(tree: &TaskTree) -> Vec<String> {
    let leaves = tree::walk(tree).into_iter().map(|placed| placed.node);
    leaves.filter(|node| node.is_leaf() && node.passes).map(|node| node.id.clone()).collect()
}
