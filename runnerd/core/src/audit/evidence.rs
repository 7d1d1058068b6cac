//! Replays an iteration from its receipt: its events, as far as the branch knows them, go through the same table that
//! the runner uses.
//!
//! What only the runner can testify (how a guard ended, that a service was down) is taken from the receipt; what
//! follows from it is not.

use protocol::answer::{AgentAnswer, AnswerStatus};
use protocol::state::{Failure, Feedback};
use protocol::tree::ChildSpec;
use protocol::words::{Containment, GuardOutcome, PhaseName};

use super::state::AuditedState;
use crate::files::layout;
use crate::guard::flakes::FlakyGuard;
use crate::guard::test_results::{self, TestResults};
use crate::iteration::tree_examination::{self, TreeExamination};
use crate::iteration::{
    GuardEnd, GuardEndKind, IllegalIterationEvent, IterationEvent, IterationOutcome, Phase, ReviewEnd, ReviewEndKind,
    WorkResult, WorkSource, decide,
};
use crate::message::{GuardFlaky, ProcessEnd, Receipt};
use crate::policy::Policy;
use crate::tree;
use crate::tree::validate::TreeFault;
use crate::verdict::{
    FaultKind, FeedbackEffect, RuleBreach, SessionEnd, SessionEndKind, SessionFinding, SessionRule, SessionTask,
    StopCause, TreeFinding, TreeSource, Verdict, verdict_row,
};

/// Why the table leads to no verdict.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplayError {
    /// A guard should have run.
    #[error("a guard was to be asked, and the receipt has none")]
    NoGuard,
    /// A reviewer should have run.
    #[error("a reviewer was to be asked, and the receipt has none")]
    NoReview,
    /// There is always something more to do.
    #[error("the iteration cannot have come to an end")]
    Unfinished,
    /// The recorded events cannot have happened in this order.
    #[error(transparent)]
    Illegal(#[from] IllegalIterationEvent),
}

/// What followed the session, or a person's decision, as far as it is recorded.
#[derive(Debug, Clone, Copy)]
struct ProcessEnds<'a> {
    stop: Option<StopCause>,
    /// The guard's run, and what follows if it is red.
    guards: Option<&'a [GuardEnd; 2]>,
    review: Option<&'a ReviewEnd>,
}

/// What is known about an iteration.
#[derive(Debug, Clone)]
pub(super) struct IterationEvidence<'a> {
    /// The session's task, as it follows from From.
    pub task: &'a SessionTask,
    /// The runner's testimony.
    pub receipt: &'a Receipt,
    /// The state at From.
    pub from: &'a AuditedState<'a>,
    /// The state after the iteration.
    pub to: &'a AuditedState<'a>,
    /// The rejected task tree, if it is available.
    pub raw: Option<&'a [u8]>,
    /// Whether a path outside `.runner/` that the guard did not write differs from From.
    pub changed_code: bool,
    /// Whether a path outside `.runner/` differs from the base.
    pub changed_since_base: bool,
    /// The guard's red run before a green one, if the receipt names one.
    pub flaky: Option<FlakyGuard>,
}

/// The outcome reconstructed from a receipt.
#[derive(Debug)]
pub(super) struct ReplayedOutcome {
    /// The outcome, with the verdict of the receipt.
    pub outcome: IterationOutcome,
    /// The outcome that the table leads to, or why it leads to none.
    pub expected: Result<Box<IterationOutcome>, ReplayError>,
    /// The task tree that the session left, as far as it is known.
    pub tree: TreeExamination,
}

impl ReplayedOutcome {
    /// Returns what the table says of a red run before a green one; if that cannot be known, what the receipt says.
    pub(super) fn flaky_guard(&self, receipt: &Receipt) -> Option<GuardFlaky> {
        let Ok(judged) = &self.expected else { return receipt.guard_flaky.clone() };
        judged.flaky_guard().map(GuardFlaky::from)
    }
}

