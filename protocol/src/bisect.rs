//! Data for finding the commit that broke a command: the states of a branch, and how the command ends in one of them.
//!
//! Data only. `runner-core` decides which commits are states, and the client which one to try next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WirePath;
use crate::request::CallerEnv;
use crate::words::words;

/// `bisect.points`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointsParams {
    /// Absolute path in the repository, which may be bare.
    pub path: WirePath,
    /// Id of the run or a unique prefix; default: the run that is checked out, or the only one.
    #[serde(default)]
    pub run: Option<String>,
    /// The command. If it is the guard's command, receipts record its results.
    pub command: Vec<String>,
}

/// `bisect.try`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TryParams {
    /// Absolute path in the repository, which may be bare.
    pub path: WirePath,
    /// Id of the run, whose configuration determines the time limit of the command and its variables.
    pub run: String,
    /// The commit whose files the command runs on.
    pub commit: String,
    /// The command.
    pub command: Vec<String>,
    /// Whether the user's git configuration is confirmed, if a session has changed it.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment.
    #[serde(default)]
    pub env: CallerEnv,
}

words! {
    /// The origin of a state of a branch.
    PointKind {
        /// The base of the run.
        Start = "start",
        /// An iteration.
        Iteration = "iteration",
        /// A person's commit.
        Person = "person",
    }
}

/// A state of a branch: a commit whose files, except `.runner/`, differ from those of the previous state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BisectPoint {
    /// The commit.
    pub commit: String,
    /// Identifies these files: states with the same value have the same files.
    pub files: String,
    /// Its origin.
    pub kind: PointKind,
    /// The first line of the commit's message.
    pub subject: String,
    /// The iteration.
    pub iter: Option<u32>,
    /// The task that the session worked on.
    pub node: Option<String>,
    /// The task's title, if the receipt has it.
    pub title: Option<String>,
    /// The commit at which the session started.
    pub from: Option<String>,
    /// The command's exit code, if a receipt has it: the guard ran this command on these files.
    pub known: Option<i32>,
}

/// The states of a run's branch, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointsReply {
    /// The run.
    pub run: String,
    /// The states; the first one is the base of the run.
    pub points: Vec<BisectPoint>,
}

/// The result of the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TryReply {
    /// Its exit code; null if it was killed.
    pub exit: Option<i32>,
    /// How it ended, in words.
    pub ended: String,
    /// The end of its output.
    pub output: String,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}
