//! Time limits for git commands: each has its own, and a driver that is shutting down has one for all. A command that is
//! not getting anywhere then is not worth that time.
//!
//! Who is shut down, and by what signal, is not known here.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runner_os::clock;

/// Minimum time for a command, however late it is.
const MIN_TIME: Duration = Duration::from_secs(1);
/// How often a command is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a command may do nothing during shutdown. A remote whose hook is busy sends something every five seconds.
const SHUTDOWN_IDLE: Duration = Duration::from_millis(5500);
/// A command that takes longer is reported.
const REPORT_DELAY: Duration = Duration::from_secs(10);

/// Shutdown deadline, once set.
#[derive(Debug, Clone, Default)]
pub struct Deadline(Arc<Mutex<DeadlineState>>);

#[derive(Debug, Default)]
struct DeadlineState {
    deadline: Option<Duration>,
    waiting: BTreeMap<u64, Sender<DeadlineMessage>>,
    next: u64,
    report: Option<fn(&str)>,
}

/// Message to the watchdog of a command.
#[derive(Debug)]
enum DeadlineMessage {
    Done,
    Shorten(Duration),
}

/// A running command; dropping this marks it as finished.
#[derive(Debug)]
pub(super) struct DeadlineGuard {
    number: u64,
    deadline: Deadline,
}

/// Waits until a command finishes or takes too long.
#[derive(Debug)]
pub(super) struct DeadlineWatch {
    remaining: Duration,
    is_shutdown: bool,
    messages: Receiver<DeadlineMessage>,
    report: Option<fn(&str)>,
}

/// What a watched command is doing.
pub(super) trait CommandState {
    /// A number that changes whenever one of its processes does something; `None` if that cannot be observed.
    fn activity(&self) -> Option<u64>;
    /// Says what it is waiting for.
    fn describe_wait(&self) -> String;
}

