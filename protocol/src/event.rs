//! The daemon's numbered stream of events.
//!
//! Events only say that something happened; the state is read with `status`. A subscriber that is too slow gets one
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
    /// Number in the daemon's stream; it grows by one, and starts again when the daemon starts.
    pub seq: u64,
    /// When it happened.
    #[schemars(with = "String")]
    pub time: Timestamp,
    /// Id of the repository; null for the daemon's own events.
    pub repo: Option<String>,
    /// Id of the run.
    pub run: Option<String>,
    /// Number of the iteration.
    pub iter: Option<u32>,
    /// The event.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The content of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
pub enum EventKind {
    /// A run changed its state.
    RunState {
        /// The new state.
        state: RunStatus,
        /// The reason, if the run stopped.
        reason: Option<StopReason>,
        /// The time at which it continues automatically, if it waits for one.
        #[schemars(with = "Option<String>")]
        until: Option<Timestamp>,
    },
    /// The service of a kind of agent is unavailable; a fallback continues, or the run waits.
    Outage {
        /// The kind.
        agent: String,
        /// The service's message.
        why: String,
        /// When the service is tried again.
        #[schemars(with = "String")]
        until: Timestamp,
    },
    /// An iteration entered a phase. Without a number and a task: the guard runs on the base.
    Phase {
        /// The phase.
        phase: PhaseName,
        /// The task of the session, if already known.
        node: Option<String>,
    },
    /// An effect is prevented for now, and is tried again.
    Obstacle {
        /// The obstacle.
        message: String,
    },
    /// An iteration ended.
    Iteration {
        /// The task.
        node: String,
        /// How it ended.
        verdict: VerdictName,
        /// `status=` of its commit.
        status: IterationStatus,
        /// `guard=` of its commit.
        guard: GuardOutcome,
        /// Charged attempts after the iteration.
        attempts: u32,
        /// Attempts allowed.
        max_attempts: u32,
        /// Kind and version of the agent.
        agent: Option<String>,
        /// Tokens and cost of its session.
        usage: SessionUsage,
    },
    /// The task tree changed.
    Tree {
        /// Leaf tasks that have passed.
        leaves_passed: u32,
        /// Leaf tasks of the tree.
        leaves_total: u32,
    },
    /// A commit was made on the run's branch.
    Commit {
        /// Its id.
        commit: String,
        /// Its subject.
        subject: String,
    },
    /// Files that the agent changed without permission were restored.
    Reverted {
        /// Paths relative to the working tree.
        paths: Vec<String>,
    },
    /// Processes of the iteration moved branches or tags outside the run; these are not restored.
    Refs {
        /// Each reference with the old and the new commit.
        moved: Vec<String>,
    },
    /// A process inside an iteration called a method that it may not call.
    Refused {
        /// The method.
        method: String,
        /// The process, if the system identifies it; it may have ended.
        pid: Option<i32>,
    },
    /// Files that the agent changed contain secrets; they are committed unchanged.
    Secrets {
        /// The files, and the variables with the secrets.
        #[serde(rename = "seen")]
        files: Vec<SecretFinding>,
    },
    /// A session has asked a question.
    Questions {
        /// The new open questions.
        #[serde(rename = "asked")]
        questions: Vec<QuestionView>,
    },
    /// Output of the agent or the guard, only on request.
    Output {
        /// The phase it comes from.
        phase: PhaseName,
        /// The text, made safe for a terminal.
        text: String,
    },
    /// A step of an agent's work, only on request.
    Activity(Activity),
    /// The workspace of an isolated run is being created.
    Workspace {
        /// The current stage.
        stage: String,
        /// Completed amount: bytes or files, depending on the stage.
        done: u64,
        /// Total amount; 0 if unknown.
        total: u64,
    },
    /// An unexpected problem occurred; the repository continues.
    Warning {
        /// The problem.
        message: String,
    },
    /// The subscriber was too slow: events up to `seq` were dropped.
    Lagged,
    /// The daemon shuts down after the current iterations, or at once.
    Stopping,
}

/// A step of an agent's work, as the agent's program reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Activity {
    /// Its kind.
    pub what: ActivityKind,
    /// The text, command or files, made safe for a terminal; at most 4 KiB.
    pub text: String,
}

/// The kinds of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActivityKind {
    /// The agent writes a message.
    Message,
    /// The agent thinks.
    Reasoning,
    /// The agent starts a command, or uses another tool.
    Tool,
    /// A command or another tool has ended.
    ToolResult,
    /// The agent changes files.
    FileChange,
    /// The agent's program reports on the session: a retry, a warning.
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
