//! The committed state of a run at one commit: the source of all decisions, prompts and audits.
//!
//! This is the only reader of these files. Callers pass the bytes of a commit, which come from git or from memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use protocol::state::{Feedback, RunState};
use protocol::test_record::TestRecord;
use protocol::tree::TaskTree;
use runner_config::RepoConfig;
use runner_config::goal::{self, Goal};
use serde::de::DeserializeOwned;

use crate::files::change::RunDocuments;
use crate::files::layout;
use crate::guard::definition::DefinitionState;
use crate::policy::Policy;
use crate::prompt::OVERRIDE_TEMPLATES;
use crate::run::{RunInputs, RunScratch};
use crate::tree;
use crate::tree::validate::{self, TreeFault};

/// The committed state at one commit.
#[derive(Debug, Clone)]
pub struct CommittedState {
    /// The configuration, with defaults filled in.
    pub config: Arc<RepoConfig>,
    /// The part of the configuration that rules need.
    pub policy: Arc<Policy>,
    /// The goal, from `GOAL.md`.
    pub goal: Arc<Goal>,
    /// The task tree, as committed.
    pub tree: Arc<TaskTree>,
    /// The bookkeeping, from `run_state.json`.
    pub run_state: Arc<RunState>,
    /// The feedback that sessions are given.
    pub feedback: Arc<Feedback>,
    /// The names of tests.
    pub tests: Arc<TestRecord>,
    /// Text files by path: configuration, progress, notes, memory and overrides of prompts.
    pub texts: BTreeMap<&'static str, Arc<str>>,
}

/// What is wrong with a file that decisions depend on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// There is nothing at its path.
    #[error("it is missing")]
    Missing,
    /// A link, a folder or a submodule is in its place.
    #[error("it is no file")]
    NoFile,
    /// The file is not a task tree that satisfies the rules of trees.
    #[error("{}", join_faults(.0))]
    Tree(Vec<TreeFault>),
    /// The file is malformed; the text says how.
    #[error("{0}")]
    Form(String),
    /// The file is malformed; the text names the file and says how.
    #[error("{0}")]
    NamedForm(String),
}

fn join_faults(faults: &[TreeFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A file that decisions depend on, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFault {
    /// The file, relative to the work tree.
    pub path: &'static str,
    /// What is wrong.
    pub fault: FileFault,
}

/// A parsed file, or what is wrong with it.
type FileResult<T> = Result<Arc<T>, FileFault>;

/// The files that decisions depend on, each parsed once; those of a commit, or only those that a commit changed.
///
/// Parsing is separate because it is slow and needs no other information.
#[derive(Debug, Clone, Default)]
pub struct StateFiles {
    config: Option<FileResult<(Arc<RepoConfig>, Arc<Policy>)>>,
    goal: Option<FileResult<Goal>>,
    tree: Option<FileResult<TaskTree>>,
    run_state: Option<FileResult<RunState>>,
    feedback: Option<FileResult<Feedback>>,
    tests: Option<FileResult<TestRecord>>,
    texts: BTreeMap<&'static str, Option<Arc<str>>>,
}

/// Returns the path of every file that decisions depend on, relative to the work tree.
pub fn state_paths() -> impl Iterator<Item = &'static str> {
    [layout::GOAL, layout::TREE, layout::RUN_STATE, layout::FEEDBACK, layout::TESTS].into_iter().chain(text_paths())
}

fn text_paths() -> impl Iterator<Item = &'static str> {
    let state = [layout::CONFIG, layout::PROGRESS, layout::NOTES].into_iter().chain(layout::MEMORY);
    state.chain(OVERRIDE_TEMPLATES.map(|(_, path)| path))
}