impl Deadline {
    /// Creates one without a shutdown; `report` is told about a command that takes long.
    pub fn new(report: fn(&str)) -> Self {
        let state = DeadlineState { report: Some(report), ..DeadlineState::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Sets the shutdown deadline, as time since boot. Only the first call counts.
    pub fn set_deadline(&self, end: Duration) {
        let mut state = self.lock_state();
        if state.deadline.is_none() {
            state.deadline = Some(end);
            for waiting in state.waiting.values() {
                // A command that has just finished no longer listens.
                let _ = waiting.send(DeadlineMessage::Shorten(time_left(end)));
            }
        }
    }

    /// Starts a command with a time limit.
    pub(super) fn watch_command(&self, limit: Duration) -> (DeadlineGuard, DeadlineWatch) {
        let (sender, messages) = mpsc::channel();
        let mut state = self.lock_state();
        let number = state.next;
        state.next += 1;
        state.waiting.insert(number, sender);
        let remaining = state.deadline.map_or(limit, |end| time_left(end).min(limit));
        let watch = DeadlineWatch { remaining, is_shutdown: state.deadline.is_some(), messages, report: state.report };
        (DeadlineGuard { number, deadline: self.clone() }, watch)
    }

    /// Leaves later commands of a shutdown only the minimum: the remote does not answer. Returns whether there is one.
    pub(super) fn give_up(&self) -> bool {
        let deadline = &mut self.lock_state().deadline;
        deadline.as_mut().map(|end| *end = Duration::ZERO).is_some()
    }

    /// Whether the remote does not answer during a shutdown.
    pub(super) fn is_given_up(&self) -> bool {
        self.lock_state().deadline == Some(Duration::ZERO)
    }

    fn lock_state(&self) -> MutexGuard<'_, DeadlineState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DeadlineGuard {
    fn drop(&mut self) {
        if let Some(sender) = self.deadline.lock_state().waiting.remove(&self.number) {
            let _ = sender.send(DeadlineMessage::Done);
        }
    }
}

impl DeadlineWatch {
    /// Waits for the command to finish, for its deadline, or during shutdown until it has been idle for a while; returns
    /// whether it has not finished.
    pub(super) fn wait_expired(mut self, command: &impl CommandState) -> bool {
        let mut waited = Duration::ZERO;
        let mut idle = Duration::ZERO;
        let mut last = None;
        loop {
            let tick = self.remaining.min(LOOK_EVERY);
            match self.messages.recv_timeout(tick) {
                Ok(DeadlineMessage::Done) | Err(RecvTimeoutError::Disconnected) => return false,
                Ok(DeadlineMessage::Shorten(left)) => {
                    self.remaining = self.remaining.min(left);
                    self.is_shutdown = true;
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.remaining = self.remaining.saturating_sub(tick);
            waited += tick;
            // Counted before a shutdown too: what has done nothing for long is not given that time again.
            let now = command.activity();
            idle = if now.is_some() && now == last { idle + tick } else { Duration::ZERO };
            last = now;
            if self.remaining.is_zero() || self.is_shutdown && idle >= SHUTDOWN_IDLE {
                return true;
            }
            if waited >= REPORT_DELAY
                && let Some(report) = self.report.take()
            {
                report(&command.describe_wait());
            }
        }
    }
}

fn time_left(end: Duration) -> Duration {
    end.saturating_sub(clock::since_boot()).max(MIN_TIME)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::thread;
    use std::time::Instant;

    use super::*;

    /// A command that does something at each look, or nothing at all.
    struct Busy(bool, Cell<u64>);

    impl CommandState for Busy {
        fn activity(&self) -> Option<u64> {
            self.1.set(self.1.get() + u64::from(self.0));
            Some(self.1.get())
        }

        fn describe_wait(&self) -> String {
            String::new()
        }
    }

    #[test]
    fn a_command_is_late_after_its_limit_and_not_when_it_was_over_before() {
        let hurry = Deadline::default();
        let (_under_way, watch) = hurry.watch_command(Duration::ZERO);
        assert!(watch.wait_expired(&Busy(true, Cell::default())));
        let (under_way, watch) = hurry.watch_command(Duration::from_hours(1));
        drop(under_way);
        assert!(!watch.wait_expired(&Busy(true, Cell::default())));
    }

    #[test]
    fn a_hurry_ends_what_is_under_way_and_bounds_what_begins_then() {
        let hurry = Deadline::default();
        let (_under_way, watch) = hurry.watch_command(Duration::from_hours(1));
        let watching = thread::spawn(move || watch.wait_expired(&Busy(true, Cell::default())));
        hurry.set_deadline(Duration::ZERO);
        assert!(watching.join().expect("it ends"));
        let (_late, watch) = hurry.watch_command(Duration::from_hours(1));
        assert_eq!(watch.remaining, MIN_TIME);
    }

    #[test]
    fn a_hurry_ends_at_once_what_has_done_nothing_for_long() {
        let hurry = Deadline::default();
        let (_under_way, watch) = hurry.watch_command(Duration::from_hours(1));
        let watching = thread::spawn(move || watch.wait_expired(&Busy(false, Cell::default())));
        thread::sleep(SHUTDOWN_IDLE + 2 * LOOK_EVERY);
        let began = Instant::now();
        hurry.set_deadline(clock::since_boot() + Duration::from_mins(1));
        assert!(watching.join().expect("it ends"));
        assert!(began.elapsed() < SHUTDOWN_IDLE / 2, "{:?}", began.elapsed());
    }

    #[test]
    fn a_hurry_ends_what_does_nothing_and_leaves_time_to_what_works() {
        let hurry = Deadline::default();
        hurry.set_deadline(clock::since_boot() + Duration::from_mins(1));
        let ends_after = |is_busy, limit| {
            let (_under_way, watch) = hurry.watch_command(Duration::from_secs(limit));
            let began = Instant::now();
            assert!(watch.wait_expired(&Busy(is_busy, Cell::default())));
            began.elapsed()
        };
        assert!(ends_after(true, 7) >= Duration::from_millis(6900));
        assert!(ends_after(false, 40) < Duration::from_secs(20));
    }
}
