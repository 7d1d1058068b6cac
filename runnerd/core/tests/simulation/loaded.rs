//! The committed state that decisions are based on, and the initial files of a run.

use std::sync::Arc;

use protocol::state::{Feedback, RunState};
use protocol::test_record::TestRecord;
use protocol::tree::TaskTree;
use runner_core::audit::{AuditSettings, FileFault, FileReaders, GoalFile};
use runner_core::change::ChangeRequest;
use runner_core::policy::Policy;
use runner_core::run::{RunInputs, RunScratch};
use runner_core::{json, layout, validate};
use serde::{Deserialize, Serialize};

use super::repository::{Commit, Files};

/// Takes the place of `config.toml`, whose format is not part of the rules.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Config {
    /// The policy for the rules.
    pub(crate) policy: Policy,
    /// Whether the guard also runs on the base.
    pub(crate) baseline: bool,
    /// The globs that name the guard's definition.
    pub(crate) definition: Vec<String>,
}

impl Config {
    /// Serializes the file.
    pub(crate) fn text(&self) -> String {
        json::to_canonical_json(self)
    }

    /// Parses the file.
    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| error.to_string())
    }
}

/// How an audit reads configuration and goal.
pub(crate) const READERS: FileReaders = FileReaders {
    config: |text| settings(text).map_err(FileFault::Form),
    goal: |text| goal(text).map_err(FileFault::Form),
    rename_goal: |text, id| Some(goal_text(id, &goal(text).ok()?.body)),
    is_definition_path: is_definition,
    config_change: |_, base, text, summary| {
        let key = summary.split(' ').next()?.to_owned();
        let value = summary.strip_prefix(&format!("{key} is "))?.to_owned();
        Some(ChangeRequest::Config { key, value: Some(value), base: base.to_owned(), text: text.to_owned() })
    },
};

/// Reads a configuration as an audit does.
pub(crate) fn settings(text: &[u8]) -> Result<AuditSettings, String> {
    let Config { policy, baseline, definition: _ } = Config::read(text)?;
    let criteria = "It has tests.".to_owned();
    Ok(AuditSettings { policy, guard_command: guard_command(), criteria, baseline, prompt_bytes: 40_960 })
}

/// Returns the command of every guard.
pub(crate) fn guard_command() -> Vec<String> {
    vec!["just".to_owned(), "ci".to_owned()]
}

/// Whether a path is one of these, or below one that ends in a slash.
pub(crate) fn is_definition(names: &[String], path: &str) -> bool {
    let is_named = |name: &str| name == path || name.ends_with('/') && path.starts_with(name);
    names.iter().any(|name| is_named(name.strip_prefix('/').unwrap_or(name)))
}

fn goal(text: &[u8]) -> Result<GoalFile, String> {
    let text = str::from_utf8(text).map_err(|error| error.to_string())?;
    let (id, body) = text.split_once('\n').ok_or("one line")?;
    let id = id.strip_prefix("id: ").ok_or("no id")?;
    Ok(GoalFile { id: (id != "null").then(|| id.to_owned()), body: body.to_owned() })
}

/// Returns the text of `GOAL.md`.
pub(crate) fn goal_text(id: &str, body: &str) -> String {
    format!("id: {id}\n{body}")
}

/// The state at one commit.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// The commit.
    pub(crate) commit: String,
    /// All of its files.
    pub(crate) files: Arc<Files>,
    /// The task tree.
    pub(crate) tree: TaskTree,
    /// The bookkeeping.
    pub(crate) run_state: RunState,
    /// The feedback.
    pub(crate) feedback: Feedback,
    /// The names of tests.
    pub(crate) tests: TestRecord,
    /// The configuration.
    pub(crate) settings: AuditSettings,
    /// The globs that name the guard's definition there.
    pub(crate) definition: Vec<String>,
    /// The goal.
    pub(crate) goal: GoalFile,
}

impl Loaded {
    /// Reads the state of a commit; the error is a sentence.
    pub(crate) fn of(commit: &Commit) -> Result<Self, String> {
        let bytes = |path: &str| commit.files.get(path).map(|blob| &*blob.bytes).unwrap_or_default();
        let faults =
            |faults: Vec<validate::TreeFault>| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Ok(Self {
            commit: commit.id.clone(),
            files: Arc::clone(&commit.files),
            tree: validate::load(bytes(layout::TREE)).map_err(faults)?,
            run_state: serde_json::from_slice(bytes(layout::RUN_STATE)).map_err(|error| error.to_string())?,
            feedback: serde_json::from_slice(bytes(layout::FEEDBACK)).map_err(|error| error.to_string())?,
            tests: serde_json::from_slice(bytes(layout::TESTS)).map_err(|error| error.to_string())?,
            settings: settings(bytes(layout::CONFIG))?,
            definition: Config::read(bytes(layout::CONFIG))?.definition,
            goal: goal(bytes(layout::GOAL))?,
        })
    }

    /// Returns a text file of the commit; empty if it does not exist.
    pub(crate) fn text(&self, path: &str) -> String {
        self.files.get(path).map_or_else(String::new, |blob| String::from_utf8_lossy(&blob.bytes).into_owned())
    }

    /// Returns the inputs of `run::decide_next`.
    pub(crate) fn standing<'a>(&'a self, uncommitted: &'a RunScratch, now: jiff::Timestamp) -> RunInputs<'a> {
        RunInputs {
            policy: &self.settings.policy,
            tree: &self.tree,
            run_state: &self.run_state,
            feedback: &self.feedback,
            review_decision: uncommitted.word.as_ref(),
            outages: &uncommitted.outages,
            retry_usage: &uncommitted.tried,
            now,
        }
    }
}
