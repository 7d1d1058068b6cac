//! The world as an iteration sees it: one effect per phase, each ending in one event.
//!
//! Nothing is decided here. Failure is an event; an effect may be begun again at any time and leads to
//! the same end.

use std::time::Duration;

use runner_core::iteration::{IterationEvent, Phase};
use runner_core::obstacle::Blocker;
use runner_core::policy::Policy;
use tokio_util::sync::CancellationToken;

/// What performs effects.
pub(crate) trait EffectWorld {
    /// Performs the effect of `phase` and reports how it ended.
    ///
    /// Once `stop` is cancelled a process that is running for the effect is ended, and its end reported.
    fn perform_effect(&mut self, phase: &Phase, stop: &CancellationToken) -> impl Future<Output = IterationEvent> + Send;

    /// Returns the configuration in force: From's, once Open has found it.
    fn policy(&self) -> &Policy;
}

/// Who steers an iteration from outside.
pub(crate) trait DriveControl {
    /// Waits for somebody to want the iteration to end now; each cause is said once. Must be cancel-safe.
    fn wait_for_stop(&mut self) -> impl Future<Output = runner_core::verdict::StopCause> + Send;

    /// Returns whether the daemon is leaving: nothing new is begun, and what can be done again is left.
    fn is_shutting_down(&self) -> bool;

    /// Returns whether a person has cancelled the run: what is in the way is not waited for long.
    fn is_cancelled(&self) -> bool;

    /// Is told that a phase was entered.
    fn on_phase_entered(&mut self, phase: &Phase);

    /// Is told that an effect cannot be done for now.
    fn on_blocked(&mut self, blocker: &Blocker);

    /// Waits before an obstructed effect is tried again; returns the stop that somebody wants instead.
    fn wait_for_retry(&mut self, pause: Duration) -> impl Future<Output = Option<runner_core::verdict::StopCause>> + Send;
}

/// Keeps events durably before they are acted upon.
pub(crate) trait EventLog {
    /// Keeps one event.
    fn record_event(&mut self, event: &IterationEvent, policy: &Policy) -> Result<(), crate::worker::journal::JournalError>;
}
