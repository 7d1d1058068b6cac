//! Reviews: who is asked, and what follows from a reviewer's end or from a person's word.

use protocol::words::PhaseName;

use super::{By, GuardEnd, Outcome, Phase, ReviewEnd, ReviewHow, Worked};
use crate::approval::Decision;
use crate::policy::{Policy, ReviewBy};
use crate::verdict::{FaultKind, StopCause, Task, Verdict, timeout};

/// Times that a reviewer is asked within the budget before its failing is a fault.
const MAX_TRIES: u32 = 3;

/// Work that the guard has passed, and what reviewers said of it.
pub(super) struct Reviewed {
    pub(super) work: Worked,
    pub(super) guard: GuardEnd,
    pub(super) review: ReviewEnd,
}

/// Returns the phase after the preparation: a session, or what a person's word leads to.
pub(super) fn after_brief(task: Task) -> Phase {
    let Some(decision) = task.decision.clone() else { return Phase::Work { task, stop: None } };
    let is_rechecked = task.recheck && decision == Decision::Approve;
    let verdict = decision.verdict();
    let work = Worked { task, by: By::Person(decision) };
    if is_rechecked {
        return Phase::Guard { work, green: None, lost: None, stop: None };
    }
    Phase::Settle { outcome: Box::new(Outcome { work, guard: None, review: None, verdict }) }
}

/// Returns who is asked after a green guard; nobody where a person has said their word.
pub(super) fn by(policy: &Policy, work: &Worked) -> ReviewBy {
    if work.decision().is_some() { ReviewBy::Off } else { policy.review }
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
