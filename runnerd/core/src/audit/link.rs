//! What an audit reads: the commits of a branch along first parents, oldest first, as plain data.
//!
//! Whoever has the commits, in git or in memory, fills these in; nothing here knows where they come from. What a commit
//! leaves unchanged is not told again.

use std::sync::Arc;

use crate::fsck::Found;
use crate::policy::Policy;
use crate::validate::TreeFault;
use crate::watched::{Checks, Watched};

/// What one commit changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// Every path that differs from its first parent, in any order, each once.
    pub changes: Vec<PathChange>,
    /// The blob that its receipt names in `Runner-Raw`, where it is at hand.
    pub raw: Option<Arc<[u8]>>,
    /// The patch that its reviewer saw, where one did: from From to this commit, without `.runner/`.
    pub diff: Option<Vec<u8>>,
    /// What is wrong with the trees that it has and its first parent has not.
    pub trees: Vec<Found>,
    /// What is watched for the guard at its parent, where [`super::WatchAt::From`] asks for it.
    pub watched: Option<Watched>,
    /// What is watched from there on, where [`super::WatchAt::Start`] asks for it.
    pub begun: Option<Watched>,
    /// What the manifests that it changed say of checks.
    pub checks: Checks,
    /// Paths of the files that it adds and that are not here, whether they are read or not.
    pub missing: Vec<String>,
}

/// What a commit says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its id, in hexadecimal.
    pub id: String,
    /// The ids of its parents, the first first.
    pub parents: Vec<String>,
    /// All headers as they are stored.
    pub header: Vec<u8>,
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
    pub old: Option<Stored>,
    /// What stands there since; none where nothing does.
    pub new: Option<Stored>,
}

/// What a commit has at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Git's mode: `0o100644`, `0o100755`, `0o120000` or `0o160000`.
    pub mode: u32,
    /// Id of the blob, or of a submodule's commit, in hexadecimal.
    pub id: String,
    /// The bytes, where [`is_read`] says that they are read and what stands there is a file.
    pub content: Option<Arc<[u8]>>,
}

/// Tells whether an audit reads the content of a path; of others the id is enough.
pub fn is_read(path: &[u8]) -> bool {
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
    #[error("{}", listed(.0))]
    Tree(Vec<TreeFault>),
    /// It does not have its form; a sentence says how.
    #[error("{0}")]
    Form(String),
}

fn listed(faults: &[TreeFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// How the two files are read, and one of them written, whose form is not one of the rules.
#[derive(Debug, Clone, Copy)]
pub struct Readers {
    /// Reads `config.toml`.
    pub config: fn(&[u8]) -> Result<Settings, FileFault>,
    /// Reads `GOAL.md`.
    pub goal: fn(&[u8]) -> Result<Goal, FileFault>,
    /// Returns `GOAL.md` as it names another run; none where it cannot.
    pub renamed: fn(&[u8], &str) -> Option<String>,
    /// Tells whether a path belongs to the guard's definition, which these globs name.
    pub is_definition: fn(&[String], &str) -> bool,
}

/// The configuration as far as an audit needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
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
pub struct Goal {
    /// The run that it names.
    pub id: Option<String>,
    /// What follows the front matter.
    pub body: String,
}
