//! The loop of an iteration, one event at a time: the same as the real one, without its concurrency.
//!
//! The tests in `worker/tests` use the real loop to show how effects, stops and disk errors interleave.

use jiff::SignedDuration;
use runner_core::iteration::{IterationEffect, IterationEnd, IterationEvent, Phase, decide};
use runner_core::policy::Policy;
use runner_core::run::RunRequest;
use runner_core::run::blocker::{self, Blocker, RetryDecision, Transience};
use runner_core::verdict::StopCause;

use super::daemon::{DaemonHalt, JournalState, SimulatedRun, StepResult, promise};
use super::mistake::PlantedMistake;

/// Number of events after which an iteration counts as endless.
const MAX_EVENTS: usize = 60;

/// How driving ended.
#[derive(Debug)]
pub(crate) enum DriveEnd {
    Over(IterationEnd),
    Left,
    Obstructed(Blocker),
}

impl SimulatedRun {
    /// Drives the iteration from `phase` to its end.
    pub(crate) fn drive(&mut self, mut phase: Phase) -> StepResult<DriveEnd> {
        let mut tries = 0;
        loop {
            if let Phase::Over { end } = phase {
                return Ok(DriveEnd::Over(end));
            }
            if self.is_leaving && begins(phase.effect()) {
                return Ok(DriveEnd::Left);
            }
            if let Some(cause) = self.stop.take_if(|_| begins(phase.effect())) {
                phase = self.take(phase, IterationEvent::Stop(cause))?;
                continue;
            }
            if let Some(obstruction) = self.draw_blocker() {
                tries += 1;
                let same = decide(&self.policy(), phase.clone(), IterationEvent::Obstructed(obstruction.clone()));
                promise(same.as_ref() == Ok(&phase), || format!("an obstacle leads from {phase:?} to {same:?}"))?;
                match blocker::decide_retry(obstruction.nature, tries) {
                    RetryDecision::Retry { secs } => self.pass(SignedDuration::from_secs(secs.cast_signed())),
                    RetryDecision::Hold => return Ok(DriveEnd::Obstructed(obstruction)),
                }
                continue;
            }
            tries = 0;
            phase = match self.attend(&phase)? {
                Some(phase) => phase,
                None => return Ok(DriveEnd::Left),
            };
        }
    }

    /// Performs the effect of a phase; a stop may be requested meanwhile.
    fn attend(&mut self, begun: &Phase) -> StepResult<Option<Phase>> {
        let effect = begun.effect();
        let mut phase = begun.clone();
        let mut is_cut = false;
        if let Some(cause) = self.comes_meanwhile()? {
            phase = self.take(phase, IterationEvent::Stop(cause))?;
            is_cut = phase.effect() != effect || self.is_leaving;
            if matches!(phase, Phase::Over { .. }) {
                return Ok(Some(phase));
            }
        }
        let event = self.perform(begun, is_cut)?;
        let is_redone =
            phase.effect() == effect && matches!(effect, Some(IterationEffect::RunGuard | IterationEffect::RunReview));
        if is_redone && is_cut {
            return Ok(None);
        }
        self.take(phase, event).map(Some)
    }

    /// Records an event and acts on it; the daemon may die before or after it is recorded.
    pub(crate) fn take(&mut self, phase: Phase, event: IterationEvent) -> StepResult<Phase> {
        self.may_die()?;
        self.append_event(event.clone())?;
        self.may_die()?;
        self.decide_phase(phase, event)
    }

    fn append_event(&mut self, event: IterationEvent) -> StepResult<()> {
        let policy = self.policy();
        let marks = &mut self.marks;
        let journal = self.journal.get_or_insert_with(|| {
            *marks += 1;
            JournalState { mark: *marks, policy: Policy::default(), events: Vec::new() }
        });
        journal.policy = policy;
        journal.events.push(event);
        promise(journal.events.len() <= MAX_EVENTS, || format!("it does not end: {:?}", journal.events))
    }

    fn decide_phase(&mut self, phase: Phase, event: IterationEvent) -> StepResult<Phase> {
        let next = decide(&self.policy(), phase, event).map_err(|illegal| DaemonHalt::Broken(illegal.to_string()))?;
        Ok(PlantedMistake::change_phase(self.mistake, next))
    }

    /// Returns the configuration in force: that of From, once Open has found it.
    fn policy(&self) -> Policy {
        match (&self.loaded, &self.journal) {
            (Some(loaded), _) => (*loaded.policy).clone(),
            (None, Some(journal)) => journal.policy.clone(),
            (None, None) => Policy::default(),
        }
    }

    fn draw_blocker(&mut self) -> Option<Blocker> {
        if !self.random.one_in(self.habits.obstacles) {
            return None;
        }
        let nature = *self.random.pick(&[
            Transience::Passing,
            Transience::Passing,
            Transience::Passing,
            Transience::Lasting,
            Transience::Lost,
        ]);
        Some(Blocker { what: "the disk is full".to_owned(), remedy: "make room".to_owned(), nature })
    }

    /// Sometimes requests that the iteration stop now, or that the daemon shut down.
    fn comes_meanwhile(&mut self) -> StepResult<Option<StopCause>> {
        if !self.random.one_in(self.habits.stops) {
            return Ok(self.stop.take());
        }
        let cause = *self.random.pick(&[StopCause::Pause, StopCause::Cancel, StopCause::Shutdown]);
        match cause {
            StopCause::Pause => self.want(RunRequest::Pause { now: true })?,
            StopCause::Cancel => self.want(RunRequest::Cancel)?,
            StopCause::Shutdown | StopCause::Death | StopCause::Elsewhere => self.is_leaving = true,
        }
        Ok(Some(cause))
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, span: SignedDuration) {
        self.now = self.now.checked_add(span).unwrap_or(self.now);
    }
}

/// Whether an effect starts something that is better left to the next daemon process.
fn begins(effect: Option<IterationEffect>) -> bool {
    matches!(
        effect,
        Some(
            IterationEffect::Open
                | IterationEffect::Brief
                | IterationEffect::RunSession
                | IterationEffect::RunGuard
                | IterationEffect::RunReview
        )
    )
}
