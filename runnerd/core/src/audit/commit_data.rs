//! What an audit reads: the commits of a branch along first parents, oldest first, as plain data.
//!
//! Whoever has the commits, in git or in memory, fills these in; nothing here knows where they come from. What a commit
//! leaves unchanged is not told again.

use std::sync::Arc;

use crate::fsck::PathFault;
use crate::policy::Policy;
use crate::validate::TreeFault;
use crate::watched_files::{CheckDigests, WatchedFiles};

/// What one commit changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitDiff {
    /// Every path that differs from its first parent, in any order, each once.
    pub changes: Vec<PathChange>,
    /// The blob that its receipt names in `Runner-Raw`, where it is at hand.
    pub raw: Option<Arc<[u8]>>,
    /// The patch that its reviewer saw, where one did: from From to this commit, without `.runner/`.
    pub diff: Option<Vec<u8>>,
    /// What is wrong with the trees that it has and its first parent has not.
    pub trees: Vec<PathFault>,
    /// What is watched for the guard at its parent, where [`super::WatchAt::From`] asks for it.
    pub watched: Option<WatchedFiles>,
    /// What is watched from there on, where [`super::WatchAt::Start`] asks for it.
    pub start_watched: Option<WatchedFiles>,
    /// What the manifests that it changed say of checks.
    pub checks: CheckDigests,
    /// Paths of the files that it adds and that are not here, whether they are read or not.
    pub missing: Vec<String>,
}

/// What a commit says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitHeader {
    /// Its id, in hexadecimal.
    pub id: String,
    /// The ids of its parents, the first first.
    pub parents: Vec<String>,
    /// All headers as they are stored.
    pub headers: Vec<u8>,
    /// The whole message as it is stored.
    pub message: Vec<u8>,
    /// The message as `git log` has it, where a header says that it is encoded in something else than UTF-8.
    pub recoded: Option<Vec<u8>>,
}

/// A path that a commit changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    /// The path from the root, with `/` between names.
    pub path: Vec<u8>,
    /// What stood there before, without its content: whoever is given this has seen it; none where nothing did.
    pub old: Option<PathEntry>,
    /// What stands there since; none where nothing does.
    pub new: Option<PathEntry>,
}

/// What a commit has at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathEntry {
    /// Git's mode: `0o100644`, `0o100755`, `0o120000` or `0o160000`.
    pub mode: u32,
    /// Id of the blob, or of a submodule's commit, in hexadecimal.
    pub id: String,
    /// The bytes, where [`is_read`] says that they are read and what stands there is a file.
    pub content: Option<Arc<[u8]>>,
}

/// Tells whether an audit reads the content of a path; of others the id is enough.
pub fn is_content_read(path: &[u8]) -> bool {
    path.strip_prefix(b".runner/").is_some_and(|within| !is_artifact(within))
}

fn is_artifact(within: &[u8]) -> bool {
    let mut parts = within.split(|byte| *byte == b'/');
    parts.next() == Some(b"nodes") && parts.nth(1) == Some(b"artifacts")
}

/// What is wrong with a file that decisions are made from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// There is nothing at its path.
    #[error("it is missing")]
    Missing,
    /// A link, a folder or a submodule stands there.
    #[error("it is no file")]
    NoFile,
    /// It is no task tree that keeps the rules of trees.
    #[error("{}", join_faults(.0))]
    Tree(Vec<TreeFault>),
    /// It does not have its form; a sentence says how.
    #[error("{0}")]
    Form(String),
}

fn join_faults(faults: &[TreeFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// How the two files are read, and one of them written, whose form is not one of the rules.
#[derive(Debug, Clone, Copy)]
pub struct FileReaders {
    /// Reads `config.toml`.
    pub config: fn(&[u8]) -> Result<AuditSettings, FileFault>,
    /// Reads `GOAL.md`.
    pub goal: fn(&[u8]) -> Result<GoalFile, FileFault>,
    /// Returns `GOAL.md` as it names another run; none where it cannot.
    pub rename_goal: fn(&[u8], &str) -> Option<String>,
    /// Tells whether a path belongs to the guard's definition, which these globs name.
    pub is_definition_path: fn(&[String], &str) -> bool,
}

/// The configuration as far as an audit needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSettings {
    /// What rules are decided by.
    pub policy: Policy,
    /// The guard's command.
    pub guard_command: Vec<String>,
    /// What reviewers go by.
    pub criteria: String,
    /// Whether the guard is run on the base.
    pub baseline: bool,
    /// The most bytes of a prompt.
    pub prompt_bytes: usize,
}

/// `GOAL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalFile {
    /// The run that it names.
    pub id: Option<String>,
    /// What follows the front matter.
    pub body: String,
}
