//! Which part of a branch is missing, why, and whether that is legitimate: a partial clone may leave objects on a
//! remote; anything else that is missing is a violation.

use protocol::verify::AuditRule;

use super::BranchAudit;
use crate::fsck::{FaultTarget, PathFault};

/// Why something is missing in a partial clone.
const PARTIAL: &str = "this clone is partial, and `git fetch --refetch --no-filter` brings it";
/// Why something is missing that should be present.
const MISSING: &str = "an object is missing or damaged, and `git fsck` tells which";

/// Why the commits of a branch end where they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchEnd {
    /// The last commit has no parents.
    Root,
    /// The clone was made or deepened up to there.
    Shallow,
    /// The clone is partial.
    Partial,
    /// A parent is missing or damaged.
    Missing,
    /// There are too many commits.
    TooLong,
}

impl BranchEnd {
    /// Whether there is certainly nothing more: what is not among the commits does not exist.
    pub(super) fn is_complete(self) -> bool {
        !matches!(self, Self::Shallow | Self::Partial)
    }

    /// Describes the missing part of the branch before its `oldest` commit.
    pub(super) fn describe(self, oldest: &str) -> Option<String> {
        let why = match self {
            Self::Root => return None,
            Self::Shallow => "this clone is shallow, and `git fetch --unshallow` brings it",
            Self::Partial => PARTIAL,
            Self::Missing => MISSING,
            Self::TooLong => "the branch has more commits than are looked at",
        };
        Some(format!("what came before commit {oldest}: {why}"))
    }
}

/// Files that commits add and that are missing. Most of them affect no decision, but without them a branch is
/// incomplete.
#[derive(Debug, Default)]
pub(super) struct MissingFiles {
    /// Commit and path of the first one.
    first: Option<(String, String)>,
    count: usize,
}

impl MissingFiles {
    pub(super) fn add(&mut self, commit: &str, paths: &[String]) {
        self.count += paths.len();
        self.first = self.first.take().or_else(|| paths.first().map(|path| (commit.to_owned(), path.clone())));
    }

    /// Says that files are missing, and how to get them.
    pub(super) fn describe(&self) -> Option<String> {
        let (commit, path) = self.first.as_ref()?;
        let more = match self.count {
            1 => String::new(),
            count => format!(" and {} more that commits add", count - 1),
        };
        let why =
            "not here; `git fsck` tells which, and in a partial clone `git fetch --refetch --no-filter` brings them";
        Some(format!("file {path} of commit {commit}{more}: {why}"))
    }
}

/// Why something of a commit cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnreadableObject {
    /// The object is missing or damaged.
    Missing,
    /// Another object is in its place.
    Replaced(String),
}

impl UnreadableObject {
    /// Returns the reason, for a partial or a complete clone.
    pub(super) fn describe(&self, is_partial: bool) -> String {
        match self {
            Self::Missing if is_partial => PARTIAL.to_owned(),
            Self::Missing => MISSING.to_owned(),
            Self::Replaced(object) => format!("object {object} is not what its name says, as `git fsck` tells too"),
        }
    }

    /// Whether the absence is legitimate.
    pub(super) fn is_promised(&self, is_partial: bool) -> bool {
        is_partial && *self == Self::Missing
    }
}

impl BranchAudit {
    /// Ends the audit at a commit that cannot be read; its trees may still tell why. Only a partial clone may lack
    /// objects.
    pub fn push_unreadable(&mut self, commit: &str, trees: &[PathFault], unread: &UnreadableObject, is_partial: bool) {
        let why = unread.describe(is_partial);
        self.is_truncated = true;
        self.report.unseen.push(format!("the files of commit {commit}, and what was made of them since: {why}"));
        self.findings.begin_commit(commit, None);
        self.report_tree_faults(trees, false);
        if !unread.is_promised(is_partial) {
            self.findings.add_violation(AuditRule::Valid, "tree", "objects that can be read", &why);
        }
    }

    /// Reports trees that git's check refuses, because they are ambiguous or hold nothing. What git only warns about is
    /// a fault only in the runner's own commits, because the runner never writes it.
    pub(super) fn report_tree_faults(&mut self, found: &[PathFault], is_runners: bool) {
        for PathFault { path, fault } in found {
            if is_runners || fault.blames() == FaultTarget::Anyone {
                let path = format!("/{}", String::from_utf8_lossy(path));
                self.findings.add_violation(
                    AuditRule::Valid,
                    &path,
                    "a tree that git's check accepts",
                    &fault.to_string(),
                );
            }
        }
    }
}
