//! The closed vocabularies that records, receipts and views share.
//!
//! Words only; the table of verdicts and their effects is in `runner-core`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Defines a closed enum with one lower-case word per variant, used on the wire and in text.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// Every word, in declaration order.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the word as it stands in records, receipts and on the command line.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::words::UnknownWord;

            fn from_str(word: &str) -> Result<Self, crate::words::UnknownWord> {
                match word { $($word => Ok(Self::$variant),)+ _ => Err(crate::words::UnknownWord(word.to_owned())) }
            }
        }
    };
}
pub(crate) use words;

/// A word that is not in the required vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown word `{0}`")]
pub struct UnknownWord(pub String);

words! {
    /// `status=` of an iteration's commit.
    IterationStatus {
        /// The agent claimed `done`; `guard=` records whether the guard agreed.
        Done = "done",
        /// The task stays open and is tried again.
        Retry = "retry",
        /// The task was split into subtasks.
        Decomposed = "decomposed",
        /// The session ended without a usable answer.
        Fault = "fault",
        /// The model's service was unavailable.
        Waiting = "waiting",
        /// The time budget ran out.
        Timeout = "timeout",
        /// The iteration was interrupted by a person, the daemon or the machine.
        Interrupted = "interrupted",
    }
}

words! {
    /// `guard=` of an iteration's commit.
    GuardOutcome {
        /// The guard ran and exited 0.
        Pass = "pass",
        /// The guard ran and exited with another code.
        Fail = "fail",
        /// The guard did not run, or did not finish.
        Skipped = "skipped",
    }
}

words! {
    /// The outcome of an iteration, without its details.
    VerdictName {
        /// `done`, guard 0, review accepts or is off.
        Accepted = "Accepted",
        /// `done`, guard not 0.
        RedGuard = "RedGuard",
        /// `done`, guard 0, review rejects.
        Rejected = "Rejected",
        /// `done`, guard 0, waiting for a person's review.
        Pending = "Pending",
        /// The agent asks for another session.
        Retry = "Retry",
        /// The planner made the task smaller before its last attempt.
        Narrowed = "Narrowed",
        /// The task was split into subtasks.
        Decomposed = "Decomposed",
        /// A rule was broken.
        Broken = "Broken",
        /// The session gave no valid answer.
        Fault = "Fault",
        /// The model's service was unavailable.
        Unavailable = "Unavailable",
        /// The time budget ran out.
        Timeout = "Timeout",
        /// The agent or the guard cannot run as configured.
        Misconfigured = "Misconfigured",
        /// The iteration was interrupted by a person, the daemon or the machine.
        Interrupted = "Interrupted",
    }
}

impl VerdictName {
    /// Returns what people read; the name itself is for receipts and programs.
    pub fn label(self) -> &'static str {
        match self {
            Self::Accepted => "finished",
            Self::RedGuard => "guard failed",
            Self::Rejected => "rejected",
            Self::Pending => "awaiting review",
            Self::Retry => "handed over",
            Self::Narrowed => "narrowed",
            Self::Decomposed => "split",
            Self::Broken => "rules broken",
            Self::Fault => "no answer",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timed out",
            Self::Misconfigured => "misconfigured",
            Self::Interrupted => "interrupted",
        }
    }
}

words! {
    /// The role of a session.
    Role {
        /// Works on one task.
        Worker = "worker",
        /// Splits a task, or makes it smaller before its last attempt.
        Planner = "planner",
        /// Restores the intended content of an invalid tree.
        Repair = "repair",
        /// Judges a finished task.
        Reviewer = "reviewer",
        /// A person decides; no session runs.
        Human = "human",
    }
}

words! {
    /// A review's decision about a finished task.
    ReviewVerdict {
        /// The task passes.
        Accept = "accept",
        /// The task stays open, and an attempt is charged.
        Reject = "reject",
    }
}

words! {
    /// The kind of work that an iteration did, judged by its changes.
    Mode {
        /// A path outside `.runner/` changed.
        Execute = "execute",
        /// Only the plan changed, or nothing.
        Decompose = "decompose",
    }
}

