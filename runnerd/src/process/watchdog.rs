//! What the daemon does about a running program, and when: silence, a finished answer, the drain, a lost shim.
//!
//! Pure: time is an argument, and what is to be done is returned. The deadline itself is the shim's; here it is only
//! the base of the moment at which the shim is given up.

use std::time::Duration;

use super::{Ended, Limits};

/// Longest pause between two looks, so that a machine's sleep is noticed on waking.
const SLICE: Duration = Duration::from_millis(500);
/// Time that a program may stay after its answer is there.
const LINGER: Duration = Duration::from_secs(10);
/// Silence that ends the drain after the leader's exit.
const DRAIN_QUIET: Duration = Duration::from_millis(100);
/// Length of the drain, however much still comes.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);
/// Time that a shim is late before it is taken for lost; more than its kill takes.
const GIVE_UP: Duration = Duration::from_secs(5);

/// What is to be done now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing, for so long.
    Wait(Duration),
    /// Tell the shim to end the program in order.
    Stop,
    /// Tell the shim to kill what is left.
    Kill,
    /// The shim does not answer: kill it and search for what it left.
    GiveUp,
}

/// All that is known about a running program.
pub(super) struct Watchdog {
    deadline: Duration,
    limits: Limits,
    last_output: Duration,
    is_output_closed: bool,
    answered: Option<Duration>,
    is_stop_wanted: bool,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Running,
    Stopping { why: Ended, since: Duration },
    Draining { since: Duration },
    Killing { since: Duration },
}

impl Watchdog {
    pub(super) fn new(began: Duration, limits: Limits) -> Self {
        Self {
            deadline: began + limits.budget,
            limits,
            last_output: began,
            is_output_closed: false,
            answered: None,
            is_stop_wanted: false,
            state: State::Running,
        }
    }

    pub(super) fn saw_output(&mut self, now: Duration) {
        self.last_output = now;
    }

    pub(super) fn saw_output_close(&mut self) {
        self.is_output_closed = true;
    }

    pub(super) fn saw_answer(&mut self, now: Duration) {
        self.answered.get_or_insert(now);
    }

    pub(super) fn answered(&self) -> Option<Duration> {
        self.answered
    }

    pub(super) fn saw_leader_go(&mut self, now: Duration) {
        if matches!(self.state, State::Running) {
            self.state = State::Draining { since: now };
        }
    }

    pub(super) fn want_stop(&mut self) {
        self.is_stop_wanted = true;
    }

    pub(super) fn is_stop_wanted(&self) -> bool {
        self.is_stop_wanted
    }

    /// Decides; each command is returned once.
    pub(super) fn next(&mut self, now: Duration) -> Action {
        match self.state {
            State::Running => self.run(now),
            State::Stopping { since, .. } => give_up_or_wait(now, self.deadline.min(since + self.limits.grace)),
            State::Draining { since } => self.drain(now, since),
            State::Killing { since } => give_up_or_wait(now, since),
        }
    }

    /// Returns why the program is over, where the shim does not say: it was asked, or is lost.
    pub(super) fn ended(&self, now: Duration) -> Ended {
        match self.state {
            State::Stopping { why, .. } => why,
            _ if now >= self.deadline => Ended::TimedOut,
            _ => Ended::SupervisorLost,
        }
    }

    fn run(&mut self, now: Duration) -> Action {
        let silent_at = self.limits.idle.map(|idle| self.last_output + idle);
        let lingered_at = self.answered.map(|at| at + LINGER);
        let is_past = |at: Option<Duration>| at.is_some_and(|at| now >= at);
        let why = match () {
            () if self.is_stop_wanted => Ended::Stopped,
            // On waking from a long sleep all of it is past: the end of the budget goes before silence, and is the shim's.
            () if now >= self.deadline => return give_up_or_wait(now, self.deadline),
            () if is_past(lingered_at) => Ended::Lingered,
            () if is_past(silent_at) => Ended::Silent,
            () => {
                let next = silent_at.into_iter().chain(lingered_at).map(|at| at.saturating_sub(now)).min();
                return match give_up_or_wait(now, self.deadline) {
                    Action::Wait(pause) => Action::Wait(next.map_or(pause, |next| next.min(pause))),
                    action => action,
                };
            }
        };
        self.state = State::Stopping { why, since: now };
        Action::Stop
    }

    fn drain(&mut self, now: Duration, since: Duration) -> Action {
        let end = (since + DRAIN_LIMIT).min(self.last_output.max(since) + DRAIN_QUIET);
        if now < end && !self.is_output_closed && !self.is_stop_wanted {
            return Action::Wait(end.saturating_sub(now));
        }
        self.state = State::Killing { since: now };
        Action::Kill
    }
}

