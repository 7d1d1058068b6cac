//! What follows every course: the audit of its branch, which must find nothing.

use protocol::verify::{AuditReport, Severity};
use runner_core::audit::{Plan, audit};
use runner_core::message::RunnerCommit;

use super::daemon::Course;
use super::loaded::READERS;
use super::repository::{Commit, all_files, links};

impl Course {
    /// Audits the branch; an error says what was found.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let chain = self.repository.chain();
        let report = self.report(&chain);
        let violations: Vec<String> = violations(&report);
        if !violations.is_empty() {
            let first = report.findings.iter().find(|finding| finding.severity == Severity::Violation);
            let at = chain.iter().position(|commit| first.is_some_and(|first| first.commit == commit.id)).unwrap_or(0);
            let subject = |commit: &Commit| commit.message.lines().next().unwrap_or_default().to_owned();
            let before: Vec<String> = chain[at.saturating_sub(5)..at].iter().map(subject).collect();
            let after: Vec<String> = chain[at + 1..].iter().take(3).map(subject).collect();
            let message = format!("{}\n{}\n{}", before.join("\n"), chain[at].message, after.join("\n"));
            return Err(format!("the audit finds in an honest branch:\n{}\n{message}", violations.join("\n")));
        }
        let receipts = chain.iter().filter(|commit| is_iteration(commit)).count();
        let counts = &report.counts;
        if !self.habits.has_prompts && counts.prompts > 0 || self.habits.has_prompts && counts.prompts_unknown > 0 {
            return Err(format!("prompts: {} built, {} unknown", counts.prompts, counts.prompts_unknown));
        }
        if (counts.iterations as usize) > receipts {
            return Err(format!("{} iterations of {receipts} receipts", counts.iterations));
        }
        Ok(())
    }

    /// Returns the place of the run's start: a fork's is upon an iteration of another run.
    pub(crate) fn start_at(&self, chain: &[Commit]) -> usize {
        let begins = |commit: &Commit| matches!(RunnerCommit::parse(&commit.message), Ok(RunnerCommit::Start(start)) if start.run == self.run);
        chain.iter().position(begins).unwrap_or(1)
    }

    /// Returns what an audit finds in a chain of commits.
    pub(crate) fn report(&self, chain: &[Commit]) -> AuditReport {
        let (heads, links) = links(chain, &self.repository.blobs);
        let base = self.start_at(chain).saturating_sub(1);
        let plan = Plan::new(self.run, chain.get(base).map(|commit| commit.id.as_str()), heads);
        let before = chain.get(base).map(all_files).unwrap_or_default();
        audit(plan, READERS, &before, &links[base + 1..])
    }
}

/// Returns what no runner that keeps the rules makes.
pub(crate) fn violations(report: &AuditReport) -> Vec<String> {
    let bad = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    bad.map(|finding| {
        let commit: String = finding.commit.chars().take(8).collect();
        let (rule, at) = (finding.rule, &finding.at);
        format!("{commit} {:?} {rule:?} {at}: expected {}; found {}", finding.iter, finding.expected, finding.found)
    })
    .collect()
}

/// Whether a commit is the end of an iteration.
pub(crate) fn is_iteration(commit: &Commit) -> bool {
    matches!(RunnerCommit::parse(&commit.message), Ok(RunnerCommit::Iteration(_)))
}