words! {
    /// The state of a run.
    RunStatus {
        /// Waits for its turn.
        Queued = "queued",
        /// The daemon or a job works on it.
        Running = "running",
        /// Stopped by the user between two iterations.
        Paused = "paused",
        /// Continues automatically at a known time, or when an obstacle is gone.
        Waiting = "waiting",
        /// Needs your attention; checked again on `resume`.
        Held = "held",
        /// The goal is reached.
        Completed = "completed",
        /// The selected task has no attempts left, or there is no more progress.
        Stuck = "stuck",
        /// The iterations or another limit are used up.
        Limit = "limit",
        /// An iteration ran out of time.
        TimedOut = "timed_out",
        /// Too many faults in a row, or the configuration must change.
        Failed = "failed",
        /// Cancelled by the user.
        Cancelled = "cancelled",
    }
}

impl RunStatus {
    /// Returns whether a run in this state has released its place in the queue.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Stuck | Self::Limit | Self::TimedOut | Self::Failed | Self::Cancelled)
    }

    /// Returns what a sentence says of a run in this state.
    pub fn predicate(self) -> &'static str {
        match self {
            Self::Queued => "is queued",
            Self::Running => "is running",
            Self::Paused => "is paused",
            Self::Waiting => "is waiting",
            Self::Held => "is held",
            Self::Completed => "is completed",
            Self::Stuck => "is stuck",
            Self::Limit => "has reached a limit",
            Self::TimedOut => "has timed out",
            Self::Failed => "has failed",
            Self::Cancelled => "is cancelled",
        }
    }
}

words! {
    /// The phases of an iteration.
    PhaseName {
        /// Check, load, validate, select.
        Open = "open",
        /// Write the context and the prompt.
        Brief = "brief",
        /// The agent's session.
        Work = "work",
        /// Examine the files that the session left.
        Inspect = "inspect",
        /// The project's own checks.
        Guard = "guard",
        /// The reviewer's session.
        Review = "review",
        /// Write and commit.
        Settle = "settle",
        /// The iteration has ended.
        Over = "over",
    }
}

words! {
    /// The level of containment of processes.
    Containment {
        /// Separate session and subreaper; remaining processes are found by walking the process table.
        Walk = "walk",
        /// A delegated cgroup.
        Cgroup = "cgroup",
        /// A PID namespace.
        Pidns = "pidns",
    }
}

words! {
    /// Why an agent's session gave no answer, if known.
    FailureClass {
        /// The plan's usage limit for the current period is reached.
        UsageLimit = "usage_limit",
        /// The account has no credit left.
        Quota = "quota",
        /// Too many requests or tokens in a short time.
        RateLimit = "rate_limit",
        /// The service reports that it cannot work now: overload, 5xx.
        Overloaded = "overloaded",
        /// The service could not be reached, or the connection was lost.
        Network = "network",
        /// There is no key or login, or the service rejects it.
        Authentication = "authentication",
        /// The service does not have the model, or not for this account.
        ModelUnknown = "model_unknown",
        /// The service does not accept the schema of the answer.
        SchemaRefused = "schema_refused",
        /// The agent does not accept its arguments, its configuration or its environment.
        Misused = "misused",
        /// The session outgrew the context of the model.
        ContextExceeded = "context_exceeded",
        /// One of the agent's own limits ended the session: turns, tool calls, money.
        SessionLimit = "session_limit",
        /// The model or its service declined the request because of its content.
        Refused = "refused",
        /// The model's last message was cut off at the maximum length.
        OutputCut = "output_cut",
        /// There is an answer, but it does not match the schema.
        InvalidAnswer = "invalid_answer",
        /// The session ended normally, but without an answer.
        Empty = "empty",
        /// The session stopped producing output.
        Hung = "hung",
        /// The agent died or gave up for another reason.
        Crashed = "crashed",
        /// The agent failed before it used a token, for a reason that no rule knows.
        Unexplained = "unexplained",
    }
}
