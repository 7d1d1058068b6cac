//! The loop of an iteration: take an event, decide, keep it, go on.
//!
//! All rules are in `runner_core::iteration`; all effects are in the `World`. An effect that is
//! superseded is stopped and awaited, never dropped.

use std::pin::Pin;
use std::time::Duration;

use runner_core::iteration::{Effect, Event, IllegalEvent, Over, Phase, decide};
use runner_core::obstacle::{self, Answer, Nature, Obstruction};
use runner_core::policy::Policy;
use runner_core::verdict::StopCause;
use tokio_util::sync::CancellationToken;

use crate::obstruction::{Obstructs, obstruction};
use crate::worker::iteration::world::{Control, Log, World};
use crate::worker::journal::JournalError;

/// How driving ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Drove {
    /// The iteration is over.
    Over(Over),
    /// The daemon leaves; the journal tells the next life where it was.
    Left,
}

/// Why an iteration cannot be driven.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriveError {
    /// An event could not be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What is in the way of an effect does not pass by itself: a person must look first.
    #[error("{}", .0.what)]
    Obstructed(Obstruction),
    /// A bug: an effect reported what its phase does not know.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
}

impl Obstructs for DriveError {
    fn nature(&self) -> Nature {
        match self {
            Self::Journal(error) => error.nature(),
            Self::Obstructed(obstruction) => obstruction.nature,
            Self::Illegal(_) => Nature::Lasting,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Journal(error) => error.remedy(),
            Self::Obstructed(obstruction) => Some(obstruction.remedy.clone()),
            Self::Illegal(_) => None,
        }
    }
}

/// One iteration on its way.
pub(crate) struct Drive<'a, W, C, L> {
    /// Performs the effects.
    pub world: &'a mut W,
    /// Steers from outside.
    pub control: &'a mut C,
    /// Keeps the events.
    pub log: &'a mut L,
    /// A stop that was asked for while an event was being kept.
    pub heard: Option<StopCause>,
}

impl<W: World, C: Control, L: Log> Drive<'_, W, C, L> {
    /// Drives the iteration from `phase` to its end.
    pub(crate) async fn run(&mut self, mut phase: Phase) -> Result<Drove, DriveError> {
        let mut tries = 0;
        loop {
            let end = match phase {
                Phase::Over { end } => return Ok(Drove::Over(end)),
                phase if self.control.is_leaving() && begins(phase.effect()) => return Ok(Drove::Left),
                phase => match self.asked_before(&phase).await {
                    Some(cause) => Ended::Event(phase, Event::Stop(cause)),
                    None => self.effect(phase).await?,
                },
            };
            let next = match end {
                Ended::Left => None,
                Ended::Stopped(phase) => Some(phase),
                Ended::Event(phase, Event::Obstructed(obstruction)) => {
                    tries += 1;
                    self.retry(phase, obstruction, tries).await?
                }
                Ended::Event(phase, event) => {
                    tries = 0;
                    self.take(phase, event).await?
                }
            };
            let Some(next) = next else { return Ok(Drove::Left) };
            phase = next;
        }
    }

    /// Returns the stop that somebody asked for before an effect that begins something.
    async fn asked_before(&mut self, phase: &Phase) -> Option<StopCause> {
        if !begins(phase.effect()) {
            return None;
        }
        tokio::select! {
            biased;
            cause = next_stop(&mut self.heard, self.control) => Some(cause),
            () = std::future::ready(()) => None,
        }
    }

    /// Performs the effect of a phase while listening to whoever steers.
    async fn effect(&mut self, mut phase: Phase) -> Result<Ended, DriveError> {
        self.control.entered(&phase);
        let effect = phase.effect();
        let begun = phase.clone();
        let policy = self.world.policy().clone();
        let stop = CancellationToken::new();
        let mut running = std::pin::pin!(self.world.perform(&begun, &stop));
        let event = loop {
            tokio::select! {
                biased;
                event = running.as_mut() => break event,
                cause = next_stop(&mut self.heard, self.control) => {
                    let event = Event::Stop(cause);
                    let next = decide(&policy, phase, event.clone())?;
                    if next.effect() != effect || self.control.is_leaving() {
                        stop.cancel();
                    }
                    // What runs is attended to, however long the disk refuses.
                    let keeping = keep(self.log, (self.control, &mut self.heard), &event, &policy);
                    let (kept, ended) = both(keeping, running.as_mut()).await;
                    phase = next;
                    match (kept, ended) {
                        (Ok(true), Some(event)) => break event,
                        (Ok(true), None) => {}
                        (kept, ended) => {
                            stop.cancel();
                            if ended.is_none() {
                                running.await;
                            }
                            return kept.map(|_| Ended::Left).map_err(DriveError::from);
                        }
                    }
                }
            }
        };
        if matches!(phase, Phase::Over { .. }) {
            return Ok(Ended::Stopped(phase));
        }
        // A guard or reviewer that was ended because the daemon leaves is asked again in the next life.
        let is_redone = phase.effect() == effect
            && matches!(effect, Some(Effect::RunGuard | Effect::RunAccepted | Effect::RunReview));
        if is_redone && stop.is_cancelled() {
            return Ok(Ended::Left);
        }
        Ok(Ended::Event(phase, event))
    }

    /// Keeps an event and acts upon it; none if the daemon leaves without.
    async fn take(&mut self, phase: Phase, event: Event) -> Result<Option<Phase>, DriveError> {
        if !keep(self.log, (self.control, &mut self.heard), &event, self.world.policy()).await? {
            return Ok(None);
        }
        Ok(Some(decide(self.world.policy(), phase, event)?))
    }

    /// Waits before an obstructed effect is tried again, listening to whoever steers; none if the daemon leaves.
    async fn retry(&mut self, phase: Phase, obstruction: Obstruction, tries: u32) -> Result<Option<Phase>, DriveError> {
        self.control.obstructed(&obstruction);
        // Not kept: it changes nothing, and the disk may be what is in the way.
        let phase = decide(self.world.policy(), phase, Event::Obstructed(obstruction.clone()))?;
        if self.control.is_leaving() {
            return Ok(None);
        }
        if let Some(cause) = self.heard_by_now(obstruction.nature).await {
            return self.take(phase, Event::Stop(cause)).await;
        }
        let Some(pause) = pause_before((obstruction.nature, self.control.is_cancelled()), tries) else {
            return Err(DriveError::Obstructed(obstruction));
        };
        match self.control.wait(pause).await {
            Some(cause) => self.take(phase, Event::Stop(cause)).await,
            None => Ok(Some(phase)),
        }
    }

    /// Returns the stop that somebody has asked for. Whoever had a program ended that gave no answer has not been heard while
    /// it was waited for: what they want decides what becomes of the phase.
    async fn heard_by_now(&mut self, nature: Nature) -> Option<StopCause> {
        if nature != Nature::Lost {
            return self.heard.take();
        }
        tokio::select! {
            biased;
            cause = next_stop(&mut self.heard, self.control) => Some(cause),
            () = std::future::ready(()) => None,
        }
    }
}

