//! The world as an iteration sees it: one effect per phase, each ending in one event.
//!
//! Nothing is decided here. Failure is an event; an effect may be restarted at any time and leads to the same end.

use std::time::Duration;

use runner_core::iteration::{IterationEvent, Phase};
use runner_core::policy::Policy;
use runner_core::run::blocker::Blocker;
use tokio_util::sync::CancellationToken;

/// Performs effects.
pub(crate) trait EffectWorld {
    /// Performs the effect of `phase` and reports how it ended.
    ///
    /// Once `stop` is cancelled, a process running for the effect is ended, and its end reported.
    fn perform_effect(
        &mut self,
        phase: &Phase,
        stop: &CancellationToken,
    ) -> impl Future<Output = IterationEvent> + Send;

    /// Returns the configuration in force: From's, once Open has found it.
    fn policy(&self) -> &Policy;
}

/// Controls an iteration from outside.
pub(crate) trait DriveControl {
    /// Waits for a request to end the iteration now; each cause is returned once. Must be cancel-safe.
    fn wait_for_stop(&mut self) -> impl Future<Output = runner_core::verdict::StopCause> + Send;

    /// Whether the daemon is shutting down: nothing new is started, and repeatable work is abandoned.
    fn is_shutting_down(&self) -> bool;

    /// Whether a person has cancelled the run: obstacles are not waited out for long.
    fn is_cancelled(&self) -> bool;

    /// Called when a phase is entered.
    fn on_phase_entered(&mut self, phase: &Phase);

    /// Called when an effect cannot be performed now.
    fn on_blocked(&mut self, blocker: &Blocker);

    /// Waits before a blocked effect is retried; returns a stop requested meanwhile.
    fn wait_for_retry(
        &mut self,
        pause: Duration,
    ) -> impl Future<Output = Option<runner_core::verdict::StopCause>> + Send;
}

/// Records events durably before they are acted on.
pub(crate) trait EventLog {
    /// Records one event.
    fn record_event(
        &mut self,
        event: &IterationEvent,
        policy: &Policy,
    ) -> Result<(), crate::worker::journal::JournalError>;
}
