//! Parameters of the requests with which runs begin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WirePath;
use crate::request::CallerEnv;

/// `run.init`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InitParams {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// Overwrite existing files.
    #[serde(default)]
    pub force: bool,
    /// The caller's own defaults, for a new configuration.
    #[serde(default)]
    pub defaults: Option<UserDefaults>,
}

/// A person's own defaults for every repository, from the settings of their client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserDefaults {
    /// The text of a configuration, with each key on the line where it is in the file.
    pub text: String,
    /// The file.
    pub file: WirePath,
}

/// `run.start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct StartParams {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// Text of a new goal, at most 64 KiB.
    #[serde(default)]
    pub goal: Option<String>,
    /// The source file of the goal, if it may be in the working tree; it may be uncommitted.
    #[serde(default)]
    pub goal_file: Option<WirePath>,
    /// Id of the run.
    #[serde(default)]
    pub id: Option<String>,
    /// Revision from which the branch starts.
    #[serde(default)]
    pub base: Option<String>,
    /// Short name of the branch that the result is to land on; default: the one that is checked out.
    #[serde(default)]
    pub onto: Option<String>,
    /// Keep the task tree even if the id changes.
    #[serde(default)]
    pub keep_tree: bool,
    /// Queue the run paused.
    #[serde(default)]
    pub queue_only: bool,
    /// Whether the run works in a separate workspace instead of this working tree; default: `[workspace] kind`.
    #[serde(default)]
    pub isolated: Option<bool>,
    /// Whether a new run whose base has no configuration uses the defaults instead of the settings of the newest run
    /// that the daemon started in the repository.
    #[serde(default)]
    pub default_config: bool,
    /// The caller's own defaults, for a new run with neither a configuration nor the settings of another run.
    #[serde(default)]
    pub defaults: Option<UserDefaults>,
    /// Whether the commands in the repository's configuration are confirmed.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment.
    #[serde(default)]
    pub env: CallerEnv,
}

/// `run.fork`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkParams {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// Id of the run to fork, or a unique prefix; default: the only one that has not ended, otherwise the last one.
    #[serde(default)]
    pub run: Option<String>,
    /// Number of the iteration from whose commit the new run starts.
    pub iter: u32,
    /// Id of the new run.
    #[serde(default)]
    pub id: Option<String>,
    /// Queue the new run paused.
    #[serde(default)]
    pub queue_only: bool,
    /// Whether the commands in the commit's configuration are confirmed.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment.
    #[serde(default)]
    pub env: CallerEnv,
}