/// Waits for the first, and polls the second meanwhile; returns what the second came to, if it did.
async fn both<A, B>(first: impl Future<Output = A>, mut second: Pin<&mut impl Future<Output = B>>) -> (A, Option<B>) {
    let mut first = std::pin::pin!(first);
    let mut ended = None;
    loop {
        tokio::select! {
            biased;
            done = first.as_mut() => return (done, ended),
            end = second.as_mut(), if ended.is_none() => ended = Some(end),
        }
    }
}

/// Waits for a stop, first for one that was asked for while an event was being kept. Cancel-safe.
async fn next_stop(heard: &mut Option<StopCause>, control: &mut impl Control) -> StopCause {
    match heard.take() {
        Some(cause) => cause,
        None => control.stop().await,
    }
}

/// Keeps an event, as long as the disk may come round: acting on what is not kept would lose it in a crash.
///
/// A daemon that leaves does not wait for the disk: false, and the next life does again what was done. Whoever steers is
/// heard meanwhile; what they want comes after this event.
async fn keep(
    log: &mut impl Log,
    (control, heard): (&mut impl Control, &mut Option<StopCause>),
    event: &Event,
    policy: &Policy,
) -> Result<bool, JournalError> {
    let mut tries = 0;
    loop {
        let error = match log.record(event, policy) {
            Err(error) if error.is_obstacle() => error,
            kept => return kept.map(|()| true),
        };
        if control.is_leaving() {
            return Ok(false);
        }
        tries += 1;
        let obstruction = obstruction(&error);
        control.obstructed(&obstruction);
        let Some(pause) = pause_before((obstruction.nature, control.is_cancelled()), tries) else { return Err(error) };
        tokio::select! {
            biased;
            cause = control.stop() => *heard = heard.or(Some(cause)),
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Returns the pause before the next try; none if it is given up. A cancelled run gives up soon.
pub(crate) fn pause_before((nature, is_cancelled): (Nature, bool), tries: u32) -> Option<Duration> {
    let answer = if is_cancelled { obstacle::answer_when_cancelled } else { obstacle::answer };
    match answer(nature, tries) {
        Answer::TryAgain { secs } => Some(Duration::from_secs(secs)),
        Answer::Hold => None,
    }
}

#[expect(clippy::large_enum_variant, reason = "made once per effect, and taken apart at once")]
enum Ended {
    Event(Phase, Event),
    Stopped(Phase),
    Left,
}

/// Whether an effect begins something that is better begun by the next life.
fn begins(effect: Option<Effect>) -> bool {
    use Effect::{Brief, Open, RunAccepted, RunGuard, RunReview, RunSession};
    matches!(effect, Some(Open | Brief | RunSession | RunGuard | RunAccepted | RunReview))
}
