//! The runner's commits between iterations: a start, a baseline and a resume change what they are for, and nothing else.

use protocol::state::{Feedback, RunState};
use protocol::verify::AuditRule;
use protocol::words::GuardOutcome;

use super::compare::{self, File};
use super::findings::Findings;
use super::guarded::Accepted;
use super::link::Readers;
use super::net_diff::NetDiff;
use super::owned::{self, Kind};
use super::state::{CommittedState, State};
use crate::definition::Definition;
use crate::message::{Milestone, ProcessEnd, Receipt};
use crate::transition::PROGRESS_HEADING;
use crate::watched::Watched;
use crate::{layout, person, run, tree};

/// A commit between iterations, and what it was made upon.
pub(super) struct Step<'a> {
    /// What it says.
    pub milestone: &'a Milestone,
    /// Its first parent.
    pub parent: &'a str,
    /// The state before it.
    pub before: &'a State,
    /// The state after it.
    pub to: &'a CommittedState<'a>,
    /// What it changed.
    pub net: &'a NetDiff,
    /// What a person has accepted of the guard's definition, as far as the branch tells.
    pub accepted: Option<&'a Accepted>,
    /// What is watched where it begins a run, as the commit tells it; none where that cannot be read.
    pub begun: Option<&'a Watched>,
    /// The receipt of the parent, where that is the end of an iteration.
    pub upon: Option<&'a Receipt>,
    /// What reads the files whose form is not one of the rules.
    pub readers: &'a Readers,
}

