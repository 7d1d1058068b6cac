//! A case: the task, its repository, the agent, and the checks that decide whether the task is done.
//!
//! Plain values: `parse` reads them from a file, `find` finds the files; nothing here runs anything.

mod file;
pub(crate) mod find;
mod parse;
mod position;
mod source;
mod trace;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::file::CaseFile;
pub(crate) use self::parse::{is_id, parse};
pub(crate) use self::source::SourceText;
pub(crate) use self::trace::{GeneratedPosition, trace_to_case};
use crate::outcome::Outcome;

/// A case that can be run.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Path of the case file.
    pub(crate) file: PathBuf,
    /// Text of the case file.
    pub(crate) text: String,
    /// SHA-256 of the case file and its template folder.
    pub(crate) digest: String,
    pub(crate) id: String,
    pub(crate) goal: String,
    /// Expected outcome of a run.
    pub(crate) expect: Outcome,
    /// Time limit of a run, from its start to its end.
    pub(crate) limit: Duration,
    /// Keys of the repository's configuration.
    pub(crate) config: toml::Table,
    /// Keys of the daemon's configuration.
    pub(crate) daemon: toml::Table,
    /// Environment variables of agent, guard and checks.
    pub(crate) env: BTreeMap<String, String>,
    /// Files of the repository, by path.
    pub(crate) files: BTreeMap<String, String>,
    /// Folder whose contents the repository starts with.
    pub(crate) template: Option<PathBuf>,
    /// A shell script that plays the agent.
    pub(crate) script: Option<String>,
    /// The task tree that the run starts with.
    pub(crate) tree: Option<toml::Table>,
    pub(crate) requires: Requires,
    pub(crate) checks: Vec<CaseCheck>,
}

/// What a machine must have, or the case is skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requires {
    /// Programs in `PATH`.
    #[serde(default)]
    pub(crate) programs: Vec<String>,
    /// Kinds of agents, one of which must be installed; a run uses the first one that is.
    #[serde(default)]
    pub(crate) agents: Vec<String>,
    /// Variables that must be set.
    #[serde(default)]
    pub(crate) variables: Vec<String>,
}

/// One check and its name in results.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CaseCheck {
    pub(crate) name: String,
    pub(crate) rule: CheckRule,
}

/// What a check examines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CheckRule {
    /// The path exists.
    FileExists { path: String },
    /// The file's contents match the pattern.
    FileMatches { path: String, pattern: String },
    /// A command exits 0.
    CommandSucceeds {
        cmd: Vec<String>,
        seconds: u64,
        /// Folder whose files are copied over the work tree first.
        overlay: Option<PathBuf>,
    },
    /// Every leaf passes.
    RunnerCompleted,
    /// `runnerctl verify` finds nothing.
    BranchVerifies,
    /// The run stayed within these limits.
    AtMost(RunLimits),
}

/// Limits of an `at_most` check; `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct RunLimits {
    pub(crate) iterations: Option<u64>,
    pub(crate) attempts: Option<u64>,
    pub(crate) tokens: Option<u64>,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) seconds: Option<u64>,
}

impl CheckRule {
    /// Returns the keyword used in case files.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::FileExists { .. } => "file_exists",
            Self::FileMatches { .. } => "file_matches",
            Self::CommandSucceeds { .. } => "command_succeeds",
            Self::RunnerCompleted => "runner_completed",
            Self::BranchVerifies => "branch_verifies",
            Self::AtMost(_) => "at_most",
        }
    }

    /// Returns the name of a check that the case leaves unnamed.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::FileExists { path } => format!("{path} exists"),
            Self::FileMatches { path, pattern } => format!("{path} matches {pattern}"),
            Self::CommandSucceeds { cmd, .. } => cmd.join(" "),
            Self::RunnerCompleted => "the run completed".into(),
            Self::BranchVerifies => "the branch verifies".into(),
            Self::AtMost(ceilings) => ceilings.describe(),
        }
    }
}

impl RunLimits {
    fn describe(self) -> String {
        let describe_limit = |of: Option<u64>, what: &str| of.map(|of| format!("{of} {what}"));
        let parts = [
            describe_limit(self.iterations, "iterations"),
            describe_limit(self.attempts, "attempts"),
            describe_limit(self.tokens, "tokens"),
            self.cost_usd.map(|cost| format!("${cost}")),
            describe_limit(self.seconds, "seconds"),
        ];
        format!("at most {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

impl Case {
    /// Returns the kind of agent that the case configures.
    pub(crate) fn executor(&self) -> Option<String> {
        self.config.get("executor")?.get("kind")?.as_str().map(str::to_owned)
    }

    /// Returns the guard command, if the case configures one.
    pub(crate) fn guard(&self) -> Option<Vec<String>> {
        let words = self.config.get("guard")?.get("command")?.as_array()?;
        words.iter().map(|word| word.as_str().map(str::to_owned)).collect()
    }
}