impl StateFiles {
    /// Parses the files of a commit; `read` returns the bytes at a path. `root` comes before the configuration's name in
    /// messages.
    pub fn read<'f>(root: &Path, read: impl Fn(&str) -> Option<&'f [u8]>) -> Self {
        let mut files = Self::default();
        for path in state_paths() {
            files.parse_file(path, read(path).ok_or(FileFault::Missing), root);
        }
        files
    }

    /// Parses the file at a path, or what it means that there is none; `root` comes before the configuration's name in
    /// messages. Other paths have no effect.
    pub fn parse_file(&mut self, path: &str, bytes: Result<&[u8], FileFault>, root: &Path) {
        if let Some(path) = text_paths().find(|known| *known == path) {
            let text = bytes.as_ref().ok().map(|bytes| String::from_utf8_lossy(bytes).into());
            self.texts.insert(path, text);
        }
        match path {
            layout::CONFIG => self.config = Some(parse_config(bytes.unwrap_or_default(), root)),
            layout::GOAL => self.goal = Some(bytes.and_then(parse_goal)),
            layout::TREE => self.tree = Some(bytes.and_then(parse_tree)),
            layout::RUN_STATE => self.run_state = Some(bytes.and_then(parse_json)),
            layout::FEEDBACK => self.feedback = Some(bytes.and_then(parse_json)),
            layout::TESTS => self.tests = Some(bytes.and_then(parse_json)),
            _ => {}
        }
    }

    /// Merges in files that were parsed later.
    pub fn update(&mut self, since: &Self) {
        self.config = since.config.clone().or_else(|| self.config.take());
        self.goal = since.goal.clone().or_else(|| self.goal.take());
        self.tree = since.tree.clone().or_else(|| self.tree.take());
        self.run_state = since.run_state.clone().or_else(|| self.run_state.take());
        self.feedback = since.feedback.clone().or_else(|| self.feedback.take());
        self.tests = since.tests.clone().or_else(|| self.tests.take());
        self.texts.extend(since.texts.iter().map(|(path, text)| (*path, text.clone())));
    }

    /// Returns the committed state, or the first file that cannot be parsed.
    pub fn committed_state(&self) -> Result<CommittedState, StateFault> {
        fn file<T>(path: &'static str, read: Option<&FileResult<T>>) -> Result<Arc<T>, StateFault> {
            let read = read.cloned().unwrap_or(Err(FileFault::Missing));
            read.map_err(|fault| StateFault { path, fault })
        }
        let default = || parse_config(b"", Path::new(""));
        // Faults are reported in this order.
        let tree = file(layout::TREE, self.tree.as_ref())?;
        let run_state = file(layout::RUN_STATE, self.run_state.as_ref())?;
        let feedback = file(layout::FEEDBACK, self.feedback.as_ref())?;
        let tests = file(layout::TESTS, self.tests.as_ref())?;
        let (config, policy) = (*file(layout::CONFIG, Some(&self.config.clone().unwrap_or_else(default)))?).clone();
        Ok(CommittedState {
            config,
            policy,
            goal: file(layout::GOAL, self.goal.as_ref())?,
            tree,
            run_state,
            feedback,
            tests,
            texts: self.texts.iter().filter_map(|(path, text)| Some((*path, text.clone()?))).collect(),
        })
    }

    /// Returns the task tree, if it can be parsed.
    pub fn tree(&self) -> Option<&TaskTree> {
        self.tree.as_ref()?.as_deref().ok()
    }

    /// Whether the configuration can be parsed and requests the guard on the base.
    pub(crate) fn asks_baseline(&self) -> bool {
        matches!(&self.config, Some(Ok(parsed)) if parsed.0.guard.baseline)
    }

    /// Returns the bookkeeping, if it can be parsed.
    pub fn run_state(&self) -> Option<&RunState> {
        self.run_state.as_ref()?.as_deref().ok()
    }
}

impl CommittedState {
    /// Returns a text file; empty if it does not exist.
    pub fn text(&self, path: &str) -> &str {
        self.texts.get(path).map_or("", |text| text)
    }

    /// Returns a text file, if it exists.
    pub fn existing_text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(|text| &**text)
    }

    /// Returns the state with another text file.
    #[must_use]
    pub fn with_text(mut self, path: &'static str, text: &str) -> Self {
        self.texts.insert(path, text.into());
        self
    }

    /// Whether the guard is still to be run on the base.
    pub fn is_baseline_due(&self) -> bool {
        self.config.guard.baseline && self.run_state.next_iter == 1 && self.feedback.baseline.is_none()
    }

    /// Returns the inputs for deciding the run's next step.
    pub fn run_inputs<'a>(&'a self, uncommitted: &'a RunScratch, now: Timestamp) -> RunInputs<'a> {
        RunInputs {
            policy: &self.policy,
            tree: &self.tree,
            run_state: &self.run_state,
            feedback: &self.feedback,
            review_decision: uncommitted.word.as_ref(),
            outages: &uncommitted.outages,
            retry_usage: &uncommitted.tried,
            now,
        }
    }

    /// Returns the documents that a person's request is applied to.
    pub fn documents(&self, definition_state: DefinitionState) -> RunDocuments {
        RunDocuments {
            tree: (*self.tree).clone(),
            notes: self.text(layout::NOTES).to_owned(),
            questions: self.text(layout::QUESTIONS).to_owned(),
            config: self.text(layout::CONFIG).to_owned(),
            run_state: (*self.run_state).clone(),
            definition_state,
            max_attempts: self.policy.max_attempts_default,
        }
    }
}

