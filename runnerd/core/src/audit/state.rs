//! The files of a commit under `.runner/`, carried along from commit to commit: only what a commit changed is parsed
//! again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::state::{Feedback, RunState};
use protocol::test_record::TestRecord;
use protocol::tree::TaskTree;
use serde::de::DeserializeOwned;

use super::commit_data::{AuditSettings, FileFault, FileReaders, GoalFile, PathChange, PathEntry};
use crate::{layout, tree, validate};

/// A parsed file, or what is wrong with it.
type FileResult<T> = Result<Arc<T>, FileFault>;

/// The parsed files that decisions depend on, for the paths that a commit changed.
///
/// Parsing is separate because it is slow and needs no other information.
#[derive(Debug, Clone, Default)]
pub struct ParsedFiles {
    tree: Option<FileResult<TaskTree>>,
    bookkeeping: Option<FileResult<RunState>>,
    feedback: Option<FileResult<Feedback>>,
    tests: Option<FileResult<TestRecord>>,
    settings: Option<FileResult<AuditSettings>>,
    goal: Option<FileResult<GoalFile>>,
}

/// The files of one commit under `.runner/`.
#[derive(Debug, Clone)]
pub(super) struct RunnerFiles {
    files: Arc<BTreeMap<Vec<u8>, PathEntry>>,
    /// The parsed files, including those from earlier commits.
    parsed: ParsedFiles,
}

/// The files of a commit in which everything that decisions depend on can be parsed.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommittedState<'a> {
    state: &'a RunnerFiles,
    /// The task tree.
    pub tree: &'a TaskTree,
    /// The run's bookkeeping.
    pub run_state: &'a RunState,
    /// The feedback.
    pub feedback: &'a Feedback,
    /// The names of tests.
    pub tests: &'a TestRecord,
    /// The configuration.
    pub settings: &'a AuditSettings,
    /// The goal.
    pub goal: &'a GoalFile,
}

impl ParsedFiles {
    /// Parses the files that a commit changed.
    pub fn parse(changes: &[PathChange], readers: &FileReaders) -> Self {
        let mut parsed = Self::default();
        for change in changes {
            parsed.parse_file(&change.path, change.new.as_ref(), readers);
        }
        parsed
    }

    /// Merges in files that were parsed later.
    fn update(&mut self, since: &Self) {
        self.tree = since.tree.clone().or_else(|| self.tree.take());
        self.bookkeeping = since.bookkeeping.clone().or_else(|| self.bookkeeping.take());
        self.feedback = since.feedback.clone().or_else(|| self.feedback.take());
        self.tests = since.tests.clone().or_else(|| self.tests.take());
        self.settings = since.settings.clone().or_else(|| self.settings.take());
        self.goal = since.goal.clone().or_else(|| self.goal.take());
    }

    fn parse_file(&mut self, path: &[u8], stored: Option<&PathEntry>, readers: &FileReaders) {
        let text = match stored {
            None => Err(FileFault::Missing),
            Some(stored) => stored.content.as_deref().ok_or(FileFault::NoFile),
        };
        match str::from_utf8(path).unwrap_or_default() {
            layout::TREE => self.tree = Some(text.and_then(parse_tree).map(Arc::new)),
            layout::RUN_STATE => self.bookkeeping = Some(text.and_then(parse_json).map(Arc::new)),
            layout::FEEDBACK => self.feedback = Some(text.and_then(parse_json).map(Arc::new)),
            layout::TESTS => self.tests = Some(text.and_then(parse_json).map(Arc::new)),
            layout::CONFIG => self.settings = Some((readers.config)(text.unwrap_or_default()).map(Arc::new)),
            layout::GOAL => self.goal = Some(text.and_then(readers.goal).map(Arc::new)),
            _ => {}
        }
    }
}

impl RunnerFiles {
    /// Returns the state of a commit without any files.
    pub(super) fn empty(readers: &FileReaders) -> Self {
        let settings = Some((readers.config)(b"").map(Arc::new));
        Self { files: Arc::default(), parsed: ParsedFiles { settings, ..ParsedFiles::default() } }
    }

    /// Applies a commit's changes.
    pub(super) fn apply_changes(&mut self, changes: &[PathChange], parsed: &ParsedFiles) {
        for change in changes.iter().filter(|change| change.path.starts_with(b".runner/")) {
            let files = Arc::make_mut(&mut self.files);
            match &change.new {
                Some(stored) => files.insert(change.path.clone(), stored.clone()),
                None => files.remove(&change.path),
            };
        }
        self.parsed.update(parsed);
    }

    /// Returns the files that decisions depend on, or the path of the first one that cannot be parsed and why.
    pub(super) fn committed_state(&self) -> Result<CommittedState<'_>, (&'static str, &FileFault)> {
        fn file<'a, T>(
            path: &'static str,
            read: Option<&'a FileResult<T>>,
        ) -> Result<&'a T, (&'static str, &'a FileFault)> {
            read.ok_or((path, &FileFault::Missing))?.as_deref().map_err(|fault| (path, fault))
        }
        let read = &self.parsed;
        Ok(CommittedState {
            state: self,
            tree: file(layout::TREE, read.tree.as_ref())?,
            run_state: file(layout::RUN_STATE, read.bookkeeping.as_ref())?,
            feedback: file(layout::FEEDBACK, read.feedback.as_ref())?,
            tests: file(layout::TESTS, read.tests.as_ref())?,
            settings: file(layout::CONFIG, read.settings.as_ref())?,
            goal: file(layout::GOAL, read.goal.as_ref())?,
        })
    }

    /// Returns the task tree, if it can be parsed.
    pub(super) fn tree(&self) -> Option<&TaskTree> {
        self.parsed.tree.as_ref()?.as_deref().ok()
    }

    /// Whether the configuration can be parsed and requests the guard on the base.
    pub(super) fn asks_baseline(&self) -> bool {
        matches!(&self.parsed.settings, Some(Ok(settings)) if settings.baseline)
    }

    /// Returns the bookkeeping, if it can be parsed.
    pub(super) fn run_state(&self) -> Option<&RunState> {
        self.parsed.bookkeeping.as_ref()?.as_deref().ok()
    }

    /// Returns the bytes of a file; `None` if there is none.
    pub(super) fn bytes(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path.as_bytes())?.content.as_deref()
    }
}

impl<'a> CommittedState<'a> {
    /// Returns all files of the commit.
    pub(super) fn state(&self) -> &'a RunnerFiles {
        self.state
    }

    /// Whether the guard is still to be run on the base.
    pub(super) fn is_baseline_due(&self) -> bool {
        self.settings.baseline && self.run_state.next_iter == 1 && self.feedback.baseline.is_none()
    }

    /// Returns the bytes of a file; `None` if there is none.
    pub(super) fn bytes(&self, path: &str) -> Option<&[u8]> {
        self.state.bytes(path)
    }

    /// Returns a text file; empty if there is none.
    pub(super) fn text(&self, path: &str) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes(path).unwrap_or_default())
    }
}

/// Returns the ids of the leaves that pass.
pub(super) fn passed_leaves(tree: &TaskTree) -> Vec<String> {
    let leaves = tree::walk(tree).into_iter().map(|placed| placed.node);
    leaves.filter(|node| node.is_leaf() && node.passes).map(|node| node.id.clone()).collect()
}

fn parse_tree(text: &[u8]) -> Result<TaskTree, FileFault> {
    validate::load(text).map_err(FileFault::Tree)
}

fn parse_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, FileFault> {
    serde_json::from_slice(text).map_err(|error| FileFault::Form(error.to_string()))
}
