//! The state machine of an iteration: phases, events, and `decide`.
//!
//! A phase says which effect is in flight; an event says how an effect ended or what came from outside. Replaying the
//! same events after a restart leads to the same phase. Runs no effects itself.

pub mod forecast;
mod guard_runs;
mod process_ends;
mod review;
pub mod session_failure;
pub mod transition;
pub mod tree_examination;
mod work_result;

use protocol::words::{Containment, GuardOutcome, Mode, PhaseName};
use serde::{Deserialize, Serialize};

pub use self::guard_runs::EarlierGuards;
pub use self::process_ends::{DiscardedChange, GuardEnd, GuardEndKind, ReviewEnd, ReviewEndKind};
use self::review::ReviewedWork;
pub use self::work_result::{WorkResult, WorkSource};
use crate::guard::flakes::FlakyGuard;
use crate::policy::Policy;
use crate::run::blocker::Blocker;
use crate::verdict::{
    JudgeInput, SessionEnd, SessionFinding, SessionJudgement, SessionTask, StopCause, TreeFinding, Verdict, judge,
};

/// The phase of an iteration, with everything its effect needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Check, load, validate, select.
    Open,
    /// Write the context and the prompt.
    Brief {
        /// The selected leaf.
        task: SessionTask,
    },
    /// Run the agent's session.
    Work {
        /// The session's task.
        task: SessionTask,
        /// Why the session is being stopped, if it is.
        stop: Option<StopCause>,
    },
    /// Examine what the session left.
    Inspect {
        /// The session's task.
        task: SessionTask,
        /// How the session ended.
        session: SessionEnd,
        /// Why the session was stopped, if it was.
        stop: Option<StopCause>,
    },
    /// Run the project's own checks.
    Guard {
        /// The work to check.
        work: WorkResult,
        /// The runs before this one.
        earlier: EarlierGuards,
        /// Why the guard is being stopped, if it is.
        stop: Option<StopCause>,
    },
    /// Run the reviewer's session.
    Review {
        /// The work to review.
        work: WorkResult,
        /// The green guard run.
        guard: Box<GuardEnd>,
        /// The previous reviewers, which failed.
        failed: Option<Box<ReviewEnd>>,
        /// Why the review is being stopped, if it is.
        stop: Option<StopCause>,
    },
    /// Write and commit.
    Settle {
        /// The outcome to settle.
        outcome: Box<IterationOutcome>,
    },
    /// The iteration has ended.
    Over {
        /// How it ended.
        end: IterationEnd,
    },
}

/// Everything the Settle phase needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IterationOutcome {
    /// The session and what it left, or a person's decision.
    pub work: WorkResult,
    /// How the guard ended, if it ran.
    pub guard: Option<GuardEnd>,
    /// How the review ended, if a reviewer ran.
    pub review: Option<ReviewEnd>,
    /// The verdict.
    pub verdict: Verdict,
}

impl IterationOutcome {
    /// Returns the value of `guard=`: the one fixed by the verdict's row, otherwise the guard's actual outcome.
    pub fn guard_outcome(&self) -> GuardOutcome {
        let ran = self.guard.as_ref().map_or(GuardOutcome::Skipped, GuardEnd::outcome);
        crate::verdict::verdict_row(self.verdict.name()).guard.unwrap_or(ran)
    }

    /// Returns what is known of the guard's red run before a green one, unless the guard has no result.
    pub fn flaky_guard(&self) -> Option<&FlakyGuard> {
        let flaky = self.guard.as_ref().and_then(|guard| guard.flaky.as_ref());
        flaky.filter(|_| self.guard_outcome() != GuardOutcome::Skipped)
    }

    /// Returns the weakest containment among the processes. With no processes, nothing was contained loosely.
    pub fn containment(&self) -> Containment {
        let of_guard = self.guard.as_ref().and_then(|guard| guard.containment);
        let of_review = self.review.as_ref().and_then(|review| review.containment);
        let of_session = self.work.session().map_or(Containment::Pidns, |session| session.containment);
        of_guard.into_iter().chain(of_review).fold(of_session, Containment::min)
    }

    /// Returns the part of the budget that was used up, in milliseconds.
    pub fn elapsed_ms(&self) -> u64 {
        self.work.elapsed_ms(self.guard.as_ref(), self.review.as_ref())
    }

