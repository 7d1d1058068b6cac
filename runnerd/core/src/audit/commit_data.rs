//! The input of an audit: the commits of a branch along first parents, oldest first, as plain data.
//!
//! The caller, which has the commits in git or in memory, fills these in; nothing here knows where they come from. What
//! a commit leaves unchanged is not repeated.

use std::sync::Arc;

use runner_config::is_instruction_path;

use crate::fsck::PathFault;
use crate::guard::watched_files::{CheckDigests, WatchedFiles};

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
    is_instruction_path(path) || path.strip_prefix(b".runner/").is_some_and(|within| !is_artifact(within))
}

fn is_artifact(within: &[u8]) -> bool {
    let mut parts = within.split(|byte| *byte == b'/');
    parts.next() == Some(b"nodes") && parts.nth(1) == Some(b"artifacts")
}