impl<'a> IterationEvidence<'a> {
    /// Reconstructs the outcome; `None` if the receipt's verdict cannot be parsed.
    pub(super) fn replay_outcome(&self) -> Option<ReplayedOutcome> {
        let verdict = self.full_verdict()?;
        let tree = self.examine_left_tree(&verdict);
        let stop = if let Verdict::Interrupted { by } = verdict { Some(by) } else { None };
        let stop = stop.filter(|_| !self.is_elsewhere_after_guard(&verdict));
        let guard = self.rebuild_guard_end(&verdict);
        let review = self.rebuild_review_end(&verdict);
        let task = self.task.clone();
        let (begin, by) = if let Some(decision) = &task.decision {
            ((Phase::Brief { task: task.clone() }, IterationEvent::Briefed), WorkSource::Person(decision.clone()))
        } else {
            let end = SessionEnd {
                hidden: self.to.run_state.hidden.clone(),
                ..SessionEnd::new(self.rebuild_session_end_kind(&verdict))
            };
            let finding = self.rebuild_finding(&verdict, tree.finding.clone());
            let inspect = Phase::Inspect { task: task.clone(), session: end.clone(), stop };
            ((inspect, IterationEvent::Inspected(finding.clone())), WorkSource::Session { end, finding })
        };
        let guards = guard.clone().map(|guard| self.rebuild_guard_runs(guard));
        let ends = ProcessEnds { stop, guards: guards.as_ref(), review: review.as_ref() };
        let judged = replay_phases(&self.from.policy, begin, ends);
        let work = WorkResult { task, by };
        Some(ReplayedOutcome { outcome: IterationOutcome { work, guard, review, verdict }, expected: judged, tree })
    }

    /// Whether HEAD had been moved away when the guard ended. The guard's end is recorded if it was not stopped, but it
    /// has no effect. A person's decision runs nothing but a guard.
    fn is_elsewhere_after_guard(&self, verdict: &Verdict) -> bool {
        *verdict == Verdict::Interrupted { by: StopCause::Elsewhere }
            && (self.receipt.guard_run.is_some() || self.task.decision.is_some())
    }

    /// Whether the session gave an answer that counts.
    fn has_answer(&self) -> bool {
        self.to.run_state.last_summary.is_some()
    }

    /// Returns the verdict with all its details: `feedback.json` has more of them than the receipt.
    fn full_verdict(&self) -> Option<Verdict> {
        let line = &self.receipt.verdict;
        let is_recorded = verdict_row(line.name).feedback == FeedbackEffect::Record;
        let failure = self
            .recorded_failure()
            .filter(|failure| is_recorded && failure.verdict == line.name && !self.is_invalid_tree());
        let detail = failure.map(|failure| failure.text.as_str()).or(line.detail.as_deref());
        Verdict::parse(line.name, detail)
    }

    /// Whether the verdict is about an invalid tree: feedback then lists everything that is wrong with it.
    fn is_invalid_tree(&self) -> bool {
        self.receipt.verdict.broken_rule() == Some(SessionRule::ValidTree)
    }

