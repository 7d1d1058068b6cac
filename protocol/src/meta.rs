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
    /// Commit at which the session started.
    pub from: String,
    /// Task of the session.
    pub node: String,
    /// Ids from the root to the task, both included.
    pub node_path: Vec<String>,
    /// The role of the session.
    pub role: Role,
    /// The kind of work that the iteration did.
    pub mode: Mode,
    /// Kind and version of the agent.
    pub agent: String,
    /// The service's id for the session; null if the agent does not report it.
    pub session_id: Option<String>,
    /// How it ended.
    pub verdict: VerdictName,
    /// Details of the verdict, if there are any.
    pub detail: Option<String>,
    /// `status=` of the commit.
    pub status: IterationStatus,
    /// `guard=` of the commit.
    pub guard: GuardOutcome,
    /// Exit status of the agent: a code, or a negative signal number.
    pub agent_exit: Option<i32>,
    /// Exit status of the guard, in the same form.
    pub guard_exit: Option<i32>,
    /// When it started.
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
    /// Why the agent gave no answer; null if it gave one, or was interrupted.
    pub failure: Option<SessionFailure>,
    /// Tokens and cost of the session, without reviewers.
    pub usage: SessionUsage,
    /// The review; null if no review was requested.
    pub review: Option<ReviewFacts>,
    /// The level of containment of its processes.
    pub containment: Containment,
    /// Processes that outlived their leader and were ended.
    pub survivors_ended: u32,
    /// Files with secrets that the session changed.
    pub secrets: Vec<SecretFinding>,
    /// Logs that are incomplete because of a disk error, and reports of tests that could not be read: the file, and the
    /// error.
    pub log_faults: Vec<String>,
    /// Branches and tags outside the run that its processes moved, each with the old and the new commit.
    pub moved_refs: Vec<String>,
    /// Files that stay in the working tree and are not in its commit.
    pub held_back: Vec<String>,
    /// Paths that its processes changed without permission, and that were restored.
    pub reverted: Vec<String>,
    /// Paths of the work tree that were moved away while an agent ran: its program would have obeyed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// Submodules with uncommitted work, which its commit lacks.
    pub dirty_submodules: Vec<String>,
    /// Files of the guard definition that differ from the versions that a person accepted.
    pub guard_changed: Vec<String>,
    /// Whether the guard also ran with the accepted definition; if so, `guard` is the result of that run.
    pub guard_with_accepted: bool,
    /// The iteration's commit; null if nothing changed and none was made.
    pub commit: Option<String>,
}

impl IterationMeta {
    /// Returns how long it took, in milliseconds; 0 if the clock was set back during the iteration.
    pub fn duration_ms(&self) -> u64 {
        u64::try_from(self.ended_at.duration_since(self.started_at).as_millis()).unwrap_or(0)
    }
}

/// Why a session gave no answer, and the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionFailure {
    /// The class; null if no known failure matches.
    pub class: Option<FailureClass>,
    /// The line of the table of signatures that matched, if one did.
    pub signature: Option<String>,
    /// When the service is expected back, if it said so.
    #[schemars(with = "Option<String>")]
    pub until: Option<Timestamp>,
    /// The agent's report of its failure, each part as `field: value`, cut to a limit; structured fields first.
    pub evidence: Vec<String>,
}

/// The facts of a review. Its text is in `review.json` of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewFacts {
    /// Kind and version of the reviewer; `human` for a person.
    pub by: String,
    /// The decision; null if there was none.
    pub verdict: Option<ReviewVerdict>,
    /// The service's id for the reviewer's session; null if the reviewer does not report it.
    pub session_id: Option<String>,
    /// Number of tries to get a review; 0 for a person.
    pub tries: u32,
    /// Why the last try gave no answer; null if it gave one, or was interrupted.
    pub failure: Option<SessionFailure>,
    /// Tokens and cost of reviewers.
    pub usage: UsageTotal,
    /// Files that reviewers wrote outside of the record: they are kept under `refs/runner/rescue/`, and the working
    /// tree is restored.
    pub wrote: Vec<String>,
}

/// A known secret in a file that the agent changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretFinding {
    /// Path relative to the working tree; a secret in the path is replaced.
    pub path: String,
    /// The variable whose value it is.
    pub variable: String,
}

/// The duration of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseTime {
    /// The phase.
    pub phase: PhaseName,
    /// Milliseconds.
    pub duration_ms: u64,
}
