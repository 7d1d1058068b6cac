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
    /// Absolute path in the repository, a bare one included.
    pub path: WirePath,
    /// Id of the run or a unique prefix; the one that is checked out, or the only one, by default.
    #[serde(default)]
    pub run: Option<String>,
    /// The command that is asked about: where it is the guard's, receipts say how it ended.
    pub command: Vec<String>,
}

/// `bisect.try`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TryParams {
    /// Absolute path in the repository, a bare one included.
    pub path: WirePath,
    /// Id of the run, whose configuration says how long the command may take and which variables it gets.
    pub run: String,
    /// The commit whose files the command is to find.
    pub commit: String,
    /// The command.
    pub command: Vec<String>,
    /// The user's git configuration is confirmed, where a session has changed it.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment.
    #[serde(default)]
    pub env: CallerEnv,
}

words! {
    /// What a state of a branch comes from.
    PointKind {
        /// What the run began with.
        Start = "start",
        /// An iteration.
        Iteration = "iteration",
        /// A person's commit.
        Person = "person",
    }
}

/// A state of a branch: the files of a commit, `.runner/` apart, that are not those of the state before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BisectPoint {
    /// The commit.
    pub commit: String,
    /// What these files are told by: states with the same are the same.
    pub files: String,
    /// What it comes from.
    pub kind: PointKind,
    /// The first line of the commit's message.
    pub subject: String,
    /// The iteration.
    pub iter: Option<u32>,
    /// The leaf that was worked on.
    pub node: Option<String>,
    /// The leaf's title, where the receipt tells it.
    pub title: Option<String>,
    /// The commit that the session began with.
    pub from: Option<String>,
    /// The exit code of the command, where a receipt says it: the guard was this command, and found these files.
    pub known: Option<i32>,
}

/// The states of a run's branch, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointsReply {
    /// The run.
    pub run: String,
    /// The states; the first is what the run began with.
    pub points: Vec<BisectPoint>,
}

/// How the command has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TryReply {
    /// Its exit code; null where it did not end by itself.
    pub exit: Option<i32>,
    /// How it ended, in words.
    pub ended: String,
    /// The end of what it printed.
    pub output: String,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}
