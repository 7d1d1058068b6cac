//! From a receipt back to the outcome that it tells of: the events of the iteration as far as the branch knows them,
//! judged by the same table that the runner asks.
//!
//! What only the runner can testify (how a guard ended, that a service was down) is taken from the receipt; what follows
//! from it is not.

use protocol::answer::{AgentAnswer, AnswerStatus};
use protocol::state::Failure;
use protocol::tree::ChildSpec;
use protocol::words::PhaseName;

use super::state::CommittedState;
use crate::examine::{self, Examined};
use crate::iteration::{
    By, Event, GuardEnd, GuardHow, IllegalEvent, Outcome, Phase, ReviewEnd, ReviewHow, Worked, decide,
};
use crate::layout;
use crate::message::{ProcessEnd, Receipt};
use crate::policy::Policy;
use crate::tree;
use crate::validate::TreeFault;
use crate::verdict::{
    Breach, FaultKind, FeedbackEffect, Finding, Rule, SessionEnd, SessionHow, StopCause, Task, TreeFinding, TreeTaken,
    Verdict, row,
};

/// Why the table leads to no verdict.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unjudged {
    /// A guard was to run.
    #[error("a guard was to be asked, and the receipt has none")]
    NoGuard,
    /// A reviewer was to run.
    #[error("a reviewer was to be asked, and the receipt has none")]
    NoReview,
    /// There is always something more to do.
    #[error("the iteration cannot have come to an end")]
    Endless,
    /// What is told cannot have happened in this order.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
}

/// How an iteration went on after its session, or a person's word, as far as it is told.
#[derive(Debug, Clone, Copy)]
struct Ends<'a> {
    stop: Option<StopCause>,
    guard: Option<&'a GuardEnd>,
    review: Option<&'a ReviewEnd>,
}

/// What is known of an iteration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence<'a> {
    /// What its session was asked, as it follows from From.
    pub task: &'a Task,
    /// What the runner testifies.
    pub receipt: &'a Receipt,
    /// The state at From.
    pub from: &'a CommittedState<'a>,
    /// The state after it.
    pub to: &'a CommittedState<'a>,
    /// The task tree that was not taken, where it is at hand.
    pub raw: Option<&'a [u8]>,
    /// Whether a path outside `.runner/` that the guard did not write differs from From.
    pub changed_code: bool,
    /// Whether a path outside `.runner/` differs from the base.
    pub changed_since_base: bool,
}

/// What the receipt tells of, made whole.
#[derive(Debug)]
pub(super) struct Told {
    /// The outcome, with the verdict of the receipt.
    pub outcome: Outcome,
    /// The outcome that the table leads to, or why it leads to none.
    pub judged: Result<Box<Outcome>, Unjudged>,
    /// The task tree that was left, as far as it is known.
    pub left: Examined,
}

impl<'a> Evidence<'a> {
    /// Returns what the receipt tells of; none where its verdict cannot be read.
    pub(super) fn told(&self) -> Option<Told> {
        let verdict = self.verdict()?;
        let left = self.left(&verdict);
        let stop = if let Verdict::Interrupted { by } = verdict { Some(by) } else { None };
        let stop = stop.filter(|_| !self.is_elsewhere_after_guard(&verdict));
        let (guard, review) = (self.guard(&verdict), self.review(&verdict));
        let task = self.task.clone();
        let (begin, by) = if let Some(decision) = &task.decision {
            ((Phase::Brief { task: task.clone() }, Event::Briefed), By::Person(decision.clone()))
        } else {
            let (end, finding) = (SessionEnd::new(self.how(&verdict)), self.finding(&verdict, left.finding.clone()));
            let inspect = Phase::Inspect { task: task.clone(), session: end.clone(), stop };
            ((inspect, Event::Inspected(finding.clone())), By::Session { end, finding })
        };
        let ends = Ends { stop, guard: guard.as_ref(), review: review.as_ref() };
        let judged = judged(&self.from.settings.policy, begin, ends);
        let work = Worked { task, by };
        Some(Told { outcome: Outcome { work, guard, review, verdict }, judged, left })
    }