    /// Returns the failure of this iteration as the next session reads it.
    fn recorded_failure(&self) -> Option<&'a Failure> {
        find_failure(&self.to.feedback, &self.task.node, self.task.iter)
    }

    /// Examines the tree that the session left: the committed one if it was taken, otherwise the one that was kept.
    fn examine_left_tree(&self, verdict: &Verdict) -> TreeExamination {
        let is_refused = self.receipt.raw.is_some();
        if verdict_row(verdict.name()).tree != TreeSource::FromCommit && !is_refused {
            let text = self.to.bytes(layout::TREE);
            return tree_examination::examine_parsed_tree(&self.session_tree(text), (*self.to.tree).clone());
        }
        match self.raw {
            Some(_) => tree_examination::examine_tree(&self.session_tree(self.raw)),
            None => TreeExamination { finding: TreeFinding::UNTOUCHED, tree: None },
        }
    }

    fn session_tree(&self, text: Option<&'a [u8]>) -> tree_examination::SessionTree<'_> {
        let max_attempts = self.from.policy.max_attempts_default;
        let SessionTask { node, role, .. } = self.task;
        let from = &self.from.tree;
        let role = *role;
        tree_examination::SessionTree { from, node, role, text, answer: None, max_attempts }
    }

    /// Returns how the session must have ended for this verdict.
    fn rebuild_session_end_kind(&self, verdict: &Verdict) -> SessionEndKind {
        match verdict {
            _ if self.is_elsewhere_after_guard(verdict) => SessionEndKind::Answered(self.rebuild_answer(verdict)),
            Verdict::Interrupted { .. } => SessionEndKind::Cut,
            Verdict::Broken(RuleBreach { rule: SessionRule::Context, details, .. }) => {
                SessionEndKind::ContextExceeded { what: details.clone() }
            }
            _ if self.has_answer() => SessionEndKind::Answered(self.rebuild_answer(verdict)),
            Verdict::Unavailable { why, until } => SessionEndKind::Unavailable { why: why.clone(), until: *until },
            Verdict::Misconfigured { what } => SessionEndKind::Misconfigured { what: what.clone() },
            Verdict::Timeout { .. } | Verdict::Fault { kind: FaultKind::Timeout, .. } => SessionEndKind::TimedOut,
            Verdict::Fault { kind, what } => SessionEndKind::Faulty { kind: *kind, what: what.clone() },
            Verdict::Accepted | Verdict::RedGuard | Verdict::Rejected { .. } | Verdict::Pending => SessionEndKind::Cut,
            Verdict::Retry | Verdict::Narrowed | Verdict::Decomposed | Verdict::Broken(_) => SessionEndKind::Cut,
        }
    }

    fn rebuild_answer(&self, verdict: &Verdict) -> AgentAnswer {
        let status = match verdict {
            Verdict::Retry | Verdict::Narrowed => AnswerStatus::Retry,
            Verdict::Decomposed => AnswerStatus::Decomposed,
            Verdict::Broken(breach) => status_breaking_rule(breach.rule),
            // Every other verdict with an answer required a guard.
            Verdict::Accepted | Verdict::RedGuard | Verdict::Rejected { .. } | Verdict::Pending => AnswerStatus::Done,
            Verdict::Fault { .. } | Verdict::Unavailable { .. } | Verdict::Timeout { .. } => AnswerStatus::Done,
            Verdict::Misconfigured { .. } | Verdict::Interrupted { .. } => AnswerStatus::Done,
        };
        let answered = if let Verdict::Broken(breach) = verdict { breach.child_counts().answered } else { 0 };
        let child = ChildSpec { title: String::new(), goal: String::new(), acceptance: Vec::new() };
        let children = (answered > 0).then(|| vec![child; answered.min(tree::MAX_NODES)]);
        let summary = self.to.run_state.last_summary.clone().unwrap_or_default();
        AgentAnswer { status, summary, children }
    }

    /// Returns what was found after the session, as far as the verdict records it.
    fn rebuild_finding(&self, verdict: &Verdict, tree: TreeFinding) -> SessionFinding {
        let legal = TreeFinding::UNTOUCHED;
        let mut finding = SessionFinding {
            changed: true,
            changed_code: self.changed_code,
            changed_since_base: self.changed_since_base,
            dirty_submodules: self.to.run_state.dirty_submodules.clone(),
            reverted: self.to.run_state.reverted.clone(),
            ..SessionFinding::new(tree)
        };
        if let Verdict::Broken(breach) = verdict {
            let gained = breach.child_counts().gained;
            match breach.rule {
                SessionRule::History if breach.guard_history().is_none() => {
                    finding.history = Some(breach.details.clone());
                }
                SessionRule::Scope => (finding.tree, finding.scope) = (legal, Some(breach.details.clone())),
                SessionRule::History | SessionRule::Context => finding.tree = legal,
                SessionRule::ValidTree => finding.tree = self.rebuild_invalid_tree(breach),
                SessionRule::PassedNode
                | SessionRule::KeepNodes
                | SessionRule::KeepPlace
                | SessionRule::NodeCount
                | SessionRule::SingleChild => {
                    finding.tree = TreeFinding::Illegal(breach.clone());
                }
                SessionRule::KeepGoal => finding.tree = TreeFinding::Legal { gained: 0, reworded: true },
                SessionRule::ChildrenOnlyWithDecomposed | SessionRule::ChildrenOneWay => {
                    finding.tree = TreeFinding::Legal { gained, reworded: false };
                }
                SessionRule::DecomposedNeedsChildren | SessionRule::RootNeedsChange => finding.tree = legal,
                SessionRule::WorkerNoChildren => finding.tree = TreeFinding::Legal { gained: 1, reworded: false },
                SessionRule::PlannerNoCode => (finding.tree, finding.changed_code) = (legal, true),
            }
        } else if self.receipt.raw.is_some() && matches!(finding.tree, TreeFinding::Legal { .. }) {
            // The tree was kept because it was illegal; which rule it broke is not recorded.
            let at = self.task.node.clone();
            finding.tree =
                TreeFinding::Illegal(RuleBreach { rule: SessionRule::KeepNodes, at, details: String::new() });
        }
        finding
    }

    /// Returns what was wrong with an invalid tree: the feedback has all of it, the receipt the first fault.
    fn rebuild_invalid_tree(&self, breach: &RuleBreach) -> TreeFinding {
        let failure = self.recorded_failure();
        let text = failure.and_then(|failure| failure.invalid_tree.clone()).unwrap_or_default();
        let listed = failure.and_then(|failure| failure.text.split_once(":\n- "));
        let rules = listed.map_or_else(|| vec![breach.details.as_str()], |(_, list)| list.split("\n- ").collect());
        let faults = rules.into_iter().map(|rule| TreeFault { path: String::new(), rule: rule.to_owned() }).collect();
        TreeFinding::Invalid { faults, text, blob: None }
    }

    /// Returns how the guard must have ended for this verdict, if one ran.
    fn rebuild_guard_end(&self, verdict: &Verdict) -> Option<GuardEnd> {
        let how = match (&self.receipt.guard_run, verdict) {
            (Some(run), _) => match run.end {
                ProcessEnd::Exit(code) => GuardEndKind::Exited(code),
                ProcessEnd::Signal(signal) => GuardEndKind::Signaled(signal),
            },
            (None, Verdict::RedGuard) => GuardEndKind::TimedOut,
            (None, Verdict::Timeout { during: PhaseName::Guard }) => GuardEndKind::TimedOut,
            (None, Verdict::Fault { kind: FaultKind::Guard, .. }) => GuardEndKind::Lost,
            (None, Verdict::Misconfigured { what }) if self.has_answer() => {
                GuardEndKind::Missing { what: what.clone() }
            }
            (None, Verdict::Broken(breach)) if breach.guard_history().is_some() => GuardEndKind::Lost,
            (None, Verdict::Interrupted { .. }) if self.task.decision.is_some() => GuardEndKind::Cut,
            (None, _) => return None,
        };
        let history =
            if let Verdict::Broken(breach) = verdict { breach.guard_history().map(str::to_owned) } else { None };
        let wrote = &self.receipt.guard_wrote;
        // What is recorded begins with the reason why it counts.
        let text = self.recorded_failure().map(|failure| failure.text.as_str()).unwrap_or_default();
        let notice = self.flaky.as_ref().and_then(FlakyGuard::charge_notice);
        let output = notice.and_then(|notice| text.strip_prefix(&notice)).unwrap_or(text).to_owned();
        Some(GuardEnd {
            digest: self.receipt.guard_run.as_ref().map(|run| run.output.to_string()),
            output,
            flaky: self.flaky.clone(),
            history,
            elsewhere: self.is_elsewhere_after_guard(verdict).then(String::new),
            // Which process wrote what had to be restored is not recorded.
            reverted: self.to.run_state.reverted.clone(),
            tests: self.rebuild_test_results(),
            review_required: self.is_review_required(),
            wrote: wrote.items().iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect(),
            ..GuardEnd::new(how)
        })
    }

    /// Returns the guard's runs: if it was flaky, one of them was red. Otherwise both ended in the same way.
    fn rebuild_guard_runs(&self, guard: GuardEnd) -> [GuardEnd; 2] {
        let guard = GuardEnd { flaky: None, ..guard };
        let Some(FlakyGuard { failing, suspects }) = &self.flaky else { return [guard.clone(), guard] };
        let (first, second) = match guard.outcome() {
            GuardOutcome::Pass => (GuardEnd::new(GuardEndKind::Exited(1)), guard),
            GuardOutcome::Fail if !suspects.is_empty() => (guard, GuardEnd::new(GuardEndKind::Exited(0))),
            // A red run is recorded only if the session is charged for it.
            GuardOutcome::Fail | GuardOutcome::Skipped => return [guard.clone(), guard],
        };
        let red = GuardEnd {
            failing: failing.clone(),
            suspects: suspects.clone(),
            wrote: Vec::new(),
            containment: Some(Containment::Walk),
            ..first
        };
        [red, second]
    }

    /// Returns the tests that the guard named, if it has changed what is known of them.
    fn rebuild_test_results(&self) -> Option<TestResults> {
        (self.to.tests != self.from.tests).then(|| TestResults::from_record(&self.to.tests))
    }

    /// Whether tests are lost with a definition of the guard that no person has accepted.
    fn is_review_required(&self) -> bool {
        let has_changed = !self.receipt.guard_changed.is_empty();
        test_results::is_review_required(&self.from.tests, &self.to.tests, self.from.policy.on_change, has_changed)
    }

    /// Returns how the review must have ended for this verdict, if one can have run.
    fn rebuild_review_end(&self, verdict: &Verdict) -> Option<ReviewEnd> {
        if self.task.decision.is_some() {
            return None;
        }
        let how = match (&self.receipt.review, verdict) {
            (Some(run), _) if run.accepted => ReviewEndKind::Accepted { reasons: String::new() },
            (Some(_), Verdict::Rejected { reasons }) => ReviewEndKind::Rejected { reasons: reasons.clone() },
            (Some(_), _) => ReviewEndKind::Rejected { reasons: String::new() },
            (None, Verdict::Fault { kind: FaultKind::Timeout, .. } | Verdict::Timeout { .. }) => {
                ReviewEndKind::TimedOut
            }
            (None, Verdict::Fault { what, .. }) => ReviewEndKind::Failed { what: what.clone() },
            (None, Verdict::Unavailable { why, until }) => {
                ReviewEndKind::Unavailable { why: why.clone(), until: *until }
            }
            (None, Verdict::Misconfigured { what }) => ReviewEndKind::Misconfigured { what: what.clone() },
            (None, _) => return None,
        };
        let run = self.receipt.review.as_ref();
        let prompt = run.and_then(|run| run.prompt.as_ref()).map(ToString::to_string);
        let output = run.and_then(|run| run.output.as_ref()).map(ToString::to_string);
        // A reviewer that failed the last time was not asked again.
        Some(ReviewEnd { prompt, output, tries: u32::MAX, ..ReviewEnd::new(how) })
    }
}

