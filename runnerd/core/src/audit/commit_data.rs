//! The input of an audit: the commits of a branch along first parents, oldest first, as plain data.
//!
//! The caller, which has the commits in git or in memory, fills these in; nothing here knows where they come from. What
//! a commit leaves unchanged is not repeated.

use std::sync::Arc;

use crate::change::ChangeRequest;
use crate::fsck::PathFault;
use crate::policy::Policy;
use crate::validate::TreeFault;
use crate::watched_files::{CheckDigests, WatchedFiles};

/// Changes of one commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitDiff {
    /// Every path that differs from its first parent, in any order, each once.
    pub changes: Vec<PathChange>,
    /// The blob that its receipt names in `Runner-Raw`, if it is available.
    pub raw: Option<Arc<[u8]>>,
    /// The patch that its reviewer saw, if there was a reviewer: from From to this commit, without `.runner/`.
    pub diff: Option<Vec<u8>>,
    /// Faults in the trees that it has and its first parent lacks.
    pub trees: Vec<PathFault>,
    /// The files watched for the guard at its parent, if [`super::WatchPoint::From`] asks for them.
    pub watched: Option<WatchedFiles>,
    /// The files watched from there on, if [`super::WatchPoint::Start`] asks for them.
    pub start_watched: Option<WatchedFiles>,
    /// What the manifests that it changed say about checks.
    pub checks: CheckDigests,
    /// Paths of files that it adds and that are missing, whether they are read or not.
    pub missing: Vec<String>,
}

/// Headers and message of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitHeader {
    /// Id of the commit, in hexadecimal.
    pub id: String,
    /// Ids of its parents, in order.
    pub parents: Vec<String>,
    /// All headers as stored.
    pub headers: Vec<u8>,
    /// The whole message as stored.
    pub message: Vec<u8>,
    /// The message as shown by `git log`, if a header names an encoding other than UTF-8.
    pub recoded: Option<Vec<u8>>,
}

/// A path that a commit changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    /// The path from the root, with `/` between names.
    pub path: Vec<u8>,
    /// The previous entry, without its content, which the audit has already seen; `None` if there was none.
    pub old: Option<PathEntry>,
    /// The new entry; `None` if there is none.
    pub new: Option<PathEntry>,
}

/// The entry of a commit at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathEntry {
    /// Git's mode: `0o100644`, `0o100755`, `0o120000` or `0o160000`.
    pub mode: u32,
    /// Id of the blob, or of a submodule's commit, in hexadecimal.
    pub id: String,
    /// The bytes, if the entry is a file and [`is_content_read`] says that they are read.
    pub content: Option<Arc<[u8]>>,
}

/// Whether an audit reads the content of a path; for others the id is enough.
pub fn is_content_read(path: &[u8]) -> bool {
    path.strip_prefix(b".runner/").is_some_and(|within| !is_artifact(within))
}

fn is_artifact(within: &[u8]) -> bool {
    let mut parts = within.split(|byte| *byte == b'/');
    parts.next() == Some(b"nodes") && parts.nth(1) == Some(b"artifacts")
}

/// What is wrong with a file that decisions depend on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// There is nothing at its path.
    #[error("it is missing")]
    Missing,
    /// A link, a folder or a submodule is in its place.
    #[error("it is no file")]
    NoFile,
    /// The file is not a task tree that satisfies the rules of trees.
    #[error("{}", join_faults(.0))]
    Tree(Vec<TreeFault>),
    /// The file is malformed; the sentence says how.
    #[error("{0}")]
    Form(String),
}

fn join_faults(faults: &[TreeFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Readers for the two files whose form is not part of the rules, and a writer for one of them.
#[derive(Debug, Clone, Copy)]
pub struct FileReaders {
    /// Reads `config.toml`.
    pub config: fn(&[u8]) -> Result<AuditSettings, FileFault>,
    /// Reads `GOAL.md`.
    pub goal: fn(&[u8]) -> Result<GoalFile, FileFault>,
    /// Returns `GOAL.md` with the id of another run; `None` if that is not possible.
    pub rename_goal: fn(&[u8], &str) -> Option<String>,
    /// Whether a path belongs to the guard's definition, which these globs match.
    pub is_definition_path: fn(&[String], &str) -> bool,
    /// Returns the request by which a command turns one text of `config.toml` into another, given what its commit says
    /// that it did; `None` if there is no such request.
    pub config_change: fn(&str, &str, &str, &str) -> Option<ChangeRequest>,
}

/// The configuration as far as an audit needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSettings {
    /// The numbers and choices in force.
    pub policy: Policy,
    /// The guard's command.
    pub guard_command: Vec<String>,
    /// Criteria for reviewers.
    pub criteria: String,
    /// Whether the guard has to run on the base.
    pub baseline: bool,
    /// Most bytes of a prompt.
    pub prompt_bytes: usize,
}

/// `GOAL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalFile {
    /// Id of the run that it names, if any.
    pub id: Option<String>,
    /// The text after the front matter.
    pub body: String,
}
