//! The daemon's numbered stream of events.
//!
//! Events say that something happened; the state itself is read with `status`. A subscriber that is too slow gets one
//! `lagged` event and must read the state again. A client skips events that it cannot parse: a later version may have
//! more kinds.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::SessionUsage;
use crate::meta::SecretFinding;
use crate::view::{QuestionView, StopReason};
use crate::words::{GuardOutcome, IterationStatus, PhaseName, RunStatus, VerdictName};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Number in the daemon's stream; grows by one, begins anew with the daemon.
    pub seq: u64,
    /// When it happened.
    #[schemars(with = "String")]
    pub time: Timestamp,
    /// Id of the repository; null for the daemon's own.
    pub repo: Option<String>,
    /// Id of the run.
    pub run: Option<String>,
    /// Number of the iteration.
    pub iter: Option<u32>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
pub enum EventKind {
    /// A run changed its state.
    RunState {
        /// The new state.
        state: RunStatus,
        /// Why, where it stopped.
        reason: Option<StopReason>,
        /// When it goes on by itself, where it waits for a time.
        #[schemars(with = "Option<String>")]
        until: Option<Timestamp>,
    },
    /// The service of a kind of agent is not available; another one goes on, or the run waits.
    Outage {
        /// The kind.
        agent: String,
        /// What it said.
        why: String,
        /// When it is asked again.
        #[schemars(with = "String")]
        until: Timestamp,
    },
    /// An iteration entered a phase; without a number and a node, the guard runs on the base.
    Phase {
        /// The phase.
        phase: PhaseName,
        /// Node that is worked on, once it is known.
        node: Option<String>,
    },
    /// An effect cannot be done for now and is tried again.
    Obstacle {
        /// What is in the way.
        message: String,
    },
    /// An iteration ended.
    Iteration {
        /// The node.
        node: String,
        /// How it ended.
        verdict: VerdictName,
        /// `status=` of its commit.
        status: IterationStatus,
        /// `guard=` of its commit.
        guard: GuardOutcome,
        /// Attempts charged after it.
        attempts: u32,
        /// Attempts allowed.
        max_attempts: u32,
        /// Kind and version of the agent.
        agent: Option<String>,
        /// What its session consumed.
        usage: SessionUsage,
    },
    /// The task tree changed.
    Tree {
        /// Leaves that pass.
        leaves_passed: u32,
        /// Leaves of the tree.
        leaves_total: u32,
    },
    /// A commit was made on the run's branch.
    Commit {
        /// Its id.
        commit: String,
        /// Its subject.
        subject: String,
    },
    /// Files that the agent changed without right were put back.
    Reverted {
        /// Paths relative to the work tree.
        paths: Vec<String>,
    },
    /// Branches and tags of others that processes of the iteration moved; they are left where they are.
    Refs {
        /// Each with where it was and where it is.
        moved: Vec<String>,
    },
    /// A process inside an iteration called what it may not call.
    Refused {
        /// The method.
        method: String,
        /// The process, where the system tells which; it may be gone.
        pid: Option<i32>,
    },
    /// Files that the agent changed hold secrets; they are committed as they are.
    Secrets {
        /// Which files, and whose values.
        seen: Vec<SecretFinding>,
    },
    /// A session has asked something.
    Questions {
        /// What is new and open.
        asked: Vec<QuestionView>,
    },
    /// Output of the agent or the guard, on request only.
    Output {
        /// The phase it comes from.
        phase: PhaseName,
        /// Text made safe for a terminal.
        text: String,
    },
    /// What an agent does, on request only.
    Activity(Activity),
    /// A workspace is being made for an isolated run of the repository.
    Workspace {
        /// What is being done.
        stage: String,
        /// How much of it is done: bytes or files, as the stage has them.
        done: u64,
        /// How much there is; 0 where that is not known.
        total: u64,
    },
    /// Something that was not foreseen; the repository goes on.
    Warning {
        /// What was seen.
        message: String,
    },
    /// The subscriber was too slow: events up to `seq` were dropped for it.
    Lagged,
    /// The daemon goes down after the current iterations, or at once.
    Stopping,
}

/// A step of an agent's work, as its program tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Activity {
    /// Of which kind.
    pub what: ActivityKind,
    /// What it says, starts or touches, made safe for a terminal; at most 4 KiB.
    pub text: String,
}

/// The kinds of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActivityKind {
    /// It says something.
    Message,
    /// It thinks.
    Reasoning,
    /// It starts a command, or uses another tool.
    Tool,
    /// A command or another tool has ended.
    ToolResult,
    /// It changes files.
    FileChange,
    /// Its program says something about the session: a retry, a warning.
    Notice,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_without_details_has_no_data() {
        let text = r#"{"seq":1,"time":"2026-01-01T00:00:00Z","repo":null,"run":null,"iter":null,"kind":"lagged"}"#;
        let event: Event = serde_json::from_str(text).expect("parses");
        assert_eq!(event.kind, EventKind::Lagged);
    }
}