/// Runs the table from the finding after the session, or from a person's decision, to the outcome.
fn replay_phases(
    policy: &Policy,
    begin: (Phase, IterationEvent),
    ends: ProcessEnds<'_>,
) -> Result<Box<IterationOutcome>, ReplayError> {
    let ProcessEnds { mut stop, guards, review } = ends;
    let mut phase = decide(policy, begin.0, begin.1)?;
    let mut count = 1;
    loop {
        let event = match &phase {
            // A stop during a person's decision can only have stopped the repeated guard.
            Phase::Guard { earlier, .. } => {
                if let Some(cause) = stop.take() {
                    IterationEvent::Stop(cause)
                } else {
                    let [first, second] = guards.ok_or(ReplayError::NoGuard)?;
                    let guard = if earlier.red.is_none() { first } else { second };
                    IterationEvent::GuardEnded(guard.clone())
                }
            }
            Phase::Review { .. } => IterationEvent::ReviewEnded(review.cloned().ok_or(ReplayError::NoReview)?),
            Phase::Settle { outcome } => return Ok(outcome.clone()),
            Phase::Open | Phase::Brief { .. } | Phase::Work { .. } => return Err(ReplayError::Unfinished),
            Phase::Inspect { .. } | Phase::Over { .. } => return Err(ReplayError::Unfinished),
        };
        count += 1;
        if count > 4 {
            return Err(ReplayError::Unfinished);
        }
        phase = decide(policy, phase, event)?;
    }
}

/// Returns the answer that breaks a rule.
fn status_breaking_rule(rule: SessionRule) -> AnswerStatus {
    match rule {
        SessionRule::DecomposedNeedsChildren
        | SessionRule::ChildrenOneWay
        | SessionRule::NodeCount
        | SessionRule::SingleChild
        | SessionRule::WorkerNoChildren => AnswerStatus::Decomposed,
        SessionRule::PlannerNoCode => AnswerStatus::Retry,
        SessionRule::ValidTree
        | SessionRule::PassedNode
        | SessionRule::KeepNodes
        | SessionRule::KeepPlace
        | SessionRule::KeepGoal => AnswerStatus::Done,
        SessionRule::ChildrenOnlyWithDecomposed
        | SessionRule::History
        | SessionRule::Scope
        | SessionRule::RootNeedsChange
        | SessionRule::Context => AnswerStatus::Done,
    }
}

/// Returns what feedback tells of an iteration on a node that failed.
pub(super) fn find_failure<'a>(feedback: &'a Feedback, node: &str, iter: u32) -> Option<&'a Failure> {
    feedback.nodes.get(node)?.failures.iter().find(|failure| failure.iter == iter)
}
