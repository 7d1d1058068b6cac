//! `meta.json`: the facts of one iteration's record.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::SessionUsage;
use crate::state::UsageTotal;
use crate::words::{
    Containment, FailureClass, GuardOutcome, IterationStatus, Mode, PhaseName, ReviewVerdict, Role, VerdictName,
};

/// The facts of one iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IterationMeta {
    /// Id of the run.
    pub run: String,
    /// Number of the iteration.
    pub iter: u32,
    /// Commit at which the session began.
    pub from: String,
    /// Node that was worked on.
    pub node: String,
    /// Ids from the root to the node, both included.
    pub node_path: Vec<String>,
    /// What the session was asked to be.
    pub role: Role,
    /// What the iteration did.
    pub mode: Mode,
    /// Kind and version of the agent.
    pub agent: String,
    /// By which the agent's service knows the session; null where the agent does not say.
    pub session_id: Option<String>,
    /// How it ended.
    pub verdict: VerdictName,
    /// Details of the verdict, where it has any.
    pub detail: Option<String>,
    /// `status=` of the commit.
    pub status: IterationStatus,
    /// `guard=` of the commit.
    pub guard: GuardOutcome,
    /// Exit of the agent: a code, or a negative signal number.
    pub agent_exit: Option<i32>,
    /// Exit of the guard, likewise.
    pub guard_exit: Option<i32>,
    /// When it began.
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// When it ended.
    #[schemars(with = "String")]
    pub ended_at: Timestamp,
    /// How long each phase took.
    pub phases: Vec<PhaseTime>,
    /// Bytes of the agent's output that were kept.
    pub captured_bytes: u64,
    /// Bytes of the agent's output that were dropped.
    pub dropped_bytes: u64,
    /// Why the agent gave no answer; null where it gave one, or was not let finish.
    pub failure: Option<SessionFailure>,
    /// What the session consumed, without reviewers.
    pub usage: SessionUsage,
    /// The review; null where nobody was asked.
    pub review: Option<ReviewFacts>,
    /// How tightly its processes were held.
    pub containment: Containment,
    /// Processes that outlived their leader and were ended.
    pub survivors_ended: u32,
    /// Files that the session changed and that hold secrets.
    pub secrets: Vec<SecretFinding>,
    /// Logs that are not complete because the disk refused a part of them: the file, and why.
    pub log_faults: Vec<String>,
    /// Branches and tags of others that its processes moved, each with where it was and where it is.
    pub moved_refs: Vec<String>,
    /// Files that stay in the work tree and out of its commit.
    pub held_back: Vec<String>,
    /// Paths that its processes changed without right, and that were put back.
    pub reverted: Vec<String>,
    /// Submodules with work inside that is not committed there; its commit lacks it.
    pub dirty_submodules: Vec<String>,
    /// Files of the guard's definition that were not as a person has accepted them.
    pub guard_changed: Vec<String>,
    /// Whether the guard was run with the accepted definition too, and `guard` is how that ended.
    pub guard_with_accepted: bool,
    /// The commit it ended in; null where nothing changed and none was made.
    pub commit: Option<String>,
}

impl IterationMeta {
    /// Returns how long it took, in milliseconds; 0 where a clock was set back meanwhile.
    pub fn duration_ms(&self) -> u64 {
        u64::try_from(self.ended_at.duration_since(self.started_at).as_millis()).unwrap_or(0)
    }
}

/// Why a session gave no answer, and by what that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionFailure {
    /// The class; null where nothing that was seen is known to mean anything.
    pub class: Option<FailureClass>,
    /// The line of the table of signatures that told the class, where one did.
    pub signature: Option<String>,
    /// When the service is expected back, where it said so.
    #[schemars(with = "Option<String>")]
    pub until: Option<Timestamp>,
    /// What the agent showed of its failure, each as `field: value`, bounded; what is structural comes first.
    pub evidence: Vec<String>,
}

/// The facts of a review. What was said is in `review.json` of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewFacts {
    /// Kind and version of the reviewer; `human` for a person.
    pub by: String,
    /// What was decided; null where nothing was.
    pub verdict: Option<ReviewVerdict>,
    /// By which the reviewer's service knows the session; null where the reviewer does not say.
    pub session_id: Option<String>,
    /// Times that a reviewer was asked; 0 for a person.
    pub tries: u32,
    /// Why the last one gave no answer; null where it gave one, or was not let finish.
    pub failure: Option<SessionFailure>,
    /// What reviewers consumed.
    pub usage: UsageTotal,
    /// What reviewers wrote outside of the record: kept under `refs/runner/rescue/` and undone.
    pub wrote: Vec<String>,
}

/// A known secret in a file of the agent's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretFinding {
    /// Path relative to the work tree; a secret in its name is replaced.
    pub path: String,
    /// The variable whose value it is.
    pub variable: String,
}

/// The time one phase took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseTime {
    /// The phase.
    pub phase: PhaseName,
    /// Milliseconds.
    pub duration_ms: u64,
}
