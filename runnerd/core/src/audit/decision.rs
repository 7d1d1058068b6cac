//! Audits review commits: a person's decision must not carry changes that were not there when it was given.
//!
//! Whether there was something to decide, and what follows from the decision, is checked as for every iteration, not
//! here.

use protocol::verify::AuditRule;

use super::findings::AuditFindings;
use super::guard_definition::SessionDefinition;
use super::net_diff::NetDiff;
use crate::fsck::is_like_runner_path;
use crate::message::Receipt;

/// A review commit to check.
#[derive(Debug, Clone, Copy)]
pub(super) struct DecisionAudit<'a> {
    /// Receipt of the commit.
    pub receipt: &'a Receipt,
    /// Net difference between From and the commit.
    pub net: &'a NetDiff,
    /// Number of commits between the two that changed a path outside `.runner/`. If the runner could not make its own
    /// commit, a person may have committed what it had written.
    pub commits: u32,
    /// Whether the guard ran again.
    pub reran_guard: bool,
    /// Paths that were restored.
    pub reverted: &'a [String],
    /// What a person has accepted of the guard's definition.
    pub accepted: Option<&'a SessionDefinition>,
}

impl DecisionAudit<'_> {
    /// Checks that nothing outside `.runner/` differs from From except what the repeated guard has written, and files
    /// of its definition that were restored to what a person has accepted.
    pub(super) fn check(&self, findings: &mut AuditFindings) {
        if self.commits > 0 && !self.reran_guard {
            let found = format!("{} between From and the receipt", self.commits);
            findings.add_violation(AuditRule::Owned, "commits", "none: no process ran", &found);
        }
        let put_back = self.net.code_paths_with_sides().map(|(path, _)| path).filter(|path| self.is_restored(path));
        let put_back: Vec<&[u8]> = put_back.map(str::as_bytes).collect();
        let paths = self.net.code_paths().map(|(path, _)| path);
        // What some file system takes for `.runner` is taken out; that none is added is checked for all commits.
        let paths: Vec<&[u8]> = paths.filter(|path| !put_back.contains(path) && !is_like_runner_path(path)).collect();
        let unexplained =
            if self.reran_guard { self.receipt.guard_wrote.missing_names(&paths) } else { paths.iter().collect() };
        for path in unexplained {
            let path = String::from_utf8_lossy(path);
            findings.add_violation(AuditRule::Owned, &path, "as it was when a person spoke", "a change");
        }
    }

    fn is_restored(&self, path: &str) -> bool {
        self.reran_guard
            && self.reverted.iter().any(|reverted| reverted == path)
            && self.accepted.is_some_and(|accepted| accepted.is_restored(path, self.net))
    }
}
