//! Checks whether former tips of a branch are still in it: a branch that was truncated or rewritten looks valid on its
//! own.

use std::collections::BTreeSet;

use protocol::verify::{AuditFinding, AuditRule};

use super::findings::AuditFindings;

/// A search for commits on the first parents of a branch.
#[derive(Debug)]
pub struct TipSearch<'a> {
    tip: &'a str,
    missing: BTreeSet<&'a str>,
}

impl<'a> TipSearch<'a> {
    /// Starts the search for `tips` on a branch with this last commit.
    pub fn new(tip: &'a str, tips: &'a [String]) -> Self {
        Self { tip, missing: tips.iter().map(String::as_str).collect() }
    }

    /// Visits a commit of the branch; returns whether all tips have been found.
    pub fn visit_commit(&mut self, commit: &str) -> bool {
        self.missing.remove(commit);
        self.missing.is_empty()
    }

    /// Returns a violation for each tip that was not found.
    pub fn into_findings(self) -> Vec<AuditFinding> {
        let mut findings = AuditFindings::default();
        findings.begin_commit(self.tip, None);
        for tip in self.missing {
            let expected = format!("commit {tip}, which was its last once");
            let found = "a branch without it: cut off, or rewritten";
            findings.add_violation(AuditRule::Tip, "branch", &expected, found);
        }
        findings.into_findings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_on_the_branch_is_lost_and_told_once() {
        let tips = ["b", "z", "z", "d"].map(str::to_owned);
        let mut looked = TipSearch::new("d", &tips);
        let is_all: Vec<bool> = ["d", "c", "b", "a"].into_iter().map(|commit| looked.visit_commit(commit)).collect();
        assert_eq!(is_all, [false; 4]);
        let lost = looked.into_findings();
        assert_eq!(lost.len(), 1);
        assert_eq!((lost[0].commit.as_str(), lost[0].rule), ("d", AuditRule::Tip));
        assert!(lost[0].expected.contains("commit z"));
    }

    #[test]
    fn nobody_looks_on_when_all_are_found() {
        let tips = ["c".to_owned()];
        let mut looked = TipSearch::new("d", &tips);
        assert!(!looked.visit_commit("d") && looked.visit_commit("c"));
        assert!(looked.into_findings().is_empty());
    }
}
