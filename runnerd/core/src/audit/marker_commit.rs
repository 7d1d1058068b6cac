//! Checks the runner's commits between iterations: a start, a baseline and a resume may change only what they are for.

use protocol::state::{Baseline, Feedback, RunState};
use protocol::test_record::TestRecord;
use protocol::verify::AuditRule;
use protocol::words::GuardOutcome;

use super::compare::{self, CommittedFile};
use super::findings::AuditFindings;
use super::guard_definition::SessionDefinition;
use super::net_diff::NetDiff;
use super::ownership::{self, CommitKind};
use super::state::{AuditedState, RunnerFiles};
use crate::committed_state::StateFault;
use crate::driver::ClaimState;
use crate::files::layout;
use crate::files::person_edit;
use crate::fsck::is_like_runner_path;
use crate::guard::definition::GuardDefinition;
use crate::guard::test_results::{self, TestResults};
use crate::guard::watched_files::WatchedFiles;
use crate::iteration::transition::PROGRESS_HEADING;
use crate::message::{MarkerCommit, ProcessEnd, Receipt, RunnerCommit};
use crate::run;
use crate::tree;

/// A commit between iterations, and its parent.
pub(super) struct MarkerAudit<'a> {
    /// What the commit says.
    pub marker: &'a MarkerCommit,
    /// Id of its first parent.
    pub parent: &'a str,
    /// The state before the commit.
    pub before: &'a RunnerFiles,
    /// The state after it.
    pub to: &'a AuditedState<'a>,
    /// What it changed.
    pub net: &'a NetDiff,
    /// What a person has accepted of the guard's definition, as far as the branch tells.
    pub accepted: Option<&'a SessionDefinition>,
    /// The files watched from there on if it begins a run, as determined at the commit; `None` if that cannot be read.
    pub watched: Option<&'a WatchedFiles>,
    /// The receipt of the parent, if that ends an iteration.
    pub parent_receipt: Option<&'a Receipt>,
}