impl Default for CommittedState {
    /// Returns the state of a run that is new: a tree of one node, the default configuration, and no goal yet.
    fn default() -> Self {
        let config = RepoConfig::default();
        let policy = Policy::from(&config);
        let goal =
            Goal::parse(goal::TEMPLATE.as_bytes(), Path::new(layout::GOAL)).expect("BUG: the template is no goal");
        Self {
            tree: Arc::new(tree::new_tree(policy.max_attempts_default)),
            config: Arc::new(config),
            policy: Arc::new(policy),
            goal: Arc::new(goal),
            run_state: Arc::default(),
            feedback: Arc::default(),
            tests: Arc::default(),
            texts: BTreeMap::new(),
        }
    }
}

fn parse_config(bytes: &[u8], root: &Path) -> FileResult<(Arc<RepoConfig>, Arc<Policy>)> {
    let name = root.join(layout::CONFIG);
    let config = runner_config::decode_text(bytes, &name).and_then(|text| runner_config::parse(text, &name));
    let config = config.map_err(|error| FileFault::NamedForm(error.to_string()))?;
    let policy = Policy::from(&config);
    Ok(Arc::new((Arc::new(config), Arc::new(policy))))
}

fn parse_goal(bytes: &[u8]) -> FileResult<Goal> {
    let goal = Goal::parse(bytes, Path::new(layout::GOAL));
    goal.map(Arc::new).map_err(|error| FileFault::NamedForm(error.to_string()))
}

fn parse_tree(bytes: &[u8]) -> FileResult<TaskTree> {
    validate::load(bytes).map(Arc::new).map_err(FileFault::Tree)
}

fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> FileResult<T> {
    serde_json::from_slice(bytes).map(Arc::new).map_err(|error| FileFault::Form(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::to_canonical_json;

    fn new_files() -> BTreeMap<&'static str, Vec<u8>> {
        let state = CommittedState::default();
        let files = [
            (layout::GOAL, "---\nid: run-1\n---\n# Port it\n".to_owned()),
            (layout::TREE, tree::canonical(&state.tree)),
            (layout::RUN_STATE, to_canonical_json(&*state.run_state)),
            (layout::FEEDBACK, to_canonical_json(&*state.feedback)),
            (layout::TESTS, to_canonical_json(&*state.tests)),
        ];
        files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect()
    }

    fn read(files: &BTreeMap<&'static str, Vec<u8>>) -> Result<CommittedState, String> {
        let parsed = StateFiles::read(Path::new("/repo"), |path| files.get(path).map(Vec::as_slice));
        parsed.committed_state().map_err(|StateFault { path, fault }| format!("{path}: {fault}"))
    }

    #[test]
    fn every_file_but_the_texts_has_to_be_there() {
        let files = new_files();
        let state = read(&files).unwrap();
        assert_eq!((*state.config == RepoConfig::default(), state.goal.id()), (true, Some("run-1")));
        for path in files.keys() {
            let mut others = files.clone();
            others.remove(path);
            assert_eq!(read(&others).unwrap_err(), format!("{path}: it is missing"));
        }
    }

    #[test]
    fn a_configuration_that_is_no_text_is_invalid() {
        let mut files = new_files();
        files.insert(layout::CONFIG, b"# caf\xe9\n[guard]\n".to_vec());
        let config = layout::CONFIG;
        assert_eq!(read(&files).unwrap_err(), format!("{config}: /repo/{config}:1:6: invalid UTF-8"));
        files.insert(layout::CONFIG, "# café\n".into());
        assert_eq!(read(&files).unwrap().text(layout::CONFIG), "# café\n");
    }

    #[test]
    fn later_files_replace_earlier_ones_alone() {
        let mut files = StateFiles::default();
        for (path, text) in &new_files() {
            files.parse_file(path, Ok(text), Path::new(""));
        }
        let mut later = StateFiles::default();
        later.parse_file(layout::CONFIG, Ok(b"stall_after = 7\n"), Path::new(""));
        later.parse_file(layout::NOTES, Ok(b"- Mind this.\n"), Path::new(""));
        files.update(&later);
        let state = files.committed_state().unwrap();
        assert_eq!((state.policy.stall_after, state.text(layout::NOTES)), (7, "- Mind this.\n"));
        let mut gone = StateFiles::default();
        gone.parse_file(layout::NOTES, Err(FileFault::Missing), Path::new(""));
        files.update(&gone);
        assert_eq!(files.committed_state().unwrap().existing_text(layout::NOTES), None);
    }
}
