//! A repository's `config.toml` as types, one struct per section.
//!
//! Defaults and bounds are in [`super::table`]; the meaning of each key is there too.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use protocol::words::Containment;
use serde::{Deserialize, Serialize};
use toml::Table;

use super::error::{ConfigError, ConfigProblem};
use super::executor::{Executor, ExecutorKind, Executors};
use super::money::{MicroUsd, Price};
use super::parse::{self, ConfigSource};
use super::pattern::Patterns;
use super::table;
use super::value_enums::{ChangePolicy, PublishExtras, ReviewPolicy, RolesMode, TimeoutPolicy, WorkspaceKind};

/// The configuration of one repository, complete and checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepoConfig {
    /// Iterations after which a run stops.
    pub max_iterations: u32,
    /// Attempts that a new task gets.
    pub max_attempts_default: u32,
    /// Faults in a row after which a run fails.
    pub max_consecutive_faults: u32,
    /// Times in a row that an agent may say the same.
    pub stall_after: u32,
    /// Time for one iteration.
    #[serde(rename = "iteration_timeout_secs", with = "secs")]
    pub iteration_timeout: Duration,
    /// What an iteration out of time does.
    pub on_timeout: TimeoutPolicy,
    /// Cost after which a run stops.
    #[serde(rename = "max_cost_usd")]
    pub max_cost: Option<MicroUsd>,
    /// Tokens after which a run stops.
    pub max_tokens: Option<u64>,
    /// Working time after which a run stops.
    #[serde(rename = "max_run_secs", with = "optional_secs", default)]
    pub max_run: Option<Duration>,
    /// The agents.
    pub executor: Executors,
    /// How work is divided between sessions.
    pub roles: RolesConfig,
    /// The command that decides.
    pub guard: GuardConfig,
    /// The second opinion.
    pub review: ReviewConfig,
    /// Settings of the prompts.
    pub prompt: PromptConfig,
    /// Branches and commits.
    pub git: GitConfig,
    /// What a run may change.
    pub scope: ScopeConfig,
    /// Where a run works.
    pub workspace: WorkspaceConfig,
    /// How a run that is driven as a job is published.
    pub publish: PublishConfig,
    /// How processes are contained.
    pub containment: ContainmentConfig,
    /// Prices by model, or by kind if no model is set.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
    /// Variables that are passed on.
    pub env: EnvConfig,
    /// Programs that are called with events.
    pub hooks: HooksConfig,
    /// How a result is delivered to others.
    pub deliver: DeliverConfig,
}

/// The `[roles]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolesConfig {
    /// How sessions divide planning and working.
    pub mode: RolesMode,
}

/// The `[guard]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardConfig {
    /// Program and arguments, never empty.
    pub command: Vec<String>,
    /// Bytes of output that are kept.
    pub output_limit_bytes: u64,
    /// Paths that say what the guard does, beside those that its command reaches.
    pub definition: Option<Patterns>,
    /// What follows when an agent changed one of them.
    pub on_change: ChangePolicy,
    /// The reports of test runners that name the tests; empty if the output names them.
    pub reports: Patterns,
    /// Whether the guard runs before the first session.
    pub baseline: bool,
    /// Whether a red guard runs once more on the same files.
    pub flakes: bool,
}

/// The `[review]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewConfig {
    /// Who reviews.
    pub by: ReviewPolicy,
    /// What to look for; may be empty.
    pub criteria: String,
    /// Whether a person's review counts only with their signature.
    pub sign: bool,
}

/// The `[prompt]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptConfig {
    /// Bytes that a prompt may have.
    pub budget_bytes: u64,
    /// Files in the root of the repository that every prompt quotes.
    pub instructions: Vec<String>,
}

/// Whether a file can be named in `[prompt] instructions`: Markdown in the root of the repository.
pub fn is_instruction_path(path: &[u8]) -> bool {
    path.ends_with(b".md") && !path.contains(&b'/')
}

/// The `[git]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitConfig {
    /// Branches named here are protected beside those that always are: see [`Self::protects`].
    pub protected_branches: Patterns,
    /// Untracked files that are not committed.
    pub hold_back: Patterns,
    /// Untracked files over this size are not committed.
    pub max_file_bytes: u64,
    /// Whether git signs the commits.
    pub sign: bool,
}

impl GuardConfig {
    /// Returns the globs of files that define what the guard does; `None` if not configured.
    pub fn definition_globs(&self) -> Option<&[String]> {
        self.definition.as_ref().map(Patterns::as_slice)
    }
}

impl GitConfig {
    /// Whether a branch, named without `refs/heads/`, must never be worked on.
    pub fn protects(&self, branch: &str) -> bool {
        matches!(branch, "main" | "master") || self.protected_branches.matches_name(branch)
    }
}

/// The `[scope]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeConfig {
    /// Files that may be changed.
    pub write: Patterns,
    /// Files that must not be changed, whatever `write` names.
    pub never: Patterns,
}

/// The `[workspace]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceConfig {
    /// Where a run works, unless its start says otherwise.
    pub kind: WorkspaceKind,
    /// What is copied into a workspace of that which the repository ignores.
    pub copy: Patterns,
    /// Program and arguments that make a workspace ready; empty for none.
    pub setup: Vec<String>,
    /// Time for that.
    #[serde(rename = "setup_timeout_secs", with = "secs")]
    pub setup_timeout: Duration,
}

