//! The validated numbers and choices of a repository's configuration that rules depend on.
//!
//! The daemon reads them from a file; `docs/configuration.md` explains each of them.

use protocol::words::Role;
use serde::{Deserialize, Serialize};

/// The configuration as far as rules need it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Budget of one iteration, agent, guard and reviewer together, in milliseconds.
    pub budget_ms: u64,
    /// Iterations of a run.
    pub max_iterations: u32,
    /// Attempts of a new node, at least 1.
    pub max_attempts_default: u32,
    /// Faults in a row that end a run, at least 1.
    pub max_consecutive_faults: u32,
    /// Equal answers in a row that end a run, at least 1.
    pub stall_after: u32,
    /// What a budget that ran out means.
    pub on_timeout: TimeoutPolicy,
    /// Whether planners and workers are kept apart.
    pub roles: RolesMode,
    /// What follows if the guard's definition differs from the accepted one.
    pub on_change: ChangePolicy,
    /// Who reviews a finished node.
    pub review: ReviewPolicy,
    /// Whether a person's review counts only with a signature.
    pub review_signed: bool,
    /// Ceiling of cost, in millionths of a US dollar.
    pub max_cost_micro_usd: Option<u64>,
    /// Ceiling of tokens, all kinds together.
    pub max_tokens: Option<u64>,
    /// Ceiling of time spent in sessions and guards, in milliseconds.
    pub max_run_ms: Option<u64>,
    /// The kinds of agents that sessions are asked of.
    pub kinds: AgentKinds,
}

/// The kinds of agents that sessions of each role are asked of: the one that is configured, then its fallbacks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentKinds {
    /// For sessions that work.
    pub work: Vec<String>,
    /// For sessions that plan.
    pub plan: Vec<String>,
    /// For sessions that review.
    pub review: Vec<String>,
}

impl AgentKinds {
    /// Returns those for a role, best first.
    pub fn for_role(&self, role: Role) -> &[String] {
        match role {
            Role::Worker | Role::Repair => &self.work,
            Role::Planner => &self.plan,
            Role::Reviewer => &self.review,
            Role::Human => &[],
        }
    }
}

/// What a budget that ran out means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutPolicy {
    /// The run ends as timed out.
    Stop,
    /// A session counts as a fault, a guard as red.
    Retry,
}

/// Whether planners and workers are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RolesMode {
    /// A session may plan or work.
    Auto,
    /// Planners do not touch code, workers do not decompose.
    Strict,
}

/// What follows if the guard's definition differs from the one that a person has accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangePolicy {
    /// The guard is run with both, and both must be green.
    #[default]
    Both,
    /// It is reported.
    Report,
    /// The accepted one is restored before the guard runs.
    Revert,
}

/// Who reviews a finished node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewPolicy {
    /// Nobody.
    Off,
    /// A reviewer's session.
    Agent,
    /// A person.
    Human,
}

impl Default for Policy {
    /// Returns the policy of the default configuration.
    fn default() -> Self {
        Self {
            budget_ms: 1_800_000,
            max_iterations: 100,
            max_attempts_default: 3,
            max_consecutive_faults: 3,
            stall_after: 5,
            on_timeout: TimeoutPolicy::Stop,
            roles: RolesMode::Auto,
            on_change: ChangePolicy::Both,
            review: ReviewPolicy::Off,
            review_signed: false,
            max_cost_micro_usd: None,
            max_tokens: None,
            max_run_ms: None,
            kinds: AgentKinds::default(),
        }
    }
}
