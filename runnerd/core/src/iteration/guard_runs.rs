//! The guard's runs in an iteration: which follows which, and what all of them lead to.
//!
//! One run is the rule. A guard whose supervisor was lost runs again, a red one once more on the same files, and one that
//! is green with a definition that no person has accepted also with the accepted one.

use protocol::words::{GuardOutcome, PhaseName};
use runner_config::ReviewPolicy;

use super::{GuardEnd, GuardEndKind, IterationEffect, Phase, WorkResult, review, settle_phase};
use crate::policy::Policy;
use crate::verdict::{FaultKind, RuleBreach, SessionTask, StopCause, Verdict, timeout_verdict};

/// The runs of the guard that came before another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EarlierGuards {
    /// It was green with a definition other than the accepted one.
    pub green: Option<Box<GuardEnd>>,
    /// It was red: what follows runs on the same files.
    pub red: Option<Box<GuardEnd>>,
    /// Its supervisor was lost.
    pub lost: Option<Box<GuardEnd>>,
}

impl EarlierGuards {
    /// Returns the effect of the run that follows.
    pub(super) fn next_effect(&self) -> IterationEffect {
        match (&self.red, &self.green) {
            (Some(_), _) => IterationEffect::RerunGuard,
            (None, Some(_)) => IterationEffect::RunAccepted,
            (None, None) => IterationEffect::RunGuard,
        }
    }

    pub(super) fn ends(&self) -> impl Iterator<Item = &GuardEnd> {
        [&self.green, &self.red, &self.lost].into_iter().filter_map(Option::as_deref)
    }
}

/// Returns the phase of the first guard.
pub(super) fn first_guard_phase(work: WorkResult) -> Phase {
    Phase::Guard { work, earlier: EarlierGuards::default(), stop: None }
}

/// Returns the phase after a guard and the runs before it.
pub(super) fn phase_after_guard(
    policy: &Policy,
    work: WorkResult,
    earlier: EarlierGuards,
    guard: GuardEnd,
    stop: Option<StopCause>,
) -> Phase {
    if stop.is_none() && is_run_again(&earlier, &guard) {
        return Phase::Guard { work, earlier: EarlierGuards { lost: Some(Box::new(guard)), ..earlier }, stop };
    }
    let EarlierGuards { green, red, lost } = earlier;
    let guard = GuardEnd { with_accepted: green.is_some(), ..guard }.with_earlier_run(lost.map(|lost| *lost));
    let before = work.elapsed_ms(green.as_deref().into_iter().chain([&guard]), None);
    if stop.is_none() && red.is_none() && guard.needs_second_run(policy, policy.budget_ms.saturating_sub(before)) {
        return Phase::Guard { work, earlier: EarlierGuards { green, red: Some(Box::new(guard)), lost: None }, stop };
    }
    let guard = guard.with_red_run(red.map(|red| *red)).with_earlier_run(green.map(|green| *green));
    match (guard_verdict(policy, &work, &guard, stop), review::reviewer_for(policy, &work, &guard)) {
        (Some(verdict), _) => settle_phase(work, Some(guard), verdict),
        (None, _) if guard.needs_accepted_run(policy) => {
            Phase::Guard { work, earlier: EarlierGuards { green: Some(Box::new(guard)), ..Default::default() }, stop }
        }
        (None, ReviewPolicy::Off) => settle_phase(work, Some(guard), Verdict::Accepted),
        (None, ReviewPolicy::Human) => settle_phase(work, Some(guard), Verdict::Pending),
        (None, ReviewPolicy::Agent) => Phase::Review { work, guard: Box::new(guard), failed: None, stop: None },
    }
}

/// Whether a guard whose supervisor was lost runs again. The second run of a red one does not: its result is known.
fn is_run_again(earlier: &EarlierGuards, guard: &GuardEnd) -> bool {
    let is_lost = guard.how == GuardEndKind::Lost && guard.history.is_none() && guard.elsewhere.is_none();
    is_lost && earlier.lost.is_none() && earlier.red.is_none()
}

/// Returns the verdict of a guard that was not green.
fn guard_verdict(policy: &Policy, work: &WorkResult, guard: &GuardEnd, stop: Option<StopCause>) -> Option<Verdict> {
    match (&guard.how, stop) {
        (_, Some(by)) => Some(Verdict::Interrupted { by }),
        _ if guard.elsewhere.is_some() => Some(Verdict::Interrupted { by: StopCause::Elsewhere }),
        (GuardEndKind::TimedOut, None) => Some(timeout_verdict(policy, PhaseName::Guard)),
        (GuardEndKind::Missing { what }, None) => Some(Verdict::Misconfigured { what: what.clone() }),
        (GuardEndKind::Cut, None) => Some(Verdict::Interrupted { by: StopCause::Death }),
        (GuardEndKind::Lost, None) => history_verdict(&work.task, guard).or(Some(lost_guard_verdict())),
        (GuardEndKind::Exited(_) | GuardEndKind::Signaled(_), None) => {
            history_verdict(&work.task, guard).or(red_guard_verdict(guard))
        }
    }
}

fn history_verdict(task: &SessionTask, guard: &GuardEnd) -> Option<Verdict> {
    guard.history.as_ref().map(|seen| Verdict::Broken(RuleBreach::for_guard(&task.node, seen)))
}

fn red_guard_verdict(guard: &GuardEnd) -> Option<Verdict> {
    (guard.outcome() != GuardOutcome::Pass).then_some(Verdict::RedGuard)
}

/// The guard's result is unknown: no attempt is charged, and the run ends if this keeps happening.
fn lost_guard_verdict() -> Verdict {
    Verdict::Fault { kind: FaultKind::Guard, what: "the guard's supervisor was killed twice".to_owned() }
}
