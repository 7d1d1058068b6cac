//! The commits of a branch that a revision already contains.
//!
//! Says which these are, and drops their findings from a report; checks nothing again.

use std::collections::BTreeMap;

use protocol::error::{ErrorData, ErrorKind};
use protocol::verify::{AuditReport, AuditSince, Severity};
use runner_git::{GitError, Id, Repository};

use crate::admit::git_error;

/// A revision, and a cache of commits known to be in it or not.
#[derive(Debug)]
pub struct RevisionFilter<'a> {
    repository: &'a Repository,
    commit: Id,
    cache: BTreeMap<String, bool>,
}

impl<'a> RevisionFilter<'a> {
    /// Resolves a revision; fails if it names no commit.
    pub fn new(repository: &'a Repository, revision: &str) -> Result<Self, ErrorData> {
        let found = repository.resolve_revision(revision).map_err(|error| git_error(&error))?;
        let commit = found.ok_or_else(|| {
            let message = format!("`{revision}` names no commit in {}", repository.work_dir().display());
            ErrorData::new(ErrorKind::NotFound, message).hint("git log --oneline --first-parent")
        })?;
        Ok(Self { repository, commit, cache: BTreeMap::new() })
    }

    /// Whether the revision contains a commit; false for anything but an id.
    pub fn contains(&mut self, commit: &str) -> Result<bool, ErrorData> {
        if let Some(known) = self.cache.get(commit) {
            return Ok(*known);
        }
        let id = commit.parse::<Id>().ok();
        let is_in = id.map(|id| self.repository.is_ancestor(&id, &self.commit)).transpose();
        let is_in = is_in.map_err(|error: GitError| git_error(&error))?.unwrap_or(false);
        self.cache.insert(commit.to_owned(), is_in);
        Ok(is_in)
    }

    /// Drops the findings in commits that the revision contains from a report, and counts them.
    pub fn filter_report(&mut self, mut report: AuditReport) -> Result<AuditReport, ErrorData> {
        let mut excluded = AuditSince { commit: self.commit.to_string(), violations: 0, warnings: 0 };
        let mut later = Vec::new();
        for finding in report.findings {
            match (self.contains(&finding.commit)?, finding.severity) {
                (false, _) => later.push(finding),
                (true, Severity::Violation) => excluded.violations += 1,
                (true, Severity::Warning) => excluded.warnings += 1,
            }
        }
        report.findings = later;
        report.since = Some(excluded);
        Ok(report)
    }
}
