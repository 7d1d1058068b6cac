//! Decides what the daemon does about a running program, and when: silence, a finished answer, the drain, a lost shim.
//!
//! Pure: time is an argument, and the action is returned. The deadline itself is enforced by the shim; here it only
//! determines when the shim is given up.

use std::time::Duration;

use super::{ProgramEnd, TimeLimits};

/// Longest pause between two checks, so that a machine's sleep is noticed on waking.
const MAX_SLEEP: Duration = Duration::from_millis(500);
/// Time that a program may keep running after its answer.
const LINGER_LIMIT: Duration = Duration::from_secs(10);
/// Silence that ends the drain after the leader's exit: a writer on a busy machine is not silent yet after a tenth.
const DRAIN_QUIET: Duration = Duration::from_millis(300);
/// Time limit of the drain, however much output still comes.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);
/// How late a shim may be before it is considered lost; longer than its kill takes.
const SHIM_GRACE: Duration = Duration::from_secs(5);

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WatchdogAction {
    /// Nothing, for this time.
    Wait(Duration),
    /// Tell the shim to stop the program in order.
    Stop,
    /// Tell the shim to kill what is left.
    Kill,
    /// The shim does not answer: kill it and search for what it left.
    GiveUp,
}

/// Everything that is known about a running program.
pub(super) struct ProgramWatchdog {
    deadline: Duration,
    limits: TimeLimits,
    last_output: Duration,
    is_output_closed: bool,
    answered_at: Option<Duration>,
    is_stop_requested: bool,
    state: WatchdogState,
}

#[derive(Clone, Copy)]
enum WatchdogState {
    Running,
    Stopping { why: ProgramEnd, since: Duration },
    Draining { since: Duration },
    Killing { since: Duration },
}

impl ProgramWatchdog {
    pub(super) fn new(began: Duration, limits: TimeLimits) -> Self {
        Self {
            deadline: began + limits.budget,
            limits,
            last_output: began,
            is_output_closed: false,
            answered_at: None,
            is_stop_requested: false,
            state: WatchdogState::Running,
        }
    }

    pub(super) fn record_output(&mut self, now: Duration) {
        self.last_output = now;
    }

    pub(super) fn record_output_closed(&mut self) {
        self.is_output_closed = true;
    }

    pub(super) fn record_answer(&mut self, now: Duration) {
        self.answered_at.get_or_insert(now);
    }

    pub(super) fn answered_at(&self) -> Option<Duration> {
        self.answered_at
    }

    pub(super) fn record_leader_exit(&mut self, now: Duration) {
        if matches!(self.state, WatchdogState::Running) {
            self.state = WatchdogState::Draining { since: now };
        }
    }

    pub(super) fn request_stop(&mut self) {
        self.is_stop_requested = true;
    }

    pub(super) fn is_stop_requested(&self) -> bool {
        self.is_stop_requested
    }

    /// Decides what to do; each command is returned once.
    pub(super) fn next_action(&mut self, now: Duration) -> WatchdogAction {
        match self.state {
            WatchdogState::Running => self.check_running(now),
            WatchdogState::Stopping { since, .. } => give_up_or_wait(now, self.deadline.min(since + self.limits.grace)),
            WatchdogState::Draining { since } => self.check_drain(now, since),
            WatchdogState::Killing { since } => give_up_or_wait(now, since),
        }
    }

    /// Returns why the program ended, if the shim does not say: it was cancelled, or the shim is lost.
    pub(super) fn program_end(&self, now: Duration) -> ProgramEnd {
        match self.state {
            WatchdogState::Stopping { why, .. } => why,
            _ if now >= self.deadline => ProgramEnd::TimedOut,
            _ => ProgramEnd::SupervisorLost,
        }
    }

    fn check_running(&mut self, now: Duration) -> WatchdogAction {
        let silent_at = self.limits.idle.map(|idle| self.last_output + idle);
        let lingered_at = self.answered_at.map(|at| at + LINGER_LIMIT);
        let is_past = |at: Option<Duration>| at.is_some_and(|at| now >= at);
        let why = match () {
            () if self.is_stop_requested => ProgramEnd::Stopped,
            // On waking from a long sleep everything is overdue: the end of the budget, which is up to the shim,
            // precedes silence.
            () if now >= self.deadline => return give_up_or_wait(now, self.deadline),
            () if is_past(lingered_at) => ProgramEnd::Lingered,
            () if is_past(silent_at) => ProgramEnd::Silent,
            () => {
                let next = silent_at.into_iter().chain(lingered_at).map(|at| at.saturating_sub(now)).min();
                return match give_up_or_wait(now, self.deadline) {
                    WatchdogAction::Wait(pause) => WatchdogAction::Wait(next.map_or(pause, |next| next.min(pause))),
                    action => action,
                };
            }
        };
        self.state = WatchdogState::Stopping { why, since: now };
        WatchdogAction::Stop
    }

    fn check_drain(&mut self, now: Duration, since: Duration) -> WatchdogAction {
        let end = (since + DRAIN_LIMIT).min(self.last_output.max(since) + DRAIN_QUIET);
        if now < end && !self.is_output_closed && !self.is_stop_requested {
            return WatchdogAction::Wait(end.saturating_sub(now));
        }
        self.state = WatchdogState::Killing { since: now };
        WatchdogAction::Kill
    }
}

