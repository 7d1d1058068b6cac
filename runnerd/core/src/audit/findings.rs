//! Collects findings, bounded: each with its commit, its rule, what was expected and what was found.

use protocol::verify::{AuditFinding, AuditRule, Severity};

use crate::text::fence;

/// Most findings kept per severity: more add nothing, and no number of warnings can hide a violation.
const MAX_FINDINGS: usize = 1_000;
/// Most bytes of each text of a finding.
const MAX_SHOWN: usize = 300;

/// The findings of an audit.
#[derive(Debug, Default)]
pub(super) struct AuditFindings {
    entries: Vec<AuditFinding>,
    commit: String,
    iter: Option<u32>,
}

impl AuditFindings {
    /// Starts the next commit.
    pub(super) fn begin_commit(&mut self, commit: &str, iter: Option<u32>) {
        commit.clone_into(&mut self.commit);
        self.iter = iter;
    }

    /// Adds a deviation that a runner which keeps the rules never produces.
    pub(super) fn add_violation(&mut self, rule: AuditRule, at: &str, expected: &str, found: &str) {
        self.push(Severity::Violation, rule, at, expected, found);
    }

    /// Adds something that a reader should know.
    pub(super) fn add_warning(&mut self, rule: AuditRule, at: &str, expected: &str, found: &str) {
        self.push(Severity::Warning, rule, at, expected, found);
    }

    fn push(&mut self, severity: Severity, rule: AuditRule, at: &str, expected: &str, found: &str) {
        if self.entries.iter().filter(|finding| finding.severity == severity).count() >= MAX_FINDINGS {
            return;
        }
        let cut = |text: &str| fence::one_line(text, MAX_SHOWN);
        self.entries.push(AuditFinding {
            commit: self.commit.clone(),
            iter: self.iter,
            rule,
            severity,
            at: cut(at),
            expected: cut(expected),
            found: cut(found),
        });
    }

    /// Returns the findings, in order.
    pub(super) fn into_findings(self) -> Vec<AuditFinding> {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_warnings_hides_a_violation() {
        let mut findings = AuditFindings::default();
        for number in 0..2 * MAX_FINDINGS {
            findings.add_warning(AuditRule::Form, &number.to_string(), "one", "another");
        }
        findings.add_violation(AuditRule::Passes, "node a", "not passed", "passed");
        let found = findings.into_findings();
        assert_eq!(found.len(), MAX_FINDINGS + 1);
        assert_eq!(found.last().map(|found| found.severity), Some(Severity::Violation));
    }
}
