//! Time limits for git commands: each has its own, and a driver that is shutting down has one for all.
//!
//! Who is shut down, and by what signal, is not known here.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runner_os::clock;

/// Minimum time for a command, however late it is.
const MIN_TIME: Duration = Duration::from_secs(1);

/// Shutdown deadline, once set.
#[derive(Debug, Clone, Default)]
pub struct Deadline(Arc<Mutex<DeadlineState>>);

#[derive(Debug, Default)]
struct DeadlineState {
    deadline: Option<Duration>,
    waiting: BTreeMap<u64, Sender<DeadlineMessage>>,
    next: u64,
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
    messages: Receiver<DeadlineMessage>,
}

impl Deadline {
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
        (DeadlineGuard { number, deadline: self.clone() }, DeadlineWatch { remaining, messages })
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
    /// Waits for the command to finish or for its deadline; returns whether it is late.
    pub(super) fn wait_expired(mut self) -> bool {
        loop {
            match self.messages.recv_timeout(self.remaining) {
                Ok(DeadlineMessage::Done) | Err(RecvTimeoutError::Disconnected) => return false,
                Ok(DeadlineMessage::Shorten(left)) => self.remaining = self.remaining.min(left),
                Err(RecvTimeoutError::Timeout) => return true,
            }
        }
    }
}

fn time_left(end: Duration) -> Duration {
    end.saturating_sub(clock::since_boot()).max(MIN_TIME)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_command_is_late_after_its_limit_and_not_when_it_was_over_before() {
        let hurry = Deadline::default();
        let (_under_way, watch) = hurry.watch_command(Duration::ZERO);
        assert!(watch.wait_expired());
        let (under_way, watch) = hurry.watch_command(Duration::from_hours(1));
        drop(under_way);
        assert!(!watch.wait_expired());
    }

    #[test]
    fn a_hurry_ends_what_is_under_way_and_bounds_what_begins_then() {
        let hurry = Deadline::default();
        let (_under_way, watch) = hurry.watch_command(Duration::from_hours(1));
        let watching = thread::spawn(move || watch.wait_expired());
        hurry.set_deadline(Duration::ZERO);
        assert!(watching.join().expect("it ends"));
        let (_late, watch) = hurry.watch_command(Duration::from_hours(1));
        assert_eq!(watch.remaining, MIN_TIME);
    }
}
