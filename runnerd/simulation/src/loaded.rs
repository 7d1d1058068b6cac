//! The committed state at one commit, and the texts of the files that it is read from.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use runner_config::RepoConfig;
use runner_core::committed_state::{CommittedState, StateFault, StateFiles};
use runner_core::files::layout;

use super::repository::{FileMap, SimulatedCommit};

/// Serializes a configuration.
pub(crate) fn config_text(config: &RepoConfig) -> String {
    toml::to_string(config).expect("a configuration can be written")
}

/// Parses a configuration; `None` if it is not valid.
pub(crate) fn read_config(text: &str) -> Option<RepoConfig> {
    runner_config::parse(text, Path::new(layout::CONFIG)).ok()
}

/// Returns the text of `GOAL.md`.
pub(crate) fn goal_text(id: &str, body: &str) -> String {
    format!("---\nid: \"{id}\"\n---\n{body}")
}

/// A commit and its state.
#[derive(Debug, Clone)]
pub(crate) struct LoadedState {
    /// The commit.
    pub(crate) commit: String,
    /// All of its files.
    pub(crate) files: Arc<FileMap>,
    /// Its state.
    pub(crate) state: CommittedState,
}

impl LoadedState {
    /// Reads the state of a commit; the error is a sentence.
    pub(crate) fn of(commit: &SimulatedCommit) -> Result<Self, String> {
        let read = |path: &str| commit.files.get(path).map(|blob| &*blob.bytes);
        let state = StateFiles::read(Path::new(""), read).committed_state();
        let state = state.map_err(|StateFault { path, fault }| format!("{path}: {fault}"))?;
        Ok(Self { commit: commit.id.clone(), files: Arc::clone(&commit.files), state })
    }
}

impl Deref for LoadedState {
    type Target = CommittedState;

    fn deref(&self) -> &CommittedState {
        &self.state
    }
}
