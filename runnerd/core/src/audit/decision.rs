//! A person's word that stands for a session: nothing comes along with it that was not there when it was given.
//!
//! Whether there was something to speak of, and what follows from the word, is checked as of every iteration.

use protocol::verify::AuditRule;

use super::findings::AuditFindings;
use super::guarded::SessionDefinition;
use super::net_diff::NetDiff;
use crate::message::Receipt;

/// What there is to look at.
#[derive(Debug, Clone, Copy)]
pub(super) struct DecisionAudit<'a> {
    /// The receipt.
    pub receipt: &'a Receipt,
    /// What differs between From and the commit.
    pub net: &'a NetDiff,
    /// Commits between the two that changed a path outside `.runner/`. Where the runner was kept from its own commit, a
    /// person may have committed what it had written of that.
    pub commits: u32,
    /// Whether the guard was asked again.
    pub reran_guard: bool,
    /// Paths that were put back.
    pub reverted: &'a [String],
    /// What a person has accepted of the guard's definition.
    pub accepted: Option<&'a SessionDefinition>,
}

impl DecisionAudit<'_> {
    /// Checks that nothing outside `.runner/` differs from From but what the guard that was asked again has written, and
    /// files of its definition that were put back to what a person has accepted.
    pub(super) fn check(&self, findings: &mut AuditFindings) {
        if self.commits > 0 && !self.reran_guard {
            let found = format!("{} between From and the receipt", self.commits);
            findings.add_violation(AuditRule::Owned, "commits", ("none: no process ran", &found));
        }
        let put_back = self.net.code_paths_with_sides().map(|(path, _)| path).filter(|path| self.is_restored(path));
        let put_back: Vec<&[u8]> = put_back.map(str::as_bytes).collect();
        let brought: Vec<&[u8]> = self.net.code_paths().filter(|path| !put_back.contains(path)).collect();
        let unexplained =
            if self.reran_guard { self.receipt.guard_wrote.missing_names(&brought) } else { brought.iter().collect() };
        for path in unexplained {
            let path = String::from_utf8_lossy(path);
            findings.add_violation(AuditRule::Owned, &path, ("as it was when a person spoke", "a change"));
        }
    }

    fn is_restored(&self, path: &str) -> bool {
        self.reran_guard
            && self.reverted.iter().any(|reverted| reverted == path)
            && self.accepted.is_some_and(|accepted| accepted.is_restored(path, self.net))
    }
}