impl Step<'_> {
    /// Checks a start: nothing but `.runner/`, with bookkeeping that knows of no iteration, or in a fork of those before
    /// it. Returns whether it is a fork's.
    pub(super) fn start(&self, findings: &mut Findings) -> bool {
        self.upon(findings);
        self.without_guard(findings);
        if self.begun.is_some_and(|begun| begun.is_blind) {
            let (expected, found) = ("a guard whose files are watched", "none: changes to what it runs go unnoticed");
            findings.warning(AuditRule::Milestone, "guard.definition", (expected, found));
        }
        if self.to.goal.id.as_deref() != Some(&self.milestone.run) {
            let found = self.to.goal.id.as_deref().unwrap_or("none");
            findings.violation(AuditRule::Milestone, layout::GOAL, (&self.milestone.run, found));
        }
        if let Err(overreach) = person::check_start(self.before.tree(), self.to.tree) {
            findings.violation(
                AuditRule::Passes,
                layout::TREE,
                ("a fresh tree, or the one that was there", &overreach.to_string()),
            );
        }
        let is_fork = self.is_fork();
        if is_fork {
            self.renamed(findings);
        } else {
            self.fresh(findings);
        }
        is_fork
    }

    /// Whether it goes on with all that a receipt of another run has left, under another id.
    fn is_fork(&self) -> bool {
        let Ok(before) = self.before.known() else { return false };
        if self.upon.is_none_or(|receipt| before.run_state.run_id.as_ref() != Some(&receipt.run)) {
            return false;
        }
        let (run_id, base) = (Some(self.milestone.run.clone()), Some(self.parent.to_owned()));
        *self.to.run_state == RunState { run_id, base, ..before.run_state.clone() }
    }

    /// Checks that a fork is the commit that it is made from with another name, and nothing else.
    fn renamed(&self, findings: &mut Findings) {
        self.only(Kind::Fork, findings);
        let bytes = |path| self.to.bytes(path).unwrap_or_default();
        let (run_state, found) = ((AuditRule::Milestone, layout::RUN_STATE), bytes(layout::RUN_STATE));
        compare::values(run_state, self.to.run_state, &File { value: self.to.run_state, bytes: found }, findings);
        let goal = (self.readers.renamed)(self.before.bytes(layout::GOAL).unwrap_or_default(), &self.milestone.run);
        if goal.is_none_or(|goal| goal.as_bytes() != bytes(layout::GOAL)) {
            let expected = "the goal of the commit before, with another id";
            findings.violation(AuditRule::Milestone, layout::GOAL, (expected, "another goal"));
        }
    }

    fn fresh(&self, findings: &mut Findings) {
        self.only(Kind::Start, findings);
        let state = self.to.run_state;
        let expected = RunState {
            run_id: Some(self.milestone.run.clone()),
            base: Some(self.parent.to_owned()),
            notes_used: self.before.run_state().map(|before| before.notes_used.clone()).unwrap_or_default(),
            guard_definition: self.begun.map_or(&state.guard_definition, |begun| &begun.accepted).clone(),
            ..RunState::default()
        };
        let bytes = |path| self.to.bytes(path).unwrap_or_default();
        let run_state = (AuditRule::Milestone, layout::RUN_STATE);
        compare::values(run_state, &expected, &File { value: state, bytes: bytes(layout::RUN_STATE) }, findings);
        let feedback = (AuditRule::Milestone, layout::FEEDBACK);
        compare::values(
            feedback,
            &Feedback::default(),
            &File { value: self.to.feedback, bytes: bytes(layout::FEEDBACK) },
            findings,
        );
        if bytes(layout::PROGRESS) != PROGRESS_HEADING.as_bytes() {
            findings.violation(AuditRule::Milestone, layout::PROGRESS, ("no line", "lines"));
        }
    }

    /// Checks a baseline: the guard's result, and the time that it took.
    pub(super) fn baseline(&self, guard: GuardOutcome, findings: &mut Findings) {
        // What lies between From and this commit the guard has committed.
        if self.milestone.from.is_none() {
            self.upon(findings);
        }
        let before = match self.before.known() {
            Ok(before) => before,
            Err((path, fault)) => {
                return findings.violation(AuditRule::Valid, path, ("a valid file before it", &fault.to_string()));
            }
        };
        if !before.is_baseline_due() {
            findings.violation(AuditRule::Milestone, "baseline", ("no baseline: none is due", "one"));
        }
        let ran = self.milestone.guard_run.as_ref().map_or(GuardOutcome::Skipped, |run| match run.end {
            ProcessEnd::Exit(0) => GuardOutcome::Pass,
            ProcessEnd::Exit(_) | ProcessEnd::Signal(_) => GuardOutcome::Fail,
        });
        let told = self.to.feedback.baseline.as_ref();
        for (at, found) in [("guard=", Some(guard)), ("feedback.json: baseline", told.map(|told| told.guard))] {
            if found != Some(ran) {
                let found = found.map_or("none", GuardOutcome::as_str);
                findings.violation(AuditRule::Milestone, at, (ran.as_str(), found));
            }
        }
        if told.is_some_and(|told| told.output.is_none() != (told.guard == GuardOutcome::Pass)) {
            let (expected, found) = ("what a guard printed that did not pass, and of no other", "something else");
            findings.violation(AuditRule::Milestone, "feedback.json: baseline.output", (expected, found));
        }
        let guard_definition = self.guard_definition();
        let state = RunState { elapsed_ms: self.to.run_state.elapsed_ms, guard_definition, ..before.run_state.clone() };
        let feedback = Feedback { baseline: told.cloned(), ..before.feedback.clone() };
        self.bookkeeping(&state, &feedback, findings);
        self.only(Kind::Baseline, findings);
        self.same_tree(&before, findings);
    }

    /// Checks a resume: counters that stopped the run are reset, iterations are granted.
    pub(super) fn resume(&self, findings: &mut Findings) {
        self.upon(findings);
        self.without_guard(findings);
        self.only(Kind::Resume, findings);
        let Ok(before) = self.before.known() else { return };
        let (old, new) = (before.run_state, self.to.run_state);
        let more = new.allowance.saturating_sub(old.allowance);
        let allowance = new.allowance.max(old.allowance);
        let granted = RunState { allowance, guard_definition: self.guard_definition(), ..old.clone() };
        let reset = RunState { guard_definition: self.guard_definition(), ..run::resumed(old, more) };
        let expected = if *new == granted { granted } else { reset };
        self.bookkeeping(&expected, before.feedback, findings);
        self.same_tree(&before, findings);
    }

    /// What it must have written of the guard's definition.
    fn guard_definition(&self) -> Definition {
        let told = &self.to.run_state.guard_definition;
        self.accepted.map_or(told, |accepted| &accepted.guarded.accepted).clone()
    }

    /// It says what it was made upon.
    fn upon(&self, findings: &mut Findings) {
        let from = self.milestone.from.as_deref().unwrap_or("none");
        if from != self.parent {
            findings.violation(AuditRule::Chain, "Runner-From", (self.parent, from));
        }
    }

    fn only(&self, kind: Kind, findings: &mut Findings) {
        owned::check((kind, &[]), (self.before, self.net), findings);
    }

    /// No guard has run for it.
    fn without_guard(&self, findings: &mut Findings) {
        let Milestone { guard_run, reverted, .. } = self.milestone;
        for (at, is_there) in [("Runner-Guard", guard_run.is_some()), ("Runner-Reverted", !reverted.is_empty())] {
            if is_there {
                findings.violation(AuditRule::Receipt, at, ("nothing", "something"));
            }
        }
    }

    fn bookkeeping(&self, state: &RunState, feedback: &Feedback, findings: &mut Findings) {
        let bytes = |path| self.to.bytes(path).unwrap_or_default();
        let run_state = (AuditRule::Milestone, layout::RUN_STATE);
        compare::values(
            run_state,
            state,
            &File { value: self.to.run_state, bytes: bytes(layout::RUN_STATE) },
            findings,
        );
        if self.net.runners().any(|(path, _)| path == layout::FEEDBACK) {
            let at = (AuditRule::Milestone, layout::FEEDBACK);
            compare::values(at, feedback, &File { value: self.to.feedback, bytes: bytes(layout::FEEDBACK) }, findings);
        }
    }

    fn same_tree(&self, before: &CommittedState<'_>, findings: &mut Findings) {
        if self.net.runners().any(|(path, _)| path == layout::TREE) {
            let bytes = tree::canonical(self.to.tree);
            compare::trees(before.tree, before.tree, &File { value: self.to.tree, bytes: bytes.as_bytes() }, findings);
        }
    }
}