impl WorkspaceConfig {
    /// Whether anything is copied into a workspace or run in it.
    pub fn needs_setup(&self) -> bool {
        !self.copy.as_slice().is_empty() || !self.setup.is_empty()
    }
}

impl Default for WorkspaceConfig {
    fn default() -> Self {
        RepoConfig::default().workspace
    }
}

/// The `[publish]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishConfig {
    /// Commits that the remote may be behind by before the run waits for it.
    pub unpublished_max: u32,
    /// Where the remote gets what belongs to the run beside its branch.
    pub extras: PublishExtras,
}

impl Default for PublishConfig {
    fn default() -> Self {
        RepoConfig::default().publish
    }
}

/// The `[containment]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainmentConfig {
    /// The least that the system must offer.
    pub require: Containment,
}

/// The `[env]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvConfig {
    /// Variables for agents.
    pub agent: Patterns,
    /// Variables for guards.
    pub guard: Patterns,
}

/// The `[hooks]` section; an empty list means no hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HooksConfig {
    /// The goal is met.
    pub on_complete: Vec<String>,
    /// A task has no attempts left.
    pub on_stuck: Vec<String>,
    /// A run ended or halted for another reason.
    pub on_stop: Vec<String>,
    /// An agent left a question.
    pub on_question: Vec<String>,
}

impl HooksConfig {
    /// Returns each hook with its key.
    pub fn by_key(&self) -> [(&'static str, &Vec<String>); 4] {
        [
            ("hooks.on_complete", &self.on_complete),
            ("hooks.on_stuck", &self.on_stuck),
            ("hooks.on_stop", &self.on_stop),
            ("hooks.on_question", &self.on_question),
        ]
    }
}

/// The `[deliver]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliverConfig {
    /// The remote that is pushed to.
    pub remote: String,
    /// The branch that is to take the result.
    pub base: Option<String>,
    /// Opens a request; may be empty.
    pub command: Vec<String>,
    /// Whether a client that waits for a run delivers it.
    pub on_complete: bool,
}

/// Parses a repository's configuration; `file` is the name used in messages.
pub fn parse(text: &str, file: &Path) -> Result<RepoConfig, ConfigError> {
    static DEFAULTS: LazyLock<Table> = LazyLock::new(|| parse::default_table(table::REPOSITORY));
    let source = ConfigSource { text, file };
    let config: RepoConfig = parse::parse_typed(table::REPOSITORY, &DEFAULTS, source)?;
    if let Some((section, name)) = find_missing_command(&config.executor) {
        let value = ExecutorKind::Command.as_str();
        let needed = "executor.command".to_owned();
        let problem = |key| ConfigProblem::Requires { key, value, needed };
        return Err(error_in_section(source, section, name, problem));
    }
    if let Some((section, name, kind)) = find_key_for_other_kind(&config.executor) {
        let problem = |key| ConfigProblem::NotForKind { key, kind: kind.as_str() };
        return Err(error_in_section(source, section, name, problem));
    }
    if let Some(section) = find_wrapped_inherit(&config.executor) {
        let problem = |key| ConfigProblem::NotWithWrapper { key };
        return Err(error_in_section(source, section, "inherit", problem));
    }
    Ok(config)
}

fn error_in_section(
    source: ConfigSource<'_>,
    section: &str,
    name: &str,
    problem: impl FnOnce(String) -> ConfigProblem,
) -> ConfigError {
    let path: Vec<_> = section.split('.').chain([name]).collect();
    source.error_at_key(&path, problem(path.join(".")))
}

/// Finds a section that runs `command` without setting it, and the key that requires it.
fn find_missing_command(executors: &Executors) -> Option<(&'static str, &'static str)> {
    executors.by_section().into_iter().find_map(|(section, executor)| {
        let key = if executor.kind == ExecutorKind::Command {
            "kind"
        } else if executor.fallback.contains(&ExecutorKind::Command) {
            "fallback"
        } else {
            return None;
        };
        executor.command.is_empty().then_some((section, key))
    })
}

/// Finds a section that sets an effort, or something to inherit, for an agent without such a setting, and the key.
fn find_key_for_other_kind(executors: &Executors) -> Option<(&'static str, &'static str, ExecutorKind)> {
    executors.by_section().into_iter().find_map(|(section, Executor { kind, effort, inherit, .. })| {
        let has_set_up = *kind != ExecutorKind::Command;
        let keys =
            [("effort", effort.is_some() && !kind.takes_effort()), ("inherit", !inherit.is_empty() && !has_set_up)];
        keys.into_iter().find(|(_, is_unusable)| *is_unusable).map(|(key, _)| (section, key, *kind))
    })
}

/// Finds a section that inherits behind a wrapper, where the program has the home that the wrapper shows.
fn find_wrapped_inherit(executors: &Executors) -> Option<&'static str> {
    let is_wrapped = |executor: &Executor| !executor.inherit.is_empty() && !executor.wrapper.is_empty();
    executors.by_section().into_iter().find(|(_, executor)| is_wrapped(executor)).map(|(section, _)| section)
}

impl Default for RepoConfig {
    fn default() -> Self {
        static DEFAULT: LazyLock<RepoConfig> = LazyLock::new(|| {
            parse("", Path::new("")).expect("BUG: the defaults in the table of keys do not fit the types")
        });
        DEFAULT.clone()
    }
}

/// Durations as whole seconds.
pub(super) mod secs {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(duration.as_secs())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_secs)
    }
}

/// Durations as whole seconds that may be absent.
mod optional_secs {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        duration.as_ref().map(Duration::as_secs).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_secs))
    }
}
