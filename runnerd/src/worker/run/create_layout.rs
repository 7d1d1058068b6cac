//! Creates what is missing of `.runner/`: as HEAD has it, else with the defaults.

use std::collections::BTreeMap;

use protocol::state::{Feedback, RunState};
use protocol::test_record::TestRecord;
use runner_config::{RepoConfig, SetupProposal};
use runner_core::text::json;
use runner_core::tree;
use runner_core::tree::schema;
use runner_git::{GitError, Id, Repository};

use crate::repo::init::{InitError, InitOptions, InitReport, init_layout, text_paths};
use crate::repo::layout::Layout;

/// Files of the layout that only the rules write, and the configuration.
const STATE_PATHS: [&str; 7] = [
    Layout::TREE,
    Layout::SCHEMA,
    Layout::ANSWER_SCHEMA,
    Layout::RUN_STATE,
    Layout::FEEDBACK,
    Layout::TESTS,
    Layout::CONFIG,
];

/// Returns the files of the layout that a commit has.
pub fn read_committed_layout(
    repository: &Repository,
    commit: Option<Id>,
) -> Result<BTreeMap<&'static str, Vec<u8>>, GitError> {
    let Some(commit) = commit else { return Ok(BTreeMap::new()) };
    repository.read_files(&commit, STATE_PATHS.into_iter().chain(text_paths()))
}

/// Creates what is missing of `.runner/`, as `committed` has it, the files of HEAD; else with this configuration.
pub fn create_layout(
    layout: &Layout,
    force: bool,
    config_text: String,
    committed: &BTreeMap<&'static str, Vec<u8>>,
) -> Result<InitReport, InitError> {
    let config = RepoConfig::default();
    let texts = [
        tree::canonical(&tree::new_tree(config.max_attempts_default)),
        schema::tree_schema_text(),
        schema::answer_schema_text(),
        json::to_canonical_json(&RunState::default()),
        json::to_canonical_json(&Feedback::default()),
        json::to_canonical_json(&TestRecord::default()),
        config_text,
    ];
    let files: Vec<(&str, &[u8])> = STATE_PATHS.into_iter().zip(texts.iter().map(String::as_bytes)).collect();
    init_layout(layout, &InitOptions { force, goal: None, files: &files, committed: Some(committed) })
}

/// Proposes settings for workspaces of the work tree; `None` if it cannot be listed, which does not prevent the layout.
pub fn propose_workspace(layout: &Layout) -> Option<SetupProposal> {
    let entries = std::fs::read_dir(layout.root()).into_iter().flatten().flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    SetupProposal::detect(&names)
}
