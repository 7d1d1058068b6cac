//! The `[executor]` section and its overrides: which agent runs, and how.
//!
//! The argument lists of known agents are in their backends.

use protocol::words::Role;
use serde::{Deserialize, Deserializer, Serialize};
use std::time::Duration;
use toml::{Table, Value};

use super::choice::choices;

choices! {
    /// The agent programs that can be run.
    ExecutorKind {
        /// `codex exec`.
        Codex = "codex",
        /// `claude -p`.
        Claude = "claude",
        /// `opencode run`.
        Opencode = "opencode",
        /// `gemini -p`.
        Gemini = "gemini",
        /// Any program, named by `command`.
        Command = "command",
    }
}

impl ExecutorKind {
    /// Whether the agent itself reports the cost of a session.
    pub const fn reports_cost(self) -> bool {
        match self {
            Self::Claude => true,
            Self::Codex | Self::Opencode | Self::Gemini | Self::Command => false,
        }
    }

    /// Whether the agent can be told an [`Effort`], whatever its model.
    pub const fn takes_effort(self) -> bool {
        match self {
            Self::Codex | Self::Claude => true,
            Self::Opencode | Self::Gemini | Self::Command => false,
        }
    }
}

choices! {
    /// How much a model thinks.
    Effort {
        /// Little.
        Low = "low",
        /// Some.
        Medium = "medium",
        /// Much.
        High = "high",
    }
}

choices! {
    /// What an agent's own sandbox allows.
    Sandbox {
        /// Nothing may be written.
        ReadOnly = "read-only",
        /// The repository may be written.
        WorkspaceWrite = "workspace-write",
        /// Everything is allowed.
        DangerFullAccess = "danger-full-access",
    }
}

/// What a session takes from the set-up that the person has for its program; nothing by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Inherited(Vec<String>);

impl Inherited {
    const SETTINGS: &str = "settings";
    const SKILLS: &str = "skills";
    const SERVER: &str = "mcp:";

    /// Whether a configuration may name this: settings, skills, or a server of the Model Context Protocol.
    pub(super) fn is_item(word: &str) -> bool {
        let is_name_char = |char: char| char.is_ascii_alphanumeric() || "-_".contains(char);
        let is_name = |name: &str| !name.is_empty() && name.len() <= 64 && name.chars().all(is_name_char);
        [Self::SETTINGS, Self::SKILLS].contains(&word) || word.strip_prefix(Self::SERVER).is_some_and(is_name)
    }

    /// Whether the program reads the person's settings, and runs what they name.
    pub fn has_settings(&self) -> bool {
        self.0.iter().any(|item| item == Self::SETTINGS)
    }

    /// Whether the program finds the person's skills.
    pub fn has_skills(&self) -> bool {
        self.0.iter().any(|item| item == Self::SKILLS)
    }

    /// Returns the names of the servers that the program starts.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|item| item.strip_prefix(Self::SERVER))
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns everything as the configuration spells it.
    pub fn items(&self) -> &[String] {
        &self.0
    }
}

/// How one kind of session is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executor {
    /// The agent program.
    pub kind: ExecutorKind,
    /// Program and arguments for [`ExecutorKind::Command`].
    pub command: Vec<String>,
    /// The model to ask for, if the agent is not to choose.
    pub model: Option<String>,
    /// How much the model is to think, if the agent is not to choose.
    pub effort: Option<Effort>,
    /// What the session takes from the person's own set-up of the program.
    #[serde(default)]
    pub inherit: Inherited,
    /// Extra arguments for the agent.
    #[serde(default)]
    pub extra_args: Vec<String>,
    /// Program and arguments put in front of the agent.
    pub wrapper: Vec<String>,
    /// Kinds to continue with while the service of this one is unavailable, best first.
    pub fallback: Vec<ExecutorKind>,
    /// Silence after which a session is ended.
    #[serde(rename = "idle_timeout_secs", with = "super::repository::secs")]
    pub idle_timeout: Duration,
    /// Bytes of output that are kept.
    pub output_limit_bytes: u64,
    /// What the agent's own sandbox allows.
    pub sandbox: Sandbox,
    /// Whether that sandbox allows the network.
    pub network: bool,
}

impl Executor {
    /// Returns the kinds to try for a session: its own, then the fallbacks.
    pub fn kinds(&self) -> Vec<ExecutorKind> {
        std::iter::once(self.kind).chain(self.fallback.iter().copied()).collect()
    }

    /// Returns the settings for running another kind instead: the model, its effort, extra arguments and what is
    /// inherited are specific to one program and are not passed to another.
    #[must_use]
    pub fn for_fallback(&self, kind: ExecutorKind) -> Self {
        let mut executor = self.clone();
        if kind != self.kind {
            executor.kind = kind;
            executor.model = None;
            executor.effort = None;
            executor.inherit = Inherited::default();
            executor.extra_args.clear();
        }
        executor
    }
}

/// The executors of a repository, overrides already applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Executors {
    /// Sessions that work.
    #[serde(flatten)]
    pub work: Executor,
    /// Sessions that plan.
    pub plan: Executor,
    /// Sessions that review.
    pub review: Executor,
}

impl Executors {
    /// Returns each executor with the section that describes it, the common one first.
    pub fn by_section(&self) -> [(&'static str, &Executor); 3] {
        [("executor", &self.work), ("executor.plan", &self.plan), ("executor.review", &self.review)]
    }
}

impl Executors {
    /// Returns the executor for sessions of a role.
    pub fn for_role(&self, role: Role) -> &Executor {
        match role {
            Role::Planner => &self.plan,
            Role::Reviewer => &self.review,
            Role::Worker | Role::Repair | Role::Human => &self.work,
        }
    }
}

impl<'de> Deserialize<'de> for Executors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut common = Table::deserialize(deserializer)?;
        let plan = common.remove("plan");
        let review = common.remove("review");
        let read = |table: Table| table.try_into().map_err(serde::de::Error::custom);
        Ok(Self {
            plan: read(apply_overrides(&common, plan))?,
            review: read(apply_overrides(&common, review))?,
            work: read(common)?,
        })
    }
}

fn apply_overrides(common: &Table, changes: Option<Value>) -> Table {
    let mut table = common.clone();
    let Some(Value::Table(changes)) = changes else {
        return table;
    };
    if changes.get("kind").is_some_and(|kind| common.get("kind") != Some(kind)) {
        table.remove("model");
        table.remove("effort");
        table.remove("inherit");
        table.remove("extra_args");
    }
    table.extend(changes);
    table
}
