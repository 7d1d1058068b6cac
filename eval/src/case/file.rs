//! The contents of a case file as written; `parse` validates it and turns it into a [`Case`](super::Case).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::Requires;
use crate::outcome::Outcome;

/// A case file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EvalCase")]
pub(crate) struct CaseFile {
    /// The case itself.
    pub(super) case: Header,
    /// Any key of the repository's configuration, as in `.runner/state/config.toml`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub(super) config: toml::Table,
    /// Any key of the daemon's configuration.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub(super) daemon: toml::Table,
    /// Variables of agent, guard and checks.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub(super) env: BTreeMap<String, Spanned<String>>,
    /// Texts of files, by their paths in the repository; one that begins with `#!` can be executed.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub(super) files: BTreeMap<Spanned<String>, String>,
    /// A scripted agent.
    #[serde(default)]
    pub(super) agent: Option<AgentForm>,
    /// The task tree that the run begins with, as in `tree.json`.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub(super) tree: Option<toml::Table>,
    /// What a machine must have.
    #[serde(default)]
    pub(super) requires: Requires,
    /// By what a run is judged.
    #[serde(default)]
    #[schemars(with = "Vec<CheckForm>")]
    pub(super) checks: Vec<Spanned<CheckForm>>,
}

/// `[case]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    /// Lower-case letters, digits, `-` and `_`.
    #[schemars(with = "String")]
    pub(super) id: Spanned<String>,
    /// What is to be true, in Markdown; the goal of the run.
    #[schemars(with = "String")]
    pub(super) goal: Spanned<String>,
    /// How a run is expected to come out.
    #[serde(default)]
    pub(super) expect: Outcome,
    /// Seconds from the start of the run to its end; then it is cancelled and has timed out.
    #[serde(default = "one_hour")]
    #[schemars(with = "u64")]
    pub(super) limit_secs: Spanned<u64>,
    /// A folder beside the file that the repository begins as.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub(super) template: Option<Spanned<String>>,
}

/// `[agent]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentForm {
    /// POSIX shell, run once per session: `$session` counts from 1, `answer STATUS SUMMARY [CHILDREN]` answers.
    pub(super) script: String,
}

/// `[[checks]]`: the type says which of the other keys it has.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckForm {
    /// `file_exists`, `file_matches`, `command_succeeds`, `runner_completed`, `branch_verifies` or `at_most`.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// What it is called in results; by default made of the rest.
    pub(super) name: Option<String>,
    /// Of `file_exists` and `file_matches`: a path in the repository.
    pub(super) path: Option<String>,
    /// Of `file_matches`: a regular expression.
    pub(super) pattern: Option<String>,
    /// Of `command_succeeds`: program and arguments.
    pub(super) cmd: Option<Vec<String>>,
    /// Of `command_succeeds`: time that it has, 60 by default. Of `at_most`: time of the run.
    pub(super) seconds: Option<u64>,
    /// Of `command_succeeds`: a folder beside the file whose files are laid over the work tree before: tests that the run has not
    /// seen.
    pub(super) overlay: Option<String>,
    /// Of `at_most`: iterations of the run.
    pub(super) iterations: Option<u64>,
    /// Of `at_most`: attempts that were charged, over all nodes.
    pub(super) attempts: Option<u64>,
    /// Of `at_most`: tokens that the run read and wrote, those from a cache included. A number that is not known is too much.
    pub(super) tokens: Option<u64>,
    /// Of `at_most`: what the run cost, in dollars. A cost that is not known is too much.
    pub(super) cost_usd: Option<f64>,
}

fn one_hour() -> Spanned<u64> {
    Spanned::new(0..0, 3600)
}
