//! The stored results of runs, as plain data. `store` writes and reads them, `select` filters them.

mod select;
mod store;

use std::collections::BTreeMap;

use jiff::Timestamp;
use protocol::state::UsageTotal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::select::ResultSelector;
pub(crate) use self::store::{ResultEntry, ResultSlot, ResultStore, write_durably};
use crate::outcome::Outcome;

/// `meta.json`: one run of a case.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EvalMeta")]
pub(crate) struct ResultMeta {
    /// `runner/eval-meta.v1`.
    pub(crate) schema: String,
    /// Id of the case.
    pub(crate) case: String,
    /// Name of the folder of this result.
    pub(crate) result: String,
    /// How it came out.
    pub(crate) outcome: Outcome,
    /// How the case expects it to come out.
    pub(crate) expected: Outcome,
    /// Whether it came out so.
    pub(crate) met: bool,
    /// One sentence that says why, where there is something to say.
    pub(crate) reason: Option<String>,
    /// What the person who ran it called it.
    pub(crate) label: Option<String>,
    /// When it started.
    #[schemars(with = "String")]
    pub(crate) started_at: Timestamp,
    /// When it was over.
    #[schemars(with = "String")]
    pub(crate) ended_at: Timestamp,
    /// Milliseconds between both: what was made ready and checked included.
    pub(crate) duration_ms: u64,
    /// Kind of the agent; `script` for a scripted one.
    pub(crate) executor: String,
    /// The model, where one was named.
    pub(crate) model: Option<String>,
    /// Kind and version of the agent, as the receipts say.
    pub(crate) agent: Option<String>,
    /// The run; null where none was started.
    pub(crate) run: Option<RunFacts>,
    /// Checks that hold.
    pub(crate) checks_passed: u32,
    /// Checks that do not.
    pub(crate) checks_failed: u32,
    /// How tightly commands of checks were held: `pidns` or `walk`.
    pub(crate) containment: String,
    /// Versions of what took part.
    pub(crate) versions: Versions,
    /// SHA-256 of what took part.
    pub(crate) digests: Digests,
    /// What was seen where something went wrong.
    pub(crate) evidence: Vec<String>,
}

/// What a run came to.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RunFacts {
    /// Its id.
    pub(crate) id: String,
    /// Its last state.
    pub(crate) state: String,
    /// Iterations that ended in a commit.
    pub(crate) iterations: u64,
    /// Attempts charged, over all nodes.
    pub(crate) attempts: u64,
    /// Leaves that have passed.
    pub(crate) leaves_passed: u32,
    /// Leaves of the tree.
    pub(crate) leaves_total: u32,
    /// How often each verdict was reached.
    pub(crate) verdicts: BTreeMap<String, u64>,
    /// What it consumed; what is not known is null.
    pub(crate) usage: UsageTotal,
    /// Milliseconds spent in sessions and guards.
    pub(crate) elapsed_ms: u64,
    /// Milliseconds from the start of the run to its end.
    pub(crate) wall_ms: u64,
    /// Last commit of its branch.
    pub(crate) tip: Option<String>,
}

/// Versions of what took part.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Versions {
    /// Of this program.
    pub(crate) runner_eval: String,
    /// Of the daemon.
    pub(crate) runnerd: Option<String>,
    /// Of its prompts, as the receipts say.
    pub(crate) prompts: Option<String>,
}

/// SHA-256 of what took part.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Digests {
    /// Of the case file and its template folder.
    pub(crate) case: String,
    /// Of the prompt templates that were put in the place of the built-in ones.
    pub(crate) templates: Option<String>,
    /// Of this program.
    pub(crate) runner_eval: Option<String>,
    /// Of the daemon.
    pub(crate) runnerd: Option<String>,
    /// Of the client.
    pub(crate) runnerctl: Option<String>,
}

/// `checks.json`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EvalChecks")]
pub(crate) struct ChecksFile {
    /// `runner/eval-checks.v1`.
    pub(crate) schema: String,
    /// In the order of the case.
    pub(crate) checks: Vec<CheckResult>,
}

/// One check.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CheckResult {
    /// What it is called.
    pub(crate) name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Whether the check succeeded.
    pub(crate) passed: bool,
    /// What was seen, where it does not.
    pub(crate) detail: Option<String>,
    /// Of a command: what it printed, at most 50 KiB.
    pub(crate) stdout: Option<String>,
    /// Of a command: what it printed to standard error, at most 50 KiB.
    pub(crate) stderr: Option<String>,
    /// Milliseconds that it took.
    pub(crate) duration_ms: u64,
}

/// `started.json`: what is known when a run begins, for those who find that it never ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EvalStarted")]
pub(crate) struct StartedFile {
    /// `runner/eval-started.v1`.
    pub(crate) schema: String,
    pub(crate) case: String,
    pub(crate) result: String,
    pub(crate) expected: Outcome,
    pub(crate) label: Option<String>,
    #[schemars(with = "String")]
    pub(crate) started_at: Timestamp,
    pub(crate) executor: String,
    pub(crate) model: Option<String>,
    pub(crate) versions: Versions,
    pub(crate) digests: Digests,
    /// Process id of the harness.
    pub(crate) pid: u32,
}

impl ResultMeta {
    /// Creates the metadata of a run that has just started.
    pub(crate) fn from_started(
        started: &StartedFile,
        outcome: Outcome,
        reason: Option<String>,
        ended_at: Timestamp,
    ) -> Self {
        let duration = ended_at.duration_since(started.started_at).unsigned_abs();
        Self {
            schema: "runner/eval-meta.v1".into(),
            case: started.case.clone(),
            result: started.result.clone(),
            outcome,
            expected: started.expected,
            met: crate::outcome::is_met(outcome, started.expected, 0),
            reason,
            label: started.label.clone(),
            started_at: started.started_at,
            ended_at,
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            executor: started.executor.clone(),
            model: started.model.clone(),
            agent: None,
            run: None,
            checks_passed: 0,
            checks_failed: 0,
            containment: crate::process::containment_level().into(),
            versions: started.versions.clone(),
            digests: started.digests.clone(),
            evidence: Vec::new(),
        }
    }
}
