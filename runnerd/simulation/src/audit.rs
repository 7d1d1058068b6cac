//! Audits the branch after every simulated run; there must be no findings.

use protocol::verify::{AuditReport, Severity};
use runner_core::audit::{AuditPlan, BranchEnd, WatchPoint, audit_commits};
use runner_core::message::RunnerCommit;

use super::daemon::SimulatedRun;
use super::definition::{watched_at, watched_from_start};
use super::loaded::LoadedState;
use super::repository::{SimulatedCommit, all_files, links};

impl SimulatedRun {
    /// Audits the branch; the error lists the findings.
    pub(crate) fn audit(&self) -> Result<(), String> {
        if self.is_lost {
            // The work of its last session was never settled, so there is no branch to verify.
            return Ok(());
        }
        let chain = self.repository.chain();
        let report = self.report(&chain);
        let mut violations: Vec<String> = violations(&report);
        // A guard that rewrites history on the base while the daemon dies removes the start commit, and the audit
        // reports it.
        let first = chain.iter().find_map(|commit| RunnerCommit::parse(&commit.message).ok());
        if !matches!(first, Some(RunnerCommit::Start(_))) {
            let is_missing_start = |violation: &String| violation.contains(" Chain Runner-Commit: start: ");
            let position = violations
                .iter()
                .position(is_missing_start)
                .ok_or("a run without a start is none, and nobody says so")?;
            violations.remove(position);
        }
        if !violations.is_empty() {
            let first = report.findings.iter().find(|finding| finding.severity == Severity::Violation);
            let at = chain.iter().position(|commit| first.is_some_and(|first| first.commit == commit.id)).unwrap_or(0);
            let subject = |commit: &SimulatedCommit| commit.message.lines().next().unwrap_or_default().to_owned();
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

    /// Returns the position of the run's start commit; a fork's follows an iteration of another run.
    pub(crate) fn start_at(&self, chain: &[SimulatedCommit]) -> usize {
        chain.iter().position(|commit| self.begins(commit)).unwrap_or(1)
    }

    /// Whether a commit is the run's start commit.
    pub(crate) fn begins(&self, commit: &SimulatedCommit) -> bool {
        matches!(RunnerCommit::parse(&commit.message), Ok(RunnerCommit::Start(start)) if start.run == self.run)
    }

    /// Returns the audit's findings in a chain of commits.
    pub(crate) fn report(&self, chain: &[SimulatedCommit]) -> AuditReport {
        let (heads, mut links) = links(chain, &self.repository.blobs);
        let plan = AuditPlan::new(self.run, heads, BranchEnd::Root);
        let first = chain.len() - plan.commits().len();
        for (at, link) in links[first..].iter_mut().enumerate() {
            let position = first + at;
            let loaded = |at: usize| LoadedState::of(&chain[at]).ok();
            match plan.watch_point(at) {
                None => {}
                Some(WatchPoint::From) => {
                    link.watched =
                        loaded(position - 1).and_then(|from| watched_at(&from, chain[..position].iter().rev()));
                }
                Some(WatchPoint::Start) => {
                    link.start_watched = loaded(position).map(|state| watched_from_start(&state.files, &state.config));
                }
            }
        }
        let before = first.checked_sub(1).map(|at| all_files(&chain[at])).unwrap_or_default();
        audit_commits(plan, &before, &links[first..])
    }
}

/// Returns what no correct runner produces.
pub(crate) fn violations(report: &AuditReport) -> Vec<String> {
    let bad = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    bad.map(|finding| {
        let commit: String = finding.commit.chars().take(8).collect();
        let rule = finding.rule;
        let at = &finding.at;
        format!("{commit} {:?} {rule:?} {at}: expected {}; found {}", finding.iter, finding.expected, finding.found)
    })
    .collect()
}

/// Whether a commit ends an iteration.
pub(crate) fn is_iteration(commit: &SimulatedCommit) -> bool {
    matches!(RunnerCommit::parse(&commit.message), Ok(RunnerCommit::Iteration(_)))
}