    /// Whether HEAD was elsewhere when the guard had ended; its end is told, where it ended by itself, and says nothing. For a
    /// person's word nothing but a guard is run.
    fn is_elsewhere_after_guard(&self, verdict: &Verdict) -> bool {
        *verdict == Verdict::Interrupted { by: StopCause::Elsewhere }
            && (self.receipt.guard_run.is_some() || self.task.decision.is_some())
    }

    /// Whether the session gave an answer that counts.
    fn answered(&self) -> bool {
        self.to.run_state.last_summary.is_some()
    }

    /// The verdict with all of its details: `feedback.json` has more of them than the receipt.
    fn verdict(&self) -> Option<Verdict> {
        let line = &self.receipt.verdict;
        let is_told = row(line.name).feedback == FeedbackEffect::Told;
        let told = self.failure().filter(|failure| is_told && failure.verdict == line.name && !self.is_invalid_tree());
        let detail = told.map(|failure| failure.text.as_str()).or(line.detail.as_deref());
        Verdict::of(line.name, detail)
    }

    /// Whether the verdict is about a tree that is not valid: feedback then holds all that is wrong with it.
    fn is_invalid_tree(&self) -> bool {
        self.receipt.verdict.broken_rule() == Some(Rule::ValidTree)
    }

    /// What the next session is told of as failed: in this iteration, or before it.
    fn failure(&self) -> Option<&'a Failure> {
        self.to.feedback.nodes.get(&self.task.node)?.failure.as_ref()
    }

    /// The tree that the session left: the committed one where it was taken, else the one that was kept.
    fn left(&self, verdict: &Verdict) -> Examined {
        let is_refused = self.receipt.raw.is_some();
        if row(verdict.name()).tree != TreeTaken::Froms && !is_refused {
            let text = self.to.bytes(layout::TREE);
            return examine::examine_read(&self.left_with(text), self.to.tree.clone());
        }
        match self.raw {
            Some(_) => examine::examine(&self.left_with(self.raw)),
            None => Examined { finding: TreeFinding::UNTOUCHED, tree: None },
        }
    }

    fn left_with(&self, text: Option<&'a [u8]>) -> examine::LeftBySession<'_> {
        let max_attempts = self.from.settings.policy.max_attempts_default;
        examine::LeftBySession { from: self.from.tree, node: &self.task.node, text, answer: None, max_attempts }
    }

    /// How the session must have ended for this verdict.
    fn how(&self, verdict: &Verdict) -> SessionHow {
        match verdict {
            _ if self.is_elsewhere_after_guard(verdict) => SessionHow::Answered(self.answer(verdict)),
            Verdict::Interrupted { .. } => SessionHow::Cut,
            Verdict::Broken(Breach { rule: Rule::Context, seen, .. }) => {
                SessionHow::ContextExceeded { what: seen.clone() }
            }
            _ if self.answered() => SessionHow::Answered(self.answer(verdict)),
            Verdict::Unavailable { why, until } => SessionHow::Unavailable { why: why.clone(), until: *until },
            Verdict::Misconfigured { what } => SessionHow::Misconfigured { what: what.clone() },
            Verdict::Timeout { .. } | Verdict::Fault { kind: FaultKind::Timeout, .. } => SessionHow::TimedOut,
            Verdict::Fault { kind, what } => SessionHow::Faulty { kind: *kind, what: what.clone() },
            Verdict::Accepted | Verdict::RedGuard | Verdict::Rejected { .. } | Verdict::Pending => SessionHow::Cut,
            Verdict::Retry | Verdict::Narrowed | Verdict::Decomposed | Verdict::Broken(_) => SessionHow::Cut,
        }
    }

    fn answer(&self, verdict: &Verdict) -> AgentAnswer {
        let status = match verdict {
            Verdict::Retry | Verdict::Narrowed => AnswerStatus::Retry,
            Verdict::Decomposed => AnswerStatus::Decomposed,
            Verdict::Broken(breach) => status_of(breach.rule),
            // Whatever else has an answer was asked of a guard.
            Verdict::Accepted | Verdict::RedGuard | Verdict::Rejected { .. } | Verdict::Pending => AnswerStatus::Done,
            Verdict::Fault { .. } | Verdict::Unavailable { .. } | Verdict::Timeout { .. } => AnswerStatus::Done,
            Verdict::Misconfigured { .. } | Verdict::Interrupted { .. } => AnswerStatus::Done,
        };
        let brought = if let Verdict::Broken(breach) = verdict { breach.children().brought } else { 0 };
        let child = ChildSpec { title: String::new(), goal: String::new(), acceptance: Vec::new() };
        let children = (brought > 0).then(|| vec![child; brought.min(tree::MAX_NODES)]);
        let summary = self.to.run_state.last_summary.clone().unwrap_or_default();
        AgentAnswer { status, summary, children }
    }

    /// What was found after the session, as far as the verdict tells of it.
    fn finding(&self, verdict: &Verdict, left: TreeFinding) -> Finding {
        let legal = TreeFinding::UNTOUCHED;
        let mut finding = Finding {
            changed: true,
            changed_code: self.changed_code,
            changed_since_base: self.changed_since_base,
            dirty_submodules: self.to.run_state.dirty_submodules.clone(),
            reverted: self.to.run_state.reverted.clone(),
            ..Finding::new(left)
        };
        if let Verdict::Broken(breach) = verdict {
            let gained = breach.children().gained;
            match breach.rule {
                Rule::History if breach.by_guard().is_none() => finding.history = Some(breach.seen.clone()),
                Rule::History | Rule::Context => finding.tree = legal,
                Rule::ValidTree => finding.tree = self.invalid(breach),
                Rule::PassedNode | Rule::KeepNodes | Rule::KeepPlace => {
                    finding.tree = TreeFinding::Illegal(breach.clone());
                }
                Rule::KeepGoal => finding.tree = TreeFinding::Legal { gained: 0, reworded: true },
                Rule::ChildrenOnlyWithDecomposed | Rule::ChildrenOneWay => {
                    finding.tree = TreeFinding::Legal { gained, reworded: false };
                }
                Rule::DecomposedNeedsChildren | Rule::RootNeedsChange => finding.tree = legal,
                Rule::WorkerNoChildren => finding.tree = TreeFinding::Legal { gained: 1, reworded: false },
                Rule::PlannerNoCode => (finding.tree, finding.changed_code) = (legal, true),
            }
        } else if self.receipt.raw.is_some() && matches!(finding.tree, TreeFinding::Legal { .. }) {
            // It was kept because it was not legal; which rule it broke is not told.
            let at = self.task.node.clone();
            finding.tree = TreeFinding::Illegal(Breach { rule: Rule::KeepNodes, at, seen: String::new() });
        }
        finding
    }

    /// What was wrong with a tree that is not valid: all of it is in the feedback, the first in the receipt.
    fn invalid(&self, breach: &Breach) -> TreeFinding {
        let told = self.failure();
        let text = told.and_then(|failure| failure.invalid_tree.clone()).unwrap_or_default();
        let listed = told.and_then(|failure| failure.text.split_once(":\n- "));
        let rules = listed.map_or_else(|| vec![breach.seen.as_str()], |(_, list)| list.split("\n- ").collect());
        let faults = rules.into_iter().map(|rule| TreeFault { path: String::new(), rule: rule.to_owned() }).collect();
        TreeFinding::Invalid { faults, text, blob: None }
    }

    /// How the guard must have ended for this verdict, where one ran.
    fn guard(&self, verdict: &Verdict) -> Option<GuardEnd> {
        let how = match (&self.receipt.guard_run, verdict) {
            (Some(run), _) => match run.end {
                ProcessEnd::Exit(code) => GuardHow::Exited(code),
                ProcessEnd::Signal(signal) => GuardHow::Signaled(signal),
            },
            (None, Verdict::RedGuard) => GuardHow::TimedOut,
            (None, Verdict::Timeout { during: PhaseName::Guard }) => GuardHow::TimedOut,
            (None, Verdict::Fault { kind: FaultKind::Guard, .. }) => GuardHow::Lost,
            (None, Verdict::Misconfigured { what }) if self.answered() => GuardHow::Missing { what: what.clone() },
            (None, Verdict::Broken(breach)) if breach.by_guard().is_some() => GuardHow::Lost,
            (None, Verdict::Interrupted { .. }) if self.task.decision.is_some() => GuardHow::Cut,
            (None, _) => return None,
        };
        let history = if let Verdict::Broken(breach) = verdict { breach.by_guard().map(str::to_owned) } else { None };
        let wrote = &self.receipt.guard_wrote;
        Some(GuardEnd {
            digest: self.receipt.guard_run.as_ref().map(|run| run.output.to_string()),
            output: self.failure().map(|failure| failure.text.clone()).unwrap_or_default(),
            history,
            elsewhere: self.is_elsewhere_after_guard(verdict).then(String::new),
            // Which process wrote what had to be put back is not told.
            reverted: self.to.run_state.reverted.clone(),
            wrote: wrote.items().iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect(),
            ..GuardEnd::new(how)
        })
    }

    /// How the review must have ended for this verdict, where one can have been.
    fn review(&self, verdict: &Verdict) -> Option<ReviewEnd> {
        if self.task.decision.is_some() {
            return None;
        }
        let how = match (&self.receipt.review, verdict) {
            (Some(run), _) if run.accepted => ReviewHow::Accepted { reasons: String::new() },
            (Some(_), Verdict::Rejected { reasons }) => ReviewHow::Rejected { reasons: reasons.clone() },
            (Some(_), _) => ReviewHow::Rejected { reasons: String::new() },
            (None, Verdict::Fault { kind: FaultKind::Timeout, .. } | Verdict::Timeout { .. }) => ReviewHow::TimedOut,
            (None, Verdict::Fault { what, .. }) => ReviewHow::Failed { what: what.clone() },
            (None, Verdict::Unavailable { why, until }) => ReviewHow::Unavailable { why: why.clone(), until: *until },
            (None, Verdict::Misconfigured { what }) => ReviewHow::Misconfigured { what: what.clone() },
            (None, _) => return None,
        };
        let run = self.receipt.review.as_ref();
        let prompt = run.and_then(|run| run.prompt.as_ref()).map(ToString::to_string);
        let output = run.and_then(|run| run.output.as_ref()).map(ToString::to_string);
        // Whoever failed at last was not asked again.
        Some(ReviewEnd { prompt, output, tries: u32::MAX, ..ReviewEnd::new(how) })
    }
}