    /// Returns the mode, which depends on whether the session, the guard, or the runner by restoring the guard's
    /// definition, has changed a path outside `.runner/`. Of what the guard has written, `guard_wrote` is in the commit.
    pub fn mode(&self, guard_wrote: &[String]) -> Mode {
        let session_changed_code = self.work.finding().is_some_and(|finding| finding.changed_code);
        let is_code_changed = session_changed_code || !guard_wrote.is_empty() || self.has_restored_code();
        if is_code_changed { Mode::Execute } else { Mode::Decompose }
    }

    /// Whether restoring the guard's definition has changed a path outside `.runner/`.
    fn has_restored_code(&self) -> bool {
        let is_code = |path: &String| !path.starts_with(".runner/");
        self.guard.as_ref().is_some_and(|guard| guard.reverted.iter().any(is_code))
    }

    /// Returns whether the iteration ends in a commit; without one its number is used again.
    pub fn leaves_commit(&self) -> bool {
        let idle = matches!(self.verdict, Verdict::Unavailable { .. } | Verdict::Misconfigured { .. });
        // A person's decision that did not take effect is treated as if it had not been given.
        let unsaid =
            matches!(self.verdict, Verdict::Interrupted { .. } | Verdict::Timeout { .. } | Verdict::Fault { .. });
        let idle = idle || unsaid && self.work.decision().is_some();
        let guard_wrote = self.guard.as_ref().is_some_and(|guard| !guard.wrote.is_empty());
        !idle || self.work.finding().is_some_and(|finding| finding.changed) || guard_wrote || self.has_restored_code()
    }
}

/// How an iteration ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IterationEnd {
    /// Nothing was begun, because nothing is left to do or nothing may be done.
    Untouched,
    /// The iteration was settled.
    Settled {
        /// The verdict.
        verdict: Verdict,
        /// Id of the commit; `None` if nothing had changed.
        commit: Option<String>,
    },
}

/// An event of an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationEvent {
    /// The Open phase found a leaf to work on.
    Opened(SessionTask),
    /// The Open phase found nothing to begin; the run's state says why.
    Declined,
    /// Context and prompt are written.
    Briefed,
    /// The session has ended and all its processes are gone.
    SessionEnded(SessionEnd),
    /// What the session left is known, and what it must not have changed is restored.
    Inspected(SessionFinding),
    /// The guard has ended and all its processes are gone.
    GuardEnded(GuardEnd),
    /// The review has ended.
    ReviewEnded(ReviewEnd),
    /// Everything is written and, if anything changed, committed.
    Settled {
        /// Id of the commit; `None` if nothing had changed.
        commit: Option<String>,
    },
    /// The effect cannot be carried out for now: a full disk, a lock, a failing spawn.
    Obstructed(Blocker),
    /// Something asks the iteration to end now.
    Stop(StopCause),
    /// The daemon was restarted and has read the journal.
    Restarted,
}

/// The effect in flight during a phase; its inputs are in the phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IterationEffect {
    /// Check, load, validate, select.
    Open,
    /// Write the context and the prompt.
    Brief,
    /// Run the agent.
    RunSession,
    /// End the agent, and report the end of its session.
    EndSession,
    /// Examine what the session left, and restore what must not change.
    Inspect,
    /// Run the guard.
    RunGuard,
    /// Run the guard with the accepted definition in place of the one that the session left.
    RunAccepted,
    /// Run a red guard once more on the same files.
    RerunGuard,
    /// End the guard, and report its end.
    EndGuard,
    /// Run the reviewer.
    RunReview,
    /// End the reviewer, and report its end.
    EndReview,
    /// Write and commit.
    Settle,
}

/// An event that cannot occur in a phase: a bug, so the repository is held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {event} is not possible in phase {phase}")]
pub struct IllegalIterationEvent {
    /// The phase at the time.
    pub phase: PhaseName,
    /// Name of the event.
    pub event: &'static str,
}

