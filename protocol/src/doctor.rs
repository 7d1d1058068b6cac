//! Facts about a repository that only the daemon can see, for `doctor`; the client judges them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WirePath;

/// The first git that can be kept from configuration that a session has written (`GIT_CONFIG_GLOBAL`): no run is driven with an
/// older one.
pub const OLDEST_GIT: [u32; 2] = [2, 32];
/// The first git that merges trees by themselves (`merge-tree --write-tree`), which results of runs land with.
pub const LANDING_GIT: [u32; 2] = [2, 38];
/// Workspaces like the largest one that a disk should have room for yet.
pub const SPARE_WORKSPACES: u64 = 3;

/// `doctor.repository`: how the daemon would work in a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepositoryFacts {
    /// The work tree.
    pub path: WirePath,
    /// Whether `.runner/` is there.
    pub has_layout: bool,
    /// What of this repository the library does not do as git does, so that the git program works on the work tree; each
    /// names the setting.
    pub by_program: Vec<String>,
    /// The rule by which git would change the runner's files; null where there is none.
    #[serde(default)]
    pub attribute: Option<AttributeFault>,
    /// Lock files of git's that are there: left behind, or in use.
    pub locks: Vec<WirePath>,
    /// A merge, a rebase or the like that is under way.
    pub operation: Option<String>,
    /// Whether this user has confirmed the commands of the configuration, or has written it here; null where it cannot be read.
    pub confirmed: Option<bool>,
    /// What a run would watch for the guard; null where the configuration or the commit at HEAD cannot be read.
    pub guard: Option<GuardFiles>,
    /// What could be set for workspaces of isolated runs; null where nothing is known, or something is set.
    pub workspace: Option<WorkspaceProposal>,
}

/// A rule of git's attributes that changes the runner's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttributeFault {
    /// The rule, with its file and line.
    pub what: String,
    /// What to do.
    pub fix: String,
}

/// What could be set in `[workspace]` for a project of a known kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceProposal {
    /// Names at the root of the work tree that it is told from.
    pub by: Vec<String>,
    /// For `workspace.copy`.
    pub copy: Vec<String>,
    /// For `workspace.setup`.
    pub setup: Vec<String>,
}

/// The files that say what the guard does, and are watched for changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuardFiles {
    /// Their paths, in order.
    pub watched: Vec<String>,
    /// Whether none is, though the guard may read some: whoever changes these changes unseen what the guard does.
    pub is_blind: bool,
    /// Commands that run files of which nobody can tell which these are, as `FILE: COMMAND`; none where the configuration
    /// names files. Of many the first.
    pub unknown: Vec<String>,
}

/// An agent of a repository's configuration; in `doctor.agents`, once per program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFacts {
    /// The section that names it.
    pub section: String,
    /// Its kind.
    pub kind: String,
    /// How it is.
    pub fitness: AgentFitness,
}

/// Whether an agent can work, as far as files, variables and its word on its version tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum AgentFitness {
    /// Nothing speaks against it.
    Fit {
        /// Its version; null for a program that the configuration names, which is not asked.
        version: Option<String>,
        /// Whether it has a login; null where that cannot be seen.
        login: Option<bool>,
    },
    /// It cannot work until a person changes something.
    Unfit {
        /// What is wrong.
        what: String,
        /// What to do.
        fix: String,
    },
    /// It could not be asked.
    Unknown {
        /// Why not.
        why: String,
    },
}