/// Asks the table for the outcome, from what was found after the session on, or from a person's word.
fn judged(policy: &Policy, begin: (Phase, Event), ends: Ends<'_>) -> Result<Box<Outcome>, Unjudged> {
    let Ends { mut stop, guard, review } = ends;
    let mut phase = decide(policy, begin.0, begin.1)?;
    let mut asked = 1;
    loop {
        let event = match &phase {
            // Who stops a person's word can only have stopped the guard that was asked again.
            Phase::Guard { .. } => match stop.take() {
                Some(cause) => Event::Stop(cause),
                None => Event::GuardEnded(guard.cloned().ok_or(Unjudged::NoGuard)?),
            },
            Phase::Review { .. } => Event::ReviewEnded(review.cloned().ok_or(Unjudged::NoReview)?),
            Phase::Settle { outcome } => return Ok(outcome.clone()),
            Phase::Open | Phase::Brief { .. } | Phase::Work { .. } => return Err(Unjudged::Endless),
            Phase::Inspect { .. } | Phase::Over { .. } => return Err(Unjudged::Endless),
        };
        asked += 1;
        if asked > 4 {
            return Err(Unjudged::Endless);
        }
        phase = decide(policy, phase, event)?;
    }
}

/// The answer that breaks a rule.
fn status_of(rule: Rule) -> AnswerStatus {
    match rule {
        Rule::DecomposedNeedsChildren | Rule::ChildrenOneWay | Rule::WorkerNoChildren => AnswerStatus::Decomposed,
        Rule::PlannerNoCode => AnswerStatus::Retry,
        Rule::ValidTree | Rule::PassedNode | Rule::KeepNodes | Rule::KeepPlace | Rule::KeepGoal => AnswerStatus::Done,
        Rule::ChildrenOnlyWithDecomposed | Rule::History | Rule::RootNeedsChange | Rule::Context => AnswerStatus::Done,
    }
}