/// The shim should be done at `due`.
fn give_up_or_wait(now: Duration, due: Duration) -> Action {
    match (due + GIVE_UP).checked_sub(now) {
        None | Some(Duration::ZERO) => Action::GiveUp,
        Some(left) => Action::Wait(left.min(SLICE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Began at 0, with 60 s, 5 s of them grace, and 20 s of silence allowed.
    fn watchdog() -> Watchdog {
        Watchdog::new(ms(0), Limits { budget: ms(60_000), idle: Some(ms(20_000)), grace: ms(5_000) })
    }

    #[test]
    fn no_pause_is_longer_than_a_slice_or_than_the_next_duty() {
        assert_eq!(watchdog().next(ms(0)), Action::Wait(ms(500)));
        assert_eq!(watchdog().next(ms(19_900)), Action::Wait(ms(100)));
    }

    #[test]
    fn silence_ends_the_program_and_output_puts_it_off() {
        let mut watchdog = watchdog();
        watchdog.saw_output(ms(19_000));
        assert_eq!(watchdog.next(ms(38_999)), Action::Wait(ms(1)));
        assert_eq!(watchdog.next(ms(39_000)), Action::Stop);
        assert_eq!(watchdog.ended(ms(39_000)), Ended::Silent);
    }

    #[test]
    fn budget_that_ran_out_goes_before_silence() {
        assert_eq!(watchdog().next(ms(61_000)), Action::Wait(ms(500)));
        assert_eq!(watchdog().ended(ms(61_000)), Ended::TimedOut);
    }

    #[test]
    fn program_that_stays_after_its_answer_has_ten_seconds() {
        let mut watchdog = watchdog();
        watchdog.saw_answer(ms(1_000));
        watchdog.saw_answer(ms(9_000));
        assert_eq!(watchdog.next(ms(10_999)), Action::Wait(ms(1)));
        assert_eq!(watchdog.next(ms(11_000)), Action::Stop);
        assert_eq!(watchdog.ended(ms(11_000)), Ended::Lingered);
    }

    #[test]
    fn stop_is_told_once_and_is_the_reason_whatever_else_is_due() {
        let mut watchdog = watchdog();
        watchdog.want_stop();
        assert_eq!(watchdog.next(ms(30_000)), Action::Stop);
        assert_eq!(watchdog.next(ms(30_001)), Action::Wait(ms(500)));
        assert_eq!(watchdog.ended(ms(30_001)), Ended::Stopped);
    }

    #[test]
    fn shim_that_does_not_stop_is_given_up_after_the_grace() {
        let mut watchdog = watchdog();
        watchdog.want_stop();
        watchdog.next(ms(0));
        assert_eq!(watchdog.next(ms(9_999)), Action::Wait(ms(1)));
        assert_eq!(watchdog.next(ms(10_000)), Action::GiveUp);
    }

    #[test]
    fn sleep_of_the_machine_counts_against_the_deadline() {
        let mut watchdog = Watchdog::new(ms(0), Limits { budget: ms(60_000), idle: None, grace: ms(0) });
        assert_eq!(watchdog.next(ms(1_000)), Action::Wait(ms(500)));
        assert_eq!(watchdog.next(ms(3_600_000)), Action::GiveUp);
        assert_eq!(watchdog.ended(ms(3_600_000)), Ended::TimedOut);
    }

    #[test]
    fn shim_that_is_gone_early_is_lost() {
        assert_eq!(watchdog().ended(ms(1)), Ended::SupervisorLost);
    }

    #[test]
    fn drain_lasts_until_it_is_quiet() {
        let mut watchdog = watchdog();
        watchdog.saw_leader_go(ms(1_000));
        assert_eq!(watchdog.next(ms(1_000)), Action::Wait(ms(100)));
        watchdog.saw_output(ms(1_080));
        assert_eq!(watchdog.next(ms(1_100)), Action::Wait(ms(80)));
        assert_eq!(watchdog.next(ms(1_180)), Action::Kill);
        assert_eq!(watchdog.next(ms(1_180)), Action::Wait(ms(500)));
    }

    #[test]
    fn drain_ends_in_spite_of_a_chatterer() {
        let mut watchdog = watchdog();
        watchdog.saw_leader_go(ms(1_000));
        watchdog.saw_output(ms(2_990));
        assert_eq!(watchdog.next(ms(2_990)), Action::Wait(ms(10)));
        assert_eq!(watchdog.next(ms(3_000)), Action::Kill);
    }

    #[test]
    fn drain_ends_when_nobody_can_write_any_more_or_nobody_wants_to_wait() {
        let (mut closed, mut stopped) = (watchdog(), watchdog());
        for watchdog in [&mut closed, &mut stopped] {
            watchdog.saw_leader_go(ms(1_000));
        }
        closed.saw_output_close();
        stopped.want_stop();
        assert_eq!(closed.next(ms(1_000)), Action::Kill);
        assert_eq!(stopped.next(ms(1_000)), Action::Kill);
    }

    #[test]
    fn leader_that_ends_while_it_is_stopped_does_not_shorten_the_grace_of_others() {
        let mut watchdog = watchdog();
        watchdog.want_stop();
        watchdog.next(ms(0));
        watchdog.saw_leader_go(ms(10));
        assert_eq!(watchdog.next(ms(1_000)), Action::Wait(ms(500)));
    }
}