impl MarkerAudit<'_> {
    /// Checks a start: only `.runner/` changes, and the bookkeeping knows of no iterations, or in a fork of the earlier
    /// ones. Returns whether it starts a fork.
    pub(super) fn check_start(&self, findings: &mut AuditFindings) -> bool {
        self.check_from(findings);
        self.check_no_guard(findings);
        if self.watched.is_some_and(|begun| begun.is_blind) {
            let expected = "a guard whose files are watched";
            let found = "none: changes to what it runs go unnoticed";
            findings.add_warning(AuditRule::Milestone, "guard.definition", expected, found);
        }
        if self.to.goal.id() != Some(&self.marker.run) {
            let found = self.to.goal.id().unwrap_or("none");
            findings.add_violation(AuditRule::Milestone, layout::GOAL, &self.marker.run, found);
        }
        if let Err(forbidden) = person_edit::check_start(self.before.tree(), &self.to.tree) {
            findings.add_violation(
                AuditRule::Passes,
                layout::TREE,
                "a fresh tree, or the one that was there",
                &forbidden.to_string(),
            );
        }
        let is_fork = self.is_fork();
        if is_fork {
            self.check_renamed_fork(findings);
        } else {
            self.check_fresh_start(findings);
        }
        is_fork
    }

    /// Whether it continues, under another id, with everything that a receipt of another run has left.
    fn is_fork(&self) -> bool {
        let Ok(before) = self.before.committed_state() else { return false };
        if self.parent_receipt.is_none_or(|receipt| before.run_state.run_id.as_ref() != Some(&receipt.run)) {
            return false;
        }
        let run_id = Some(self.marker.run.clone());
        let base = Some(self.parent.to_owned());
        *self.to.run_state == RunState { run_id, base, ..(*before.run_state).clone() }
    }

    /// Checks that a fork is the commit it was made from under another name, and nothing else.
    fn check_renamed_fork(&self, findings: &mut AuditFindings) {
        self.check_changed_paths(CommitKind::Fork, findings);
        let bytes = |path| self.to.bytes(path).unwrap_or_default();
        let found = bytes(layout::RUN_STATE);
        compare::compare_values(
            AuditRule::Milestone,
            layout::RUN_STATE,
            &*self.to.run_state,
            &CommittedFile { value: &*self.to.run_state, bytes: found },
            findings,
        );
        let goal = self.before.committed_state().ok().and_then(|before| before.goal.with_id(&self.marker.run).ok());
        if goal.is_none_or(|goal| goal.as_bytes() != bytes(layout::GOAL)) {
            let expected = "the goal of the commit before, with another id";
            findings.add_violation(AuditRule::Milestone, layout::GOAL, expected, "another goal");
        }
    }

    fn check_fresh_start(&self, findings: &mut AuditFindings) {
        self.check_changed_paths(CommitKind::Start, findings);
        let state = &*self.to.run_state;
        let expected = RunState {
            run_id: Some(self.marker.run.clone()),
            base: Some(self.parent.to_owned()),
            notes_used: self.before.run_state().map(|before| before.notes_used.clone()).unwrap_or_default(),
            guard_definition: self.watched.map_or(&state.guard_definition, |begun| &begun.accepted).clone(),
            ..RunState::default()
        };
        let bytes = |path| self.to.bytes(path).unwrap_or_default();
        compare::compare_values(
            AuditRule::Milestone,
            layout::RUN_STATE,
            &expected,
            &CommittedFile { value: state, bytes: bytes(layout::RUN_STATE) },
            findings,
        );
        compare::compare_values(
            AuditRule::Milestone,
            layout::FEEDBACK,
            &Feedback::default(),
            &CommittedFile { value: &*self.to.feedback, bytes: bytes(layout::FEEDBACK) },
            findings,
        );
        let found = CommittedFile { value: &*self.to.tests, bytes: bytes(layout::TESTS) };
        compare::compare_values(AuditRule::Milestone, layout::TESTS, &TestRecord::default(), &found, findings);
        if bytes(layout::PROGRESS) != PROGRESS_HEADING.as_bytes() {
            findings.add_violation(AuditRule::Milestone, layout::PROGRESS, "no line", "lines");
        }
    }

    /// Checks a baseline: the guard's result, and the time it took.
    pub(super) fn check_baseline(&self, guard: GuardOutcome, findings: &mut AuditFindings) {
        // Commits between From and this one were made by the guard.
        if self.marker.from.is_none() {
            self.check_from(findings);
        }
        let before = match self.before.committed_state() {
            Ok(before) => before,
            Err(StateFault { path, fault }) => {
                return findings.add_violation(AuditRule::Valid, path, "a valid file before it", &fault.to_string());
            }
        };
        if !before.is_baseline_due() {
            findings.add_violation(AuditRule::Milestone, "baseline", "no baseline: none is due", "one");
        }
        let ran = self.marker.guard_run.as_ref().map_or(GuardOutcome::Skipped, |run| match run.end {
            ProcessEnd::Exit(0) => GuardOutcome::Pass,
            ProcessEnd::Exit(_) | ProcessEnd::Signal(_) => GuardOutcome::Fail,
        });
        let baseline = self.to.feedback.baseline.as_ref();
        for (at, found) in
            [("guard=", Some(guard)), ("feedback.json: baseline", baseline.map(|recorded| recorded.guard))]
        {
            if found != Some(ran) {
                let found = found.map_or("none", GuardOutcome::as_str);
                findings.add_violation(AuditRule::Milestone, at, ran.as_str(), found);
            }
        }
        let is_consistent = |recorded: &Baseline| {
            recorded.output.is_none() == (recorded.guard == GuardOutcome::Pass) && recorded.green_at.is_none()
        };
        if !baseline.is_none_or(is_consistent) {
            let expected = "what a guard printed that did not pass, and of no other";
            let found = "something else";
            findings.add_violation(AuditRule::Milestone, "feedback.json: baseline.output", expected, found);
        }
        let guard_definition = self.guard_definition();
        let state =
            RunState { elapsed_ms: self.to.run_state.elapsed_ms, guard_definition, ..(*before.run_state).clone() };
        let feedback = Feedback { baseline: baseline.cloned(), ..(*before.feedback).clone() };
        self.check_bookkeeping(&state, &feedback, findings);
        let expected = test_results::first_record(&TestResults::from_record(&self.to.tests));
        let found = CommittedFile { value: &*self.to.tests, bytes: self.to.bytes(layout::TESTS).unwrap_or_default() };
        compare::compare_values(AuditRule::Milestone, layout::TESTS, &expected, &found, findings);
        self.check_changed_paths(CommitKind::Baseline, findings);
        self.check_named_paths(findings);
        self.check_same_tree(&before, findings);
    }

    /// Checks that a baseline names every change outside `.runner/`: only its guard can have made it.
    fn check_named_paths(&self, findings: &mut AuditFindings) {
        let changed = self.net.code_paths().map(|(path, _)| path).filter(|path| !is_like_runner_path(path));
        for path in self.marker.guard_wrote.missing_names(&changed.collect::<Vec<_>>()) {
            let path = String::from_utf8_lossy(path);
            findings.add_violation(AuditRule::Owned, &path, "a change named in Runner-Guard-Wrote", "one that is not");
        }
    }

    /// Checks a resume: counters that stopped the run are reset, iterations are granted.
    pub(super) fn check_resume(&self, findings: &mut AuditFindings) {
        self.check_from(findings);
        self.check_no_guard(findings);
        self.check_changed_paths(CommitKind::Resume, findings);
        let Ok(before) = self.before.committed_state() else { return };
        let old = &*before.run_state;
        let new = &*self.to.run_state;
        let more = new.allowance.saturating_sub(old.allowance);
        let allowance = new.allowance.max(old.allowance);
        let granted = RunState { allowance, guard_definition: self.guard_definition(), ..old.clone() };
        let reset = RunState { guard_definition: self.guard_definition(), ..run::reset_counters(old, more) };
        let expected = if *new == granted { granted } else { reset };
        self.check_bookkeeping(&expected, &before.feedback, findings);
        self.check_same_tree(&before, findings);
    }

    /// Returns the guard's definition that the commit must have recorded.
    fn guard_definition(&self) -> GuardDefinition {
        let definition = &self.to.run_state.guard_definition;
        self.accepted.map_or(definition, |accepted| &accepted.definition_state.accepted).clone()
    }

    /// Checks that the commit names the one it is based on.
    fn check_from(&self, findings: &mut AuditFindings) {
        let from = self.marker.from.as_deref().unwrap_or("none");
        if from != self.parent {
            findings.add_violation(AuditRule::Chain, "Runner-From", self.parent, from);
        }
    }

    fn check_changed_paths(&self, kind: CommitKind, findings: &mut AuditFindings) {
        ownership::check(kind, &[], self.before, self.net, findings);
    }

    /// Checks that no guard has run for it.
    fn check_no_guard(&self, findings: &mut AuditFindings) {
        let MarkerCommit { guard_run, reverted, guard_wrote, .. } = self.marker;
        let lists = [("Runner-Reverted", reverted), ("Runner-Guard-Wrote", guard_wrote)];
        let lists = lists.map(|(at, list)| (at, !list.is_empty()));
        for (at, is_present) in [("Runner-Guard", guard_run.is_some())].into_iter().chain(lists) {
            if is_present {
                findings.add_violation(AuditRule::Receipt, at, "nothing", "something");
            }
        }
    }

    fn check_bookkeeping(&self, state: &RunState, feedback: &Feedback, findings: &mut AuditFindings) {
        let bytes = |path| self.to.bytes(path).unwrap_or_default();
        compare::compare_values(
            AuditRule::Milestone,
            layout::RUN_STATE,
            state,
            &CommittedFile { value: &*self.to.run_state, bytes: bytes(layout::RUN_STATE) },
            findings,
        );
        if self.net.runner_paths().any(|(path, _)| path == layout::FEEDBACK) {
            compare::compare_values(
                AuditRule::Milestone,
                layout::FEEDBACK,
                feedback,
                &CommittedFile { value: &*self.to.feedback, bytes: bytes(layout::FEEDBACK) },
                findings,
            );
        }
    }

    fn check_same_tree(&self, before: &AuditedState<'_>, findings: &mut AuditFindings) {
        if self.net.runner_paths().any(|(path, _)| path == layout::TREE) {
            let bytes = tree::canonical(&self.to.tree);
            compare::compare_trees(
                &before.tree,
                &before.tree,
                &CommittedFile { value: &*self.to.tree, bytes: bytes.as_bytes() },
                findings,
            );
        }
    }
}

/// Checks that a release is by the driver that had the run, as far as that is known.
pub(super) fn check_release(commit: &RunnerCommit, claim: Option<ClaimState>, findings: &mut AuditFindings) {
    let (RunnerCommit::Release(MarkerCommit { driver: Some(driver), .. }), Some(claim)) = (commit, claim) else {
        return;
    };
    let holder = match claim {
        ClaimState::By(holder) if holder == *driver => return,
        ClaimState::By(holder) => holder.to_string(),
        ClaimState::Unclaimed => "a claim before it".to_owned(),
    };
    findings.add_violation(AuditRule::Chain, "Runner-Driver", &holder, &driver.to_string());
}
