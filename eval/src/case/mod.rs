//! A case: what is to be done, in which repository, with which agent, and by what it is known to be done.
//!
//! Plain values. `parse` makes them of a file, `find` finds the files; nothing here runs anything.

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
    /// Its file.
    pub(crate) file: PathBuf,
    /// What stands in it.
    pub(crate) text: String,
    /// SHA-256 of the file and of its template folder.
    pub(crate) digest: String,
    pub(crate) id: String,
    pub(crate) goal: String,
    /// How a run is expected to come out.
    pub(crate) expect: Outcome,
    /// Time from the start of the run to its end.
    pub(crate) limit: Duration,
    /// Keys of the repository's configuration.
    pub(crate) config: toml::Table,
    /// Keys of the daemon's own configuration.
    pub(crate) daemon: toml::Table,
    /// Variables of agent, guard and checks.
    pub(crate) env: BTreeMap<String, String>,
    /// Files of the repository, by path.
    pub(crate) files: BTreeMap<String, String>,
    /// A folder that the repository begins as.
    pub(crate) template: Option<PathBuf>,
    /// A shell script that plays the agent.
    pub(crate) script: Option<String>,
    /// The task tree that the run begins with.
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

/// One check, and what it is called in results.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CaseCheck {
    pub(crate) name: String,
    pub(crate) rule: CheckRule,
}

/// What a check looks at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CheckRule {
    /// There is something at the path.
    FileExists { path: String },
    /// A file holds what the pattern describes.
    FileMatches { path: String, pattern: String },
    /// A command exits 0.
    CommandSucceeds {
        cmd: Vec<String>,
        seconds: u64,
        /// A folder whose files are laid over the work tree before.
        overlay: Option<PathBuf>,
    },
    /// Every leaf passes.
    RunnerCompleted,
    /// `runnerctl verify` finds nothing.
    BranchVerifies,
    /// The run took no more than that.
    AtMost(RunLimits),
}

/// Ceilings of an `at_most`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct RunLimits {
    pub(crate) iterations: Option<u64>,
    pub(crate) attempts: Option<u64>,
    pub(crate) tokens: Option<u64>,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) seconds: Option<u64>,
}

impl CheckRule {
    /// Returns its word in a case file.
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

    /// Returns what it is called where the case gives it no name.
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
        let whole = |of: Option<u64>, what: &str| of.map(|of| format!("{of} {what}"));
        let parts = [
            whole(self.iterations, "iterations"),
            whole(self.attempts, "attempts"),
            whole(self.tokens, "tokens"),
            self.cost_usd.map(|cost| format!("${cost}")),
            whole(self.seconds, "seconds"),
        ];
        format!("at most {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

impl Case {
    /// Returns the kind of agent that it configures.
    pub(crate) fn executor(&self) -> Option<String> {
        self.config.get("executor")?.get("kind")?.as_str().map(str::to_owned)
    }

    /// Returns the command of its guard, where it names one.
    pub(crate) fn guard(&self) -> Option<Vec<String>> {
        let words = self.config.get("guard")?.get("command")?.as_array()?;
        words.iter().map(|word| word.as_str().map(str::to_owned)).collect()
    }
}
