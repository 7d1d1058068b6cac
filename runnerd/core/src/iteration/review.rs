//! Reviews: who reviews, and what follows from a reviewer's end or a person's decision.

use protocol::words::PhaseName;
use runner_config::ReviewPolicy;

use super::{GuardEnd, IterationOutcome, Phase, ReviewEnd, ReviewEndKind, WorkResult, WorkSource, guard_runs};
use crate::policy::Policy;
use crate::run::approval::Decision;
use crate::verdict::{FaultKind, SessionTask, StopCause, Verdict, timeout_verdict};

/// Times a reviewer is run within the budget before its failure becomes a fault.
const MAX_TRIES: u32 = 3;

/// Work that the guard has passed, and the reviewers' results.
pub(super) struct ReviewedWork {
    pub(super) work: WorkResult,
    pub(super) guard: GuardEnd,
    pub(super) review: ReviewEnd,
}

/// Returns the phase after the preparation: a session, or the consequence of a person's decision.
pub(super) fn phase_after_brief(task: SessionTask) -> Phase {
    let Some(decision) = task.decision.clone() else { return Phase::Work { task, stop: None } };
    let is_rechecked = task.recheck && decision == Decision::Approve;
    let verdict = decision.verdict();
    let work = WorkResult { task, by: WorkSource::Person(decision) };
    if is_rechecked {
        return guard_runs::first_guard_phase(work);
    }
    Phase::Settle { outcome: Box::new(IterationOutcome { work, guard: None, review: None, verdict }) }
}

/// Returns the reviewer after a green guard; none if a person has already decided.
pub(super) fn reviewer_for(policy: &Policy, work: &WorkResult, guard: &GuardEnd) -> ReviewPolicy {
    match work.decision() {
        Some(_) => ReviewPolicy::Off,
        None if guard.review_required => ReviewPolicy::Human,
        None => policy.review,
    }
}

/// Returns the phase after a review.
pub(super) fn phase_after_review(policy: &Policy, reviewed: ReviewedWork, stop: Option<StopCause>) -> Phase {
    let ReviewedWork { work, guard, review } = reviewed;
    if stop.is_none() && is_retried(&review) {
        return Phase::Review { work, guard: Box::new(guard), failed: Some(Box::new(review)), stop: None };
    }
    let verdict = review_verdict(policy, &review, stop);
    Phase::Settle { outcome: Box::new(IterationOutcome { work, guard: Some(guard), review: Some(review), verdict }) }
}

fn is_retried(review: &ReviewEnd) -> bool {
    matches!(review.how, ReviewEndKind::Failed { .. }) && review.tries < MAX_TRIES
}

fn review_verdict(policy: &Policy, review: &ReviewEnd, stop: Option<StopCause>) -> Verdict {
    if let Some(by) = stop {
        return Verdict::Interrupted { by };
    }
    match review.how.clone() {
        ReviewEndKind::Accepted { .. } => Verdict::Accepted,
        ReviewEndKind::Rejected { reasons } => Verdict::Rejected { reasons },
        ReviewEndKind::Failed { what } => Verdict::Fault { kind: FaultKind::Reviewer, what },
        ReviewEndKind::Unavailable { why, until } => Verdict::Unavailable { why, until },
        ReviewEndKind::Misconfigured { what } => Verdict::Misconfigured { what },
        ReviewEndKind::TimedOut => timeout_verdict(policy, PhaseName::Review),
        ReviewEndKind::Cut => Verdict::Interrupted { by: StopCause::Death },
    }
}
