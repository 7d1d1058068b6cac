//! Reviews: who is asked, and what follows from a reviewer's end or from a person's word.

use protocol::words::{Containment, PhaseName, Role};

use super::{GuardEnd, Outcome, Phase, ReviewEnd, ReviewHow, Worked};
use crate::approval::Decision;
use crate::policy::{Policy, ReviewBy};
use crate::verdict::{FaultKind, Finding, SessionEnd, SessionHow, StopCause, Task, TreeFinding, Verdict, timeout};

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
    let work = Worked { task, session: nobody(), finding: nothing() };
    if is_rechecked {
        return Phase::Guard { work, green: None, lost: None, stop: None };
    }
    let outcome = Outcome { work, guard: None, review: None, verdict: decision.verdict() };
    Phase::Settle { outcome: Box::new(outcome) }
}

/// What stands for a session where a person's word does: no process that could have been held loosely.
fn nobody() -> SessionEnd {
    SessionEnd { agent: Role::Human.to_string(), containment: Containment::Pidns, ..SessionEnd::new(SessionHow::Cut) }
}

/// What there is to find where nobody has worked.
fn nothing() -> Finding {
    Finding { changed_since_base: true, ..Finding::new(TreeFinding::UNTOUCHED) }
}

/// Returns who is asked after a green guard; nobody where a person has said their word.
pub(super) fn by(policy: &Policy, task: &Task) -> ReviewBy {
    if task.decision.is_some() { ReviewBy::Off } else { policy.review }
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
