//! The committed bookkeeping of a run: `run_state.json` and `feedback.json`.
//!
//! Plain data, strictly parsed. `runner-core` decides how it changes from one iteration to the next.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::SessionUsage;
use crate::flakes::FlakyTest;
use crate::words::{GuardOutcome, IterationStatus, VerdictName};

/// `run_state.json`: the state that the next iteration needs besides the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunState {
    /// Id of the run; null before the first start.
    pub run_id: Option<String>,
    /// Commit from which the run started.
    pub base: Option<String>,
    /// Number of the next iteration, from 1.
    pub next_iter: u32,
    /// Task of the last iteration.
    pub last_node: Option<String>,
    /// `status=` of the last iteration.
    pub last_status: Option<IterationStatus>,
    /// Summary of the last answer.
    pub last_summary: Option<String>,
    /// `guard=` of the last iteration.
    pub last_guard: Option<GuardOutcome>,
    /// Whether a person must review the last iteration, whatever `[review]` says: with a changed definition of the guard,
    /// tests that passed before no longer do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub review_required: bool,
    /// Faults since the last answer.
    pub consecutive_faults: u32,
    /// Repetitions of the same status and summary.
    pub stall: Stall,
    /// Consecutive `decomposed` answers, without a pass or another answer in between.
    pub decomposed_in_row: u32,
    /// Consecutive unrequested interruptions on one task.
    pub deaths: Deaths,
    /// Tasks that were already made smaller once.
    pub narrowed: Vec<String>,
    /// Task whose sessions have the repair role.
    pub repair: Option<String>,
    /// Files that stay in the working tree and are not on the branch.
    pub held_back: Vec<String>,
    /// Submodules with uncommitted work, which the branch lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dirty_submodules: Vec<String>,
    /// Notes that are no longer in the prompt, because a session has returned an answer.
    pub notes_used: Vec<String>,
    /// Iterations granted beyond `max_iterations`.
    pub allowance: u32,
    /// Files of the guard definition, with the blob that a person last accepted: its id, prefixed by `100755:` for an
    /// executable file, or `120000:` for a link.
    pub guard_definition: BTreeMap<String, String>,
    /// Paths under `.runner/` that the last iteration changed without permission.
    pub reverted: Vec<String>,
    /// Paths of the working tree that were moved away while the last session ran: its program would have obeyed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// Tests that failed in this run and then passed on the same files, last first, at most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flakes: Vec<FlakyTest>,
    /// Tokens and cost of the run.
    pub usage: UsageTotal,
    /// Time spent in sessions and guards, the baseline included, in milliseconds.
    pub elapsed_ms: u64,
}

impl Default for RunState {
    /// Returns the state before the first start.
    fn default() -> Self {
        Self {
            run_id: None,
            base: None,
            next_iter: 1,
            last_node: None,
            last_status: None,
            last_summary: None,
            last_guard: None,
            review_required: false,
            consecutive_faults: 0,
            stall: Stall::default(),
            decomposed_in_row: 0,
            deaths: Deaths::default(),
            narrowed: Vec::new(),
            repair: None,
            held_back: Vec::new(),
            dirty_submodules: Vec::new(),
            notes_used: Vec::new(),
            allowance: 0,
            guard_definition: BTreeMap::new(),
            reverted: Vec::new(),
            hidden: Vec::new(),
            flakes: Vec::new(),
            usage: UsageTotal::default(),
            elapsed_ms: 0,
        }
    }
}

/// Repetitions of the same status and summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Digest of the status and the normalised summary.
    pub digest: Option<String>,
    /// Number of consecutive occurrences.
    pub count: u32,
}

/// Unrequested interruptions on one task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deaths {
    /// The task.
    pub node: Option<String>,
    /// Number of consecutive occurrences.
    pub count: u32,
}

/// The total consumption of sessions: null if no session reported it, and too low if some did not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageTotal {
    /// Sessions that were started.
    pub sessions: u64,
    /// Input tokens not read from a cache.
    pub input_tokens: Option<u64>,
    /// Input tokens read from a cache.
    pub cached_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// Cost in millionths of a US dollar.
    pub cost_micro_usd: Option<u64>,
    /// Sessions that did not report their tokens.
    #[serde(default, skip_serializing_if = "is_none")]
    pub tokens_unknown: u64,
    /// Sessions of unknown cost.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cost_unknown: u64,
}

impl From<&SessionUsage> for UsageTotal {
    /// The consumption of one session as a total.
    fn from(session: &SessionUsage) -> Self {
        let are_tokens_known = session.input_tokens.is_some() && session.output_tokens.is_some();
        Self {
            sessions: 1,
            input_tokens: session.input_tokens,
            cached_tokens: session.cached_tokens,
            output_tokens: session.output_tokens,
            cost_micro_usd: session.cost_micro_usd,
            tokens_unknown: u64::from(!are_tokens_known),
            cost_unknown: u64::from(session.cost_micro_usd.is_none()),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_none(sessions: &u64) -> bool {
    *sessions == 0
}

/// `feedback.json`: the results of previous sessions that the next session on a task needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Feedback {
    /// The guard's result on the base.
    pub baseline: Option<Baseline>,
    /// Open tasks by id.
    pub nodes: BTreeMap<String, NodeFeedback>,
}

/// The guard's result on the base, before any session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Whether it was green.
    pub guard: GuardOutcome,
    /// Its output, shortened, if it was not green and no guard has been green since.
    pub output: Option<String>,
    /// The first iteration whose guard was green, if this one was not.
    pub green_at: Option<u32>,
}

/// The feedback from the sessions on one task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeFeedback {
    /// The last attempts, oldest first, at most 8.
    pub history: Vec<Attempt>,
    /// Open failures, oldest first: the last red guard until a guard is green, the last rejection until a review
    /// accepts, an invalid tree until it is repaired, and any other failure until a session has returned a result.
    pub failures: Vec<Failure>,
}

/// One past session on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// Number of the iteration.
    pub iter: u32,
    /// How it ended.
    pub verdict: VerdictName,
    /// Details of that end, on one line: the exit code of the guard and its failures, else the start of the failure.
    pub detail: Option<String>,
    /// The agent's summary, bounded.
    pub summary: Option<String>,
    /// Shortened digest of the essential part of the failure, if the agent's work failed: attempts with the same digest
    /// failed in the same way.
    pub failure_digest: Option<String>,
}

/// Why an attempt did not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Number of the iteration.
    pub iter: u32,
    /// How the attempt ended.
    pub verdict: VerdictName,
    /// The evidence: guard output, the broken rule, or the reviewer's reasons, bounded.
    pub text: String,
    /// The text of an invalid tree, bounded.
    pub invalid_tree: Option<String>,
}