impl Phase {
    /// Returns the phase's name.
    pub fn name(&self) -> PhaseName {
        match self {
            Self::Open => PhaseName::Open,
            Self::Brief { .. } => PhaseName::Brief,
            Self::Work { .. } => PhaseName::Work,
            Self::Inspect { .. } => PhaseName::Inspect,
            Self::Guard { .. } => PhaseName::Guard,
            Self::Review { .. } => PhaseName::Review,
            Self::Settle { .. } => PhaseName::Settle,
            Self::Over { .. } => PhaseName::Over,
        }
    }

    /// Returns the effect in flight during the phase.
    pub fn effect(&self) -> Option<IterationEffect> {
        match self {
            Self::Open => Some(IterationEffect::Open),
            Self::Brief { .. } => Some(IterationEffect::Brief),
            Self::Work { stop: None, .. } => Some(IterationEffect::RunSession),
            Self::Work { stop: Some(_), .. } => Some(IterationEffect::EndSession),
            Self::Inspect { .. } => Some(IterationEffect::Inspect),
            Self::Guard { earlier, stop: None, .. } => Some(earlier.next_effect()),
            Self::Guard { stop: Some(_), .. } => Some(IterationEffect::EndGuard),
            Self::Review { stop: None, .. } => Some(IterationEffect::RunReview),
            Self::Review { stop: Some(_), .. } => Some(IterationEffect::EndReview),
            Self::Settle { .. } => Some(IterationEffect::Settle),
            Self::Over { .. } => None,
        }
    }

    /// Returns the task, once a leaf has been selected.
    pub fn task(&self) -> Option<&SessionTask> {
        match self {
            Self::Brief { task } | Self::Work { task, .. } | Self::Inspect { task, .. } => Some(task),
            Self::Guard { work, .. } | Self::Review { work, .. } => Some(&work.task),
            Self::Settle { outcome } => Some(&outcome.work.task),
            Self::Open | Self::Over { .. } => None,
        }
    }

    /// Returns the part of the budget that is used up, in milliseconds.
    pub fn elapsed_ms(&self) -> u64 {
        match self {
            Self::Open | Self::Brief { .. } | Self::Work { .. } | Self::Over { .. } => 0,
            Self::Inspect { session, .. } => session.elapsed_ms,
            Self::Guard { work, earlier, .. } => work.elapsed_ms(earlier.ends(), None),
            Self::Review { work, guard, failed, .. } => work.elapsed_ms([guard.as_ref()], failed.as_deref()),
            Self::Settle { outcome } => outcome.elapsed_ms(),
        }
    }
}

impl IterationEvent {
    /// Returns the event's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Opened(_) => "Opened",
            Self::Declined => "Declined",
            Self::Briefed => "Briefed",
            Self::SessionEnded(_) => "SessionEnded",
            Self::Inspected(_) => "Inspected",
            Self::GuardEnded(_) => "GuardEnded",
            Self::ReviewEnded(_) => "ReviewEnded",
            Self::Settled { .. } => "Settled",
            Self::Obstructed(_) => "Obstructed",
            Self::Stop(_) => "Stop",
            Self::Restarted => "Restarted",
        }
    }
}

