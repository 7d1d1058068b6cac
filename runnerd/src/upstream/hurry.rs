//! How long commands of git's may take: each has a limit, and a driver that was told to end has one for all.
//!
//! Who is told, and by what, is not known here.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock;

/// The least that a command gets, however late it is.
const LEAST: Duration = Duration::from_secs(1);

/// When everything has to be over, once somebody has said so.
#[derive(Debug, Clone, Default)]
pub struct Hurry(Arc<Mutex<Rush>>);

#[derive(Debug, Default)]
struct Rush {
    over_by: Option<Duration>,
    waiting: BTreeMap<u64, Sender<Told>>,
    next: u64,
}

/// What somebody who watches a command is told.
#[derive(Debug)]
enum Told {
    Over,
    Hurry(Duration),
}

/// A command that is under way; it is over when this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay {
    number: u64,
    hurry: Hurry,
}

/// Waits for what ends a command that takes too long.
#[derive(Debug)]
pub(super) struct Watch {
    left: Duration,
    told: Receiver<Told>,
}

impl Hurry {
    /// Says when everything has to be over, by the time since the machine was started. The first word counts.
    pub fn be_over_by(&self, end: Duration) {
        let mut rush = self.rush();
        if rush.over_by.is_none() {
            rush.over_by = Some(end);
            for waiting in rush.waiting.values() {
                // One that is just over does not listen any more.
                let _ = waiting.send(Told::Hurry(left(end)));
            }
        }
    }

    /// Begins a command that may take so long.
    pub(super) fn begin(&self, limit: Duration) -> (UnderWay, Watch) {
        let (tell, told) = mpsc::channel();
        let mut rush = self.rush();
        let number = rush.next;
        rush.next += 1;
        rush.waiting.insert(number, tell);
        let left = rush.over_by.map_or(limit, |end| left(end).min(limit));
        (UnderWay { number, hurry: self.clone() }, Watch { left, told })
    }

    fn rush(&self) -> MutexGuard<'_, Rush> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(tell) = self.hurry.rush().waiting.remove(&self.number) {
            let _ = tell.send(Told::Over);
        }
    }
}

impl Watch {
    /// Waits until the command is over, or its time; returns whether it is late.
    pub(super) fn ends_late(mut self) -> bool {
        loop {
            match self.told.recv_timeout(self.left) {
                Ok(Told::Over) | Err(RecvTimeoutError::Disconnected) => return false,
                Ok(Told::Hurry(left)) => self.left = self.left.min(left),
                Err(RecvTimeoutError::Timeout) => return true,
            }
        }
    }
}

fn left(end: Duration) -> Duration {
    end.saturating_sub(clock::since_boot()).max(LEAST)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_command_is_late_after_its_limit_and_not_when_it_was_over_before() {
        let hurry = Hurry::default();
        let (_under_way, watch) = hurry.begin(Duration::ZERO);
        assert!(watch.ends_late());
        let (under_way, watch) = hurry.begin(Duration::from_hours(1));
        drop(under_way);
        assert!(!watch.ends_late());
    }

    #[test]
    fn a_hurry_ends_what_is_under_way_and_bounds_what_begins_then() {
        let hurry = Hurry::default();
        let (_under_way, watch) = hurry.begin(Duration::from_hours(1));
        let watching = thread::spawn(move || watch.ends_late());
        hurry.be_over_by(Duration::ZERO);
        assert!(watching.join().expect("it ends"));
        let (_late, watch) = hurry.begin(Duration::from_hours(1));
        assert_eq!(watch.left, LEAST);
    }
}
