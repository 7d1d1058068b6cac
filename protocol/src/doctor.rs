//! Facts about a repository that only the daemon can see, for `doctor`; the client judges them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WirePath;

/// The first git that can be kept from using configuration written by a session (`GIT_CONFIG_GLOBAL`); runs are not
/// driven with an older one.
pub const OLDEST_GIT: [u32; 2] = [2, 32];
/// The first git that can merge trees without a working tree (`merge-tree --write-tree`), as landing needs.
pub const LANDING_GIT: [u32; 2] = [2, 38];
/// The number of workspaces, as large as the largest one, for which the disk should still have room.
pub const SPARE_WORKSPACES: u64 = 3;

/// `doctor.repository`: how the daemon would work in a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepositoryFacts {
    /// The working tree.
    pub path: WirePath,
    /// Whether `.runner/` exists.
    pub has_layout: bool,
    /// Features of this repository that need the git program instead of the library; each entry names the setting.
    pub by_program: Vec<String>,
    /// The rule by which git would change the runner's files; null without such a rule.
    #[serde(default)]
    pub attribute: Option<AttributeFault>,
    /// Lock files of git: left behind, or in use.
    pub locks: Vec<WirePath>,
    /// An operation of git in progress, such as a merge or a rebase.
    pub operation: Option<String>,
    /// Whether this user has confirmed the commands of the configuration, or wrote it on this machine; null if the
    /// configuration cannot be read.
    pub confirmed: Option<bool>,
    /// The files that a run would watch for the guard; null if the configuration or the commit at HEAD cannot be read.
    pub guard: Option<GuardFiles>,
    /// Suggested settings for workspaces of isolated runs; null if the kind of project is unknown, or the section is
    /// already set.
    pub workspace: Option<WorkspaceProposal>,
    /// Whether a new run finds settings in its base, in the working tree, or in the previous run.
    #[serde(default)]
    pub has_settings: bool,
    /// A suggested guard; null if the kind of project is unknown.
    #[serde(default)]
    pub guard_suggestion: Option<GuardSuggestion>,
    /// The first commands that workflows of a CI service run.
    #[serde(default)]
    pub ci_commands: Vec<String>,
    /// Whether the repository has no commit yet.
    #[serde(default)]
    pub unborn: bool,
    /// The first uncommitted paths of the working tree; they prevent the start of a run in place.
    #[serde(default)]
    pub uncommitted: Vec<String>,
}

/// A suggested `guard.command` for a known kind of project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuardSuggestion {
    /// The command.
    pub command: Vec<String>,
    /// The file and the entry in it that led to the command.
    pub reason: String,
}

/// A rule in git's attributes that changes the runner's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttributeFault {
    /// The rule, with its file and line.
    pub what: String,
    /// The fix.
    pub fix: String,
}

/// Suggested settings in `[workspace]` for a known kind of project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceProposal {
    /// Names at the root of the working tree from which the kind of project was detected.
    pub by: Vec<String>,
    /// For `workspace.copy`.
    pub copy: Vec<String>,
    /// For `workspace.setup`.
    pub setup: Vec<String>,
}

/// The files that determine the guard's result, and are watched for changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuardFiles {
    /// Their paths, in order.
    pub watched: Vec<String>,
    /// Whether no file is watched although the guard may read some: changes to them go unnoticed.
    pub is_blind: bool,
    /// Commands that run files which the runner cannot identify, as `FILE: COMMAND`; empty if the configuration names
    /// files. Only the first ones.
    pub unknown: Vec<String>,
}

/// An agent of a repository's configuration. `doctor.agents` lists each program once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFacts {
    /// The section that names it.
    pub section: String,
    /// Its kind.
    pub kind: String,
    /// Whether it can work.
    pub fitness: AgentFitness,
}

/// Whether an agent can work, judged from files, variables and its reported version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum AgentFitness {
    /// No problem was found.
    Fit {
        /// Its version; null for a program that the configuration names, which is not asked.
        version: Option<String>,
        /// The newest version that was tested, if its own is newer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tested: Option<String>,
        /// Whether it has a login; null if unknown.
        login: Option<bool>,
    },
    /// It cannot work until a person changes something.
    Unfit {
        /// The problem.
        what: String,
        /// The fix.
        fix: String,
    },
    /// Its version could not be determined.
    Unknown {
        /// The reason.
        why: String,
    },
}