/// Returns the phase that follows `phase` after `event`.
pub fn decide(policy: &Policy, phase: Phase, event: IterationEvent) -> Result<Phase, IllegalIterationEvent> {
    let next = match (phase, event) {
        // Before Work, a stop leaves no trace, and nothing that was prepared is worth keeping.
        (Phase::Open, IterationEvent::Opened(task)) => Phase::Brief { task },
        (Phase::Open, IterationEvent::Declined) => end_phase(IterationEnd::Untouched),
        (Phase::Brief { task }, IterationEvent::Briefed) => review::phase_after_brief(task),
        (Phase::Open | Phase::Brief { .. }, IterationEvent::Stop(_)) => end_phase(IterationEnd::Untouched),
        (Phase::Open | Phase::Brief { .. }, IterationEvent::Restarted) => Phase::Open,

        // From Work on, every path goes through Inspect; a session that a dead daemon left behind counts as
        // interrupted.
        (Phase::Work { task, stop }, IterationEvent::SessionEnded(session)) => Phase::Inspect { task, session, stop },
        (Phase::Work { task, stop }, IterationEvent::Stop(cause)) => Phase::Work { task, stop: stop.or(Some(cause)) },
        (Phase::Work { task, stop }, IterationEvent::Restarted) => {
            Phase::Work { task, stop: stop.or(Some(StopCause::Death)) }
        }

        // A claim goes to the guard, everything else is settled. Only a person's stop is remembered: the daemon's own
        // stop leaves a phase whose effect is repeated at the next start.
        (Phase::Inspect { task, session, stop }, IterationEvent::Inspected(finding)) => {
            phase_after_inspect(policy, (task, session, finding), stop)
        }
        (Phase::Inspect { task, session, stop }, IterationEvent::Stop(cause)) => {
            Phase::Inspect { task, session, stop: first_stop(stop, cause) }
        }

        // The guard runs once; if it is cut off, it has no result. Which guards run again is decided there.
        (Phase::Guard { work, earlier, stop }, IterationEvent::GuardEnded(guard)) => {
            guard_runs::phase_after_guard(policy, work, earlier, guard, stop)
        }
        (Phase::Guard { work, earlier, stop }, IterationEvent::Stop(cause)) => {
            Phase::Guard { work, earlier, stop: first_stop(stop, cause) }
        }

        // The reviewer runs only after a green guard, and again if it gives no valid answer.
        (Phase::Review { work, guard, failed, stop }, IterationEvent::ReviewEnded(review)) => {
            review::phase_after_review(
                policy,
                ReviewedWork { work, guard: *guard, review: review.with_earlier_reviews(failed.map(|failed| *failed)) },
                stop,
            )
        }
        (Phase::Review { work, guard, failed, stop }, IterationEvent::Stop(cause)) => {
            Phase::Review { work, guard, failed, stop: first_stop(stop, cause) }
        }

        // Settling cannot be stopped: it is short, and it is what keeps the work. What is over stays over.
        (Phase::Settle { outcome }, IterationEvent::Settled { commit }) => {
            end_phase(IterationEnd::Settled { verdict: outcome.verdict, commit })
        }
        (phase @ (Phase::Settle { .. } | Phase::Over { .. }), IterationEvent::Stop(_)) => phase,

        // An effect that was not carried out is repeated; all of them are idempotent.
        (
            phase @ (Phase::Inspect { .. }
            | Phase::Guard { .. }
            | Phase::Review { .. }
            | Phase::Settle { .. }
            | Phase::Over { .. }),
            IterationEvent::Restarted,
        ) => phase,
        (
            phase @ (Phase::Open
            | Phase::Brief { .. }
            | Phase::Work { .. }
            | Phase::Inspect { .. }
            | Phase::Guard { .. }
            | Phase::Review { .. }
            | Phase::Settle { .. }),
            IterationEvent::Obstructed(_),
        ) => phase,

        (phase, event) => return Err(IllegalIterationEvent { phase: phase.name(), event: event.name() }),
    };
    Ok(next)
}

fn end_phase(end: IterationEnd) -> Phase {
    Phase::Over { end }
}

fn settle_phase(work: WorkResult, guard: Option<GuardEnd>, verdict: Verdict) -> Phase {
    Phase::Settle { outcome: Box::new(IterationOutcome { work, guard, review: None, verdict }) }
}

/// Returns the first stop that a person asked for.
fn first_stop(stop: Option<StopCause>, cause: StopCause) -> Option<StopCause> {
    match cause {
        StopCause::Pause | StopCause::Cancel => stop.or(Some(cause)),
        StopCause::Shutdown | StopCause::Death | StopCause::Elsewhere => stop,
    }
}

fn phase_after_inspect(
    policy: &Policy,
    left: (SessionTask, SessionEnd, SessionFinding),
    stop: Option<StopCause>,
) -> Phase {
    let (task, end, finding) = left;
    let judgement = judge(JudgeInput { policy, task: &task, stop, session: &end, finding: &finding });
    let work = WorkResult { task, by: WorkSource::Session { end, finding } };
    match judgement {
        SessionJudgement::Claimed => guard_runs::first_guard_phase(work),
        SessionJudgement::Final(verdict) => settle_phase(work, None, verdict),
    }
}

impl SessionFinding {
    /// Returns whether the tree that the session left can be taken.
    pub fn is_legal(&self) -> bool {
        let was_reset = self.history.is_some() || self.elsewhere.is_some() || self.scope.is_some();
        !was_reset && matches!(self.tree, TreeFinding::Legal { .. })
    }
}
