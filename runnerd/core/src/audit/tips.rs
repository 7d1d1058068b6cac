//! Whether what was once the last commit of a branch is still in it: a branch that was cut off at its end, or written anew, is
//! as good as any other by what is left of it.

use std::collections::BTreeSet;

use protocol::verify::{AuditFinding, AuditRule};

use super::findings::Findings;

/// Commits that are looked for on the first parents of a branch.
#[derive(Debug)]
pub struct Tips<'a> {
    tip: &'a str,
    missing: BTreeSet<&'a str>,
}

impl<'a> Tips<'a> {
    /// Looks for these on a branch with this last commit.
    pub fn new(tip: &'a str, tips: &'a [String]) -> Self {
        Self { tip, missing: tips.iter().map(String::as_str).collect() }
    }

    /// Takes a commit of the branch; returns whether all were found.
    pub fn take(&mut self, commit: &str) -> bool {
        self.missing.remove(commit);
        self.missing.is_empty()
    }

    /// Returns each that was not found as a violation.
    pub fn lost(self) -> Vec<AuditFinding> {
        let mut findings = Findings::default();
        findings.turn_to(self.tip, None);
        for tip in self.missing {
            let expected = format!("commit {tip}, which was its last once");
            let found = "a branch without it: cut off, or written anew";
            findings.violation(AuditRule::Tip, "branch", (&expected, found));
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
        let mut looked = Tips::new("d", &tips);
        let is_all: Vec<bool> = ["d", "c", "b", "a"].into_iter().map(|commit| looked.take(commit)).collect();
        assert_eq!(is_all, [false; 4]);
        let lost = looked.lost();
        assert_eq!(lost.len(), 1);
        assert_eq!((lost[0].commit.as_str(), lost[0].rule), ("d", AuditRule::Tip));
        assert!(lost[0].expected.contains("commit z"));
    }

    #[test]
    fn nobody_looks_on_when_all_are_found() {
        let tips = ["c".to_owned()];
        let mut looked = Tips::new("d", &tips);
        assert!(!looked.take("d") && looked.take("c"));
        assert!(looked.lost().is_empty());
    }
}
