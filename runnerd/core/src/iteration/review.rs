//! What follows from the end of a review (SPEC 5.2): another reviewer, or the end of the iteration.

use protocol::words::PhaseName;

use super::{GuardEnd, Outcome, Phase, ReviewEnd, ReviewHow, Worked};
use crate::policy::Policy;
use crate::verdict::{FaultKind, StopCause, Verdict, timeout};

/// Times that a reviewer is asked within the budget before its failing is a fault.
const MAX_TRIES: u32 = 3;

/// Work that the guard has passed, and what reviewers said of it.
pub(super) struct Reviewed {
    pub(super) work: Worked,
    pub(super) guard: GuardEnd,
    pub(super) review: ReviewEnd,
}

/// Returns the phase after a review.
pub(super) fn after(policy: &Policy, reviewed: Reviewed, stop: Option<StopCause>) -> Phase {
    let Reviewed { work, guard, review } = reviewed;
    if stop.is_none() && is_asked_again(&review) {
        return Phase::Review { work, guard, failed: Some(Box::new(review)), stop: None };
    }
    let verdict = verdict(policy, &review, stop);
    Phase::Settle { outcome: Box::new(Outcome { work, guard: Some(guard), review: Some(review), verdict }) }
}

fn is_asked_again(review: &ReviewEnd) -> bool {
    matches!(review.how, ReviewHow::Failed { .. }) && review.tries < MAX_TRIES
}

fn verdict(policy: &Policy, review: &ReviewEnd, stop: Option<StopCause>) -> Verdict {
    if let Some(by) = stop {
        return Verdict::Interrupted { by };
    }
    match review.how.clone() {
        ReviewHow::Accepted { .. } => Verdict::Accepted,
        ReviewHow::Rejected { reasons } => Verdict::Rejected { reasons },
        ReviewHow::Failed { what } => Verdict::Fault { kind: FaultKind::Reviewer, what },
        ReviewHow::Unavailable { why, until } => Verdict::Unavailable { why, until },
        ReviewHow::Misconfigured { what } => Verdict::Misconfigured { what },
        ReviewHow::TimedOut => timeout(policy, PhaseName::Review),
        ReviewHow::Cut => Verdict::Interrupted { by: StopCause::Death },
    }
}
