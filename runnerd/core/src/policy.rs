//! The validated numbers and choices of a repository's configuration that rules depend on.
//!
//! `docs/configuration.md` explains each of them.

use std::time::Duration;

use protocol::words::Role;
use runner_config::{ChangePolicy, Executor, RepoConfig, ReviewPolicy, RolesMode, TimeoutPolicy};
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
    /// Whether a red guard runs once more on the same files.
    pub flakes: bool,
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

impl From<&RepoConfig> for Policy {
    /// Returns the part of the configuration that rules need.
    fn from(config: &RepoConfig) -> Self {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let kind_names = |executor: &Executor| executor.kinds().into_iter().map(|kind| kind.to_string()).collect();
        Self {
            budget_ms: millis(config.iteration_timeout),
            max_iterations: config.max_iterations,
            max_attempts_default: config.max_attempts_default,
            max_consecutive_faults: config.max_consecutive_faults,
            stall_after: config.stall_after,
            on_timeout: config.on_timeout,
            roles: config.roles.mode,
            on_change: config.guard.on_change,
            flakes: config.guard.flakes,
            review: config.review.by,
            review_signed: config.review.sign,
            max_cost_micro_usd: config.max_cost.map(|cost| cost.0),
            max_tokens: config.max_tokens,
            max_run_ms: config.max_run.map(millis),
            kinds: AgentKinds {
                work: kind_names(&config.executor.work),
                plan: kind_names(&config.executor.plan),
                review: kind_names(&config.executor.review),
            },
        }
    }
}

impl Default for Policy {
    /// Returns the policy of the default configuration.
    fn default() -> Self {
        Self::from(&RepoConfig::default())
    }
}
