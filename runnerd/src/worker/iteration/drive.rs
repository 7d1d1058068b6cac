//! The loop of an iteration: take an event, decide, record it, continue.
//!
//! All rules are in `runner_core::iteration`; all effects are in the `EffectWorld`. An effect that is superseded is
//! stopped and awaited, never dropped.

use std::pin::Pin;
use std::time::Duration;

use runner_core::iteration::{IllegalIterationEvent, IterationEffect, IterationEnd, IterationEvent, Phase, decide};
use runner_core::policy::Policy;
use runner_core::run::blocker::{self, Blocker, RetryDecision, Transience};
use runner_core::verdict::StopCause;
use runner_os::retryable::{Retryable, describe_blocker};
use tokio_util::sync::CancellationToken;

use crate::worker::iteration::world::{DriveControl, EffectWorld, EventLog};
use crate::worker::journal::JournalError;

/// How driving ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DriveOutcome {
    /// The iteration is over.
    Finished(IterationEnd),
    /// The daemon is shutting down; the journal tells the next daemon process where to continue.
    Suspended,
}

/// Why an iteration cannot be driven.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriveError {
    /// An event could not be recorded.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What blocks an effect is permanent: a person must intervene.
    #[error("{}", .0.what)]
    Blocked(Blocker),
    /// A bug: an effect reported an event that is illegal in its phase.
    #[error(transparent)]
    Illegal(#[from] IllegalIterationEvent),
}

impl Retryable for DriveError {
    fn transience(&self) -> Transience {
        match self {
            Self::Journal(error) => error.transience(),
            Self::Blocked(blocker) => blocker.nature,
            Self::Illegal(_) => Transience::Lasting,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Journal(error) => error.remedy(),
            Self::Blocked(blocker) => Some(blocker.remedy.clone()),
            Self::Illegal(_) => None,
        }
    }
}

/// One iteration being driven.
pub(crate) struct IterationDriver<'a, W, C, L> {
    /// Performs the effects.
    pub world: &'a mut W,
    /// Receives requests to stop, and is notified of progress.
    pub control: &'a mut C,
    /// Records the events.
    pub log: &'a mut L,
    /// A stop that was requested while an event was being recorded.
    pub pending_stop: Option<StopCause>,
}

impl<W: EffectWorld, C: DriveControl, L: EventLog> IterationDriver<'_, W, C, L> {
    /// Drives the iteration from `phase` to its end.
    pub(crate) async fn drive_iteration(&mut self, mut phase: Phase) -> Result<DriveOutcome, DriveError> {
        let mut tries = 0;
        loop {
            let end = match phase {
                Phase::Over { end } => return Ok(DriveOutcome::Finished(end)),
                phase if self.control.is_shutting_down() && starts_new_work(phase.effect()) => {
                    return Ok(DriveOutcome::Suspended);
                }
                phase => match self.take_pending_stop(&phase).await {
                    Some(cause) => EffectEnd::Event(phase, IterationEvent::Stop(cause)),
                    None => self.perform_effect(phase).await?,
                },
            };
            let next = match end {
                EffectEnd::Suspended => None,
                EffectEnd::Finished(phase) => Some(phase),
                EffectEnd::Event(phase, IterationEvent::Obstructed(blocker)) => {
                    tries += 1;
                    self.retry_effect(phase, blocker, tries).await?
                }
                EffectEnd::Event(phase, event) => {
                    tries = 0;
                    self.apply_event(phase, event).await?
                }
            };
            let Some(next) = next else { return Ok(DriveOutcome::Suspended) };
            phase = next;
        }
    }

    /// Returns a pending stop request, if the next effect would start something new.
    async fn take_pending_stop(&mut self, phase: &Phase) -> Option<StopCause> {
        if !starts_new_work(phase.effect()) {
            return None;
        }
        tokio::select! {
            biased;
            cause = next_stop(&mut self.pending_stop, self.control) => Some(cause),
            () = std::future::ready(()) => None,
        }
    }

    /// Performs the effect of a phase while listening for requests to stop.
    async fn perform_effect(&mut self, mut phase: Phase) -> Result<EffectEnd, DriveError> {
        self.control.on_phase_entered(&phase);
        let effect = phase.effect();
        let started_phase = phase.clone();
        let policy = self.world.policy().clone();
        let stop = CancellationToken::new();
        let mut running = std::pin::pin!(self.world.perform_effect(&started_phase, &stop));
        let event = loop {
            tokio::select! {
                biased;
                event = running.as_mut() => break event,
                cause = next_stop(&mut self.pending_stop, self.control) => {
                    let event = IterationEvent::Stop(cause);
                    let next = decide(&policy, phase, event.clone())?;
                    if next.effect() != effect || self.control.is_shutting_down() {
                        stop.cancel();
                    }
                    // The running effect is polled, however long the disk refuses.
                    let recording = record_event(self.log, self.control, &mut self.pending_stop, &event, &policy);
                    let (recorded, ended) = poll_both(recording, running.as_mut()).await;
                    phase = next;
                    match (recorded, ended) {
                        (Ok(true), Some(event)) => break event,
                        (Ok(true), None) => {}
                        (result, ended) => {
                            stop.cancel();
                            if ended.is_none() {
                                running.await;
                            }
                            return result.map(|_| EffectEnd::Suspended).map_err(DriveError::from);
                        }
                    }
                }
            }
        };
        if matches!(phase, Phase::Over { .. }) {
            return Ok(EffectEnd::Finished(phase));
        }
        // A guard or reviewer that was stopped because the daemon shuts down runs again in the next daemon process.
        let is_redone = phase.effect() == effect
            && matches!(
                effect,
                Some(
                    IterationEffect::RunGuard
                        | IterationEffect::RunAccepted
                        | IterationEffect::RerunGuard
                        | IterationEffect::RunReview
                )
            );
        if is_redone && stop.is_cancelled() {
            return Ok(EffectEnd::Suspended);
        }
        Ok(EffectEnd::Event(phase, event))
    }

    /// Records an event and applies it; `None` if the daemon shuts down before it is recorded.
    async fn apply_event(&mut self, phase: Phase, event: IterationEvent) -> Result<Option<Phase>, DriveError> {
        if !record_event(self.log, self.control, &mut self.pending_stop, &event, self.world.policy()).await? {
            return Ok(None);
        }
        Ok(Some(decide(self.world.policy(), phase, event)?))
    }

    /// Waits before a blocked effect is retried, listening for requests to stop; `None` if the daemon shuts down.
    async fn retry_effect(&mut self, phase: Phase, blocker: Blocker, tries: u32) -> Result<Option<Phase>, DriveError> {
        self.control.on_blocked(&blocker);
        // Not recorded: it changes nothing, and the disk may be what blocks.
        let phase = decide(self.world.policy(), phase, IterationEvent::Obstructed(blocker.clone()))?;
        if self.control.is_shutting_down() {
            return Ok(None);
        }
        if let Some(cause) = self.take_stop_by_now(blocker.nature).await {
            return self.apply_event(phase, IterationEvent::Stop(cause)).await;
        }
        let Some(pause) = retry_pause(blocker.nature, self.control.is_cancelled(), tries) else {
            return Err(DriveError::Blocked(blocker));
        };
        match self.control.wait_for_retry(pause).await {
            Some(cause) => self.apply_event(phase, IterationEvent::Stop(cause)).await,
            None => Ok(Some(phase)),
        }
    }

    /// Returns a pending stop request. If a program was killed without an answer, the requester may not have been heard
    /// while it was awaited: its request decides what happens to the phase.
    async fn take_stop_by_now(&mut self, nature: Transience) -> Option<StopCause> {
        if nature != Transience::Lost {
            return self.pending_stop.take();
        }
        tokio::select! {
            biased;
            cause = next_stop(&mut self.pending_stop, self.control) => Some(cause),
            () = std::future::ready(()) => None,
        }
    }
}