/// Waits for the shim, which should be done at `due`, and gives it up when it is too late.
fn give_up_or_wait(now: Duration, due: Duration) -> WatchdogAction {
    match (due + SHIM_GRACE).checked_sub(now) {
        None | Some(Duration::ZERO) => WatchdogAction::GiveUp,
        Some(left) => WatchdogAction::Wait(left.min(MAX_SLEEP)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Began at 0, with a budget of 60 s including 5 s of grace, and 20 s of silence allowed.
    fn watchdog() -> ProgramWatchdog {
        ProgramWatchdog::new(ms(0), TimeLimits { budget: ms(60_000), idle: Some(ms(20_000)), grace: ms(5_000) })
    }

    #[test]
    fn no_pause_is_longer_than_a_slice_or_than_the_next_duty() {
        assert_eq!(watchdog().next_action(ms(0)), WatchdogAction::Wait(ms(500)));
        assert_eq!(watchdog().next_action(ms(19_900)), WatchdogAction::Wait(ms(100)));
    }

    #[test]
    fn silence_ends_the_program_and_output_puts_it_off() {
        let mut watchdog = watchdog();
        watchdog.record_output(ms(19_000));
        assert_eq!(watchdog.next_action(ms(38_999)), WatchdogAction::Wait(ms(1)));
        assert_eq!(watchdog.next_action(ms(39_000)), WatchdogAction::Stop);
        assert_eq!(watchdog.program_end(ms(39_000)), ProgramEnd::Silent);
    }

    #[test]
    fn budget_that_ran_out_goes_before_silence() {
        assert_eq!(watchdog().next_action(ms(61_000)), WatchdogAction::Wait(ms(500)));
        assert_eq!(watchdog().program_end(ms(61_000)), ProgramEnd::TimedOut);
    }

    #[test]
    fn program_that_stays_after_its_answer_has_ten_seconds() {
        let mut watchdog = watchdog();
        watchdog.record_answer(ms(1_000));
        watchdog.record_answer(ms(9_000));
        assert_eq!(watchdog.next_action(ms(10_999)), WatchdogAction::Wait(ms(1)));
        assert_eq!(watchdog.next_action(ms(11_000)), WatchdogAction::Stop);
        assert_eq!(watchdog.program_end(ms(11_000)), ProgramEnd::Lingered);
    }

    #[test]
    fn stop_is_told_once_and_is_the_reason_whatever_else_is_due() {
        let mut watchdog = watchdog();
        watchdog.request_stop();
        assert_eq!(watchdog.next_action(ms(30_000)), WatchdogAction::Stop);
        assert_eq!(watchdog.next_action(ms(30_001)), WatchdogAction::Wait(ms(500)));
        assert_eq!(watchdog.program_end(ms(30_001)), ProgramEnd::Stopped);
    }

    #[test]
    fn shim_that_does_not_stop_is_given_up_after_the_grace() {
        let mut watchdog = watchdog();
        watchdog.request_stop();
        watchdog.next_action(ms(0));
        assert_eq!(watchdog.next_action(ms(9_999)), WatchdogAction::Wait(ms(1)));
        assert_eq!(watchdog.next_action(ms(10_000)), WatchdogAction::GiveUp);
    }

    #[test]
    fn sleep_of_the_machine_counts_against_the_deadline() {
        let mut watchdog = ProgramWatchdog::new(ms(0), TimeLimits { budget: ms(60_000), idle: None, grace: ms(0) });
        assert_eq!(watchdog.next_action(ms(1_000)), WatchdogAction::Wait(ms(500)));
        assert_eq!(watchdog.next_action(ms(3_600_000)), WatchdogAction::GiveUp);
        assert_eq!(watchdog.program_end(ms(3_600_000)), ProgramEnd::TimedOut);
    }

    #[test]
    fn shim_that_is_gone_early_is_lost() {
        assert_eq!(watchdog().program_end(ms(1)), ProgramEnd::SupervisorLost);
    }

    #[test]
    fn drain_lasts_until_it_is_quiet() {
        let mut watchdog = watchdog();
        watchdog.record_leader_exit(ms(1_000));
        assert_eq!(watchdog.next_action(ms(1_000)), WatchdogAction::Wait(ms(300)));
        watchdog.record_output(ms(1_080));
        assert_eq!(watchdog.next_action(ms(1_100)), WatchdogAction::Wait(ms(280)));
        assert_eq!(watchdog.next_action(ms(1_380)), WatchdogAction::Kill);
        assert_eq!(watchdog.next_action(ms(1_380)), WatchdogAction::Wait(ms(500)));
    }

    #[test]
    fn drain_ends_in_spite_of_a_chatterer() {
        let mut watchdog = watchdog();
        watchdog.record_leader_exit(ms(1_000));
        watchdog.record_output(ms(2_990));
        assert_eq!(watchdog.next_action(ms(2_990)), WatchdogAction::Wait(ms(10)));
        assert_eq!(watchdog.next_action(ms(3_000)), WatchdogAction::Kill);
    }

    #[test]
    fn drain_ends_when_nobody_can_write_any_more_or_nobody_wants_to_wait() {
        let mut closed = watchdog();
        let mut stopped = watchdog();
        for watchdog in [&mut closed, &mut stopped] {
            watchdog.record_leader_exit(ms(1_000));
        }
        closed.record_output_closed();
        stopped.request_stop();
        assert_eq!(closed.next_action(ms(1_000)), WatchdogAction::Kill);
        assert_eq!(stopped.next_action(ms(1_000)), WatchdogAction::Kill);
    }

    #[test]
    fn leader_that_ends_while_it_is_stopped_does_not_shorten_the_grace_of_others() {
        let mut watchdog = watchdog();
        watchdog.request_stop();
        watchdog.next_action(ms(0));
        watchdog.record_leader_exit(ms(10));
        assert_eq!(watchdog.next_action(ms(1_000)), WatchdogAction::Wait(ms(500)));
    }
}
