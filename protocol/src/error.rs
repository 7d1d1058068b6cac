//! The errors of requests to the daemon: kind, message, hint, and exit codes.

use jsonrpsee::types::ErrorObjectOwned;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::{Command, NextSteps};
use crate::words::words;

/// JSON-RPC code of every error that carries an [`ErrorData`].
pub const ERROR_CODE: i32 = -31_000;

words! {
    /// The kind of an error: clients act on the kind, people read the message.
    ErrorKind {
        /// The path is not in a git working tree.
        NotARepository = "not_a_repository",
        /// The repository, run, task or iteration is unknown.
        NotFound = "not_found",
        /// The request is not possible: an unknown state, an ambiguous prefix, a bad value.
        InvalidRequest = "invalid_request",
        /// A file of the repository is not valid: configuration, task tree, goal.
        InvalidFile = "invalid_file",
        /// The working tree has uncommitted changes.
        DirtyTree = "dirty_tree",
        /// Branch, goal and run state belong to different runs.
        IdentityMismatch = "identity_mismatch",
        /// An agent or guard command cannot be found.
        MissingCommand = "missing_command",
        /// The repository requires stronger containment than this machine offers.
        LooseContainment = "loose_containment",
        /// This user has not confirmed the repository's configuration.
        Unconfirmed = "unconfirmed",
        /// The review must be signed by the person who gives it.
        Unsigned = "unsigned",
        /// The run's state does not allow this.
        WrongState = "wrong_state",
        /// A person must act first.
        Held = "held",
        /// The caller runs inside an iteration and may not change anything.
        InsideIteration = "inside_iteration",
        /// Client and daemon speak different versions.
        ProtocolMismatch = "protocol_mismatch",
        /// Too many calls are in progress.
        Busy = "busy",
        /// The daemon is shutting down.
        Draining = "draining",
        /// The daemon could not do it because of a problem in its environment.
        Fault = "fault",
        /// The daemon has a bug.
        Bug = "bug",
    }
}

/// The `data` of a JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct ErrorData {
    /// The kind, for programs.
    pub kind: ErrorKind,
    /// The problem, with the path.
    pub message: String,
    /// The next step, as a sentence; null if there is none.
    #[serde(default)]
    pub hint: Option<String>,
    /// The commands in that sentence, for clients that run or copy them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Command>,
    /// The runs that the request could be about, if it names none or several: it can be repeated for one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<RunChoice>,
    /// The causes, outermost first.
    #[serde(default)]
    pub causes: Vec<String>,
}

/// Runs that a request could be about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunChoice {
    /// What the request named, if anything: the beginning of each of these ids.
    pub named: Option<String>,
    /// Their ids.
    pub ids: Vec<String>,
}

impl ErrorData {
    /// Builds an error without a hint and causes.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, commands: Vec::new(), choice: None, causes: Vec::new() }
    }

    /// Adds what to do next: a command, a sentence, or a sentence with commands in it.
    #[must_use]
    pub fn hint(mut self, ways: impl Into<NextSteps>) -> Self {
        (self.hint, self.commands) = ways.into().into_parts();
        self
    }

    /// Adds the runs that the request could be about; `named` is what it named, if anything.
    #[must_use]
    pub fn choice<'a>(mut self, named: Option<&str>, ids: impl IntoIterator<Item = &'a str>) -> Self {
        let ids = ids.into_iter().map(str::to_owned).collect();
        self.choice = Some(RunChoice { named: named.map(str::to_owned), ids });
        self
    }

    /// Adds the chain of causes of `error`, without `error` itself.
    #[must_use]
    pub fn caused_by(mut self, error: &dyn std::error::Error) -> Self {
        let mut source = error.source();
        while let Some(cause) = source {
            self.causes.push(cause.to_string());
            source = cause.source();
        }
        self
    }
}

impl From<ErrorData> for ErrorObjectOwned {
    fn from(error: ErrorData) -> Self {
        let message = error.message.clone();
        Self::owned(ERROR_CODE, message, Some(error))
    }
}

/// Defines the exit codes once: the enum, its numbers and `help exit-codes`.
macro_rules! exit_codes {
    ($($(#[$meta:meta])* $variant:ident = $code:literal, $text:literal;)+) => {
        /// Exit codes of `runnerctl`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum ExitStatus { $(#[doc = $text] $variant = $code,)+ }

        impl ExitStatus {
            /// Every code with its meaning, in order.
            pub const TABLE: &[(Self, &str)] = &[$((Self::$variant, $text),)+];

            /// Returns the number.
            pub fn code(self) -> u8 {
                self as u8
            }
        }
    };
}

exit_codes! {
    Success = 0, "success, or the run is completed";
    Error = 1, "an error";
    Usage = 2, "invalid command line";
    Stuck = 3, "the run is stuck";
    Limit = 4, "the run reached a limit or timed out";
    NoDaemon = 5, "no daemon answers";
    Refused = 6, "refused, or a run needs your attention";
    Complete = 7, "`select`: the tree is complete";
    ProtocolMismatch = 8, "client and daemon versions do not match";
    RunEnded = 9, "the run failed or was cancelled";
    Violation = 10, "`verify` found a violation";
    Superseded = 11, "another driver continues the run";
    RetryLater = 75, "the job should be run again";
    Interrupted = 130, "interrupted";
}

impl From<ErrorKind> for ExitStatus {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotARepository
            | ErrorKind::NotFound
            | ErrorKind::InvalidFile
            | ErrorKind::Fault
            | ErrorKind::Bug => Self::Error,
            ErrorKind::InvalidRequest => Self::Usage,
            ErrorKind::DirtyTree
            | ErrorKind::IdentityMismatch
            | ErrorKind::MissingCommand
            | ErrorKind::LooseContainment
            | ErrorKind::Unconfirmed
            | ErrorKind::Unsigned
            | ErrorKind::WrongState
            | ErrorKind::Held
            | ErrorKind::Busy
            | ErrorKind::Draining
            | ErrorKind::InsideIteration => Self::Refused,
            ErrorKind::ProtocolMismatch => Self::ProtocolMismatch,
        }
    }
}