/// Awaits `first` while also polling `second`; returns the output of `second` if it finished in time.
async fn poll_both<A, B>(
    first: impl Future<Output = A>,
    mut second: Pin<&mut impl Future<Output = B>>,
) -> (A, Option<B>) {
    let mut first = std::pin::pin!(first);
    let mut second_output = None;
    loop {
        tokio::select! {
            biased;
            done = first.as_mut() => return (done, second_output),
            end = second.as_mut(), if second_output.is_none() => second_output = Some(end),
        }
    }
}

/// Waits for a stop, starting with one requested while an event was being recorded. Cancel-safe.
async fn next_stop(pending_stop: &mut Option<StopCause>, control: &mut impl DriveControl) -> StopCause {
    match pending_stop.take() {
        Some(cause) => cause,
        None => control.wait_for_stop().await,
    }
}

/// Records an event, retrying transient errors of the disk: acting on an unrecorded event would lose it in a crash.
///
/// A daemon that is shutting down does not wait for the disk: returns false, and the next daemon process repeats the
/// work. Requests to stop are accepted meanwhile; they apply after this event.
async fn record_event(
    log: &mut impl EventLog,
    control: &mut impl DriveControl,
    pending_stop: &mut Option<StopCause>,
    event: &IterationEvent,
    policy: &Policy,
) -> Result<bool, JournalError> {
    let mut tries = 0;
    loop {
        let error = match log.record_event(event, policy) {
            Err(error) if error.is_retryable() => error,
            result => return result.map(|()| true),
        };
        if control.is_shutting_down() {
            return Ok(false);
        }
        tries += 1;
        let blocker = describe_blocker(&error);
        control.on_blocked(&blocker);
        let Some(pause) = retry_pause(blocker.nature, control.is_cancelled(), tries) else { return Err(error) };
        tokio::select! {
            biased;
            cause = control.wait_for_stop() => *pending_stop = pending_stop.or(Some(cause)),
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Returns the pause before the next attempt; `None` to give up. A cancelled run gives up early.
pub(crate) fn retry_pause(nature: Transience, is_cancelled: bool, tries: u32) -> Option<Duration> {
    let decide_retry = if is_cancelled { blocker::decide_retry_when_cancelled } else { blocker::decide_retry };
    match decide_retry(nature, tries) {
        RetryDecision::Retry { secs } => Some(Duration::from_secs(secs)),
        RetryDecision::Hold => None,
    }
}

#[expect(clippy::large_enum_variant, reason = "made once per effect, and taken apart at once")]
enum EffectEnd {
    Event(Phase, IterationEvent),
    Finished(Phase),
    Suspended,
}

/// Whether an effect starts something that is better left to the next daemon process.
fn starts_new_work(effect: Option<IterationEffect>) -> bool {
    use IterationEffect::{Brief, Open, RerunGuard, RunAccepted, RunGuard, RunReview, RunSession};
    matches!(effect, Some(Open | Brief | RunSession | RunGuard | RunAccepted | RerunGuard | RunReview))
}
