//! The daemon's part while a program runs: it takes the output, and does what the watchdog says.

use std::time::Duration;

use protocol::words::Containment;
use supervisor::{Cause, Command, Over, Word, since_boot};
use tokio::{select, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    Ended, Mark, Report,
    link::Link,
    orphans::{self, StillAlive, Swept},
    output::Output,
    watchdog::{Action, Watchdog},
};

/// Time between two questions for the answer.
const PROBE: Duration = Duration::from_millis(500);
/// Time for the search after a lost shim.
const SWEEP_LIMIT: Duration = Duration::from_secs(10);

/// A program that runs, seen from the daemon.
pub(super) struct Supervision<'a> {
    pub link: Link,
    pub output: Output<'a>,
    pub watchdog: Watchdog,
    pub mark: Mark,
    /// What is in force.
    pub containment: Containment,
    /// Time since boot.
    pub began: Duration,
}

impl Supervision<'_> {
    /// Attends to the program until nothing of it is alive.
    pub(super) async fn until_over(mut self, stop: &CancellationToken) -> Report {
        let (ended, survivors, still_alive) = match self.attend(stop).await {
            Some(over) => (self.ended(over.cause), over.survivors, self.still_alive(over.still_alive)),
            None => self.end_without_shim().await,
        };
        self.link.close().await;
        self.output.take_rest().await;
        let elapsed = since_boot().saturating_sub(self.began);
        let log = self.output.finish().await;
        Report {
            ended,
            elapsed,
            answered: self.watchdog.answered().map(|at| at.saturating_sub(self.began)),
            captured_bytes: log.kept,
            dropped_bytes: log.dropped,
            log_fault: log.fault,
            survivors,
            still_alive,
            containment: self.containment,
        }
    }

    /// Returns the shim's last word, or nothing if it is gone without one.
    async fn attend(&mut self, stop: &CancellationToken) -> Option<Over> {
        let mut next_probe = self.began;
        loop {
            self.probe(&mut next_probe);
            let pause = match self.watchdog.next(since_boot()) {
                Action::Wait(pause) => pause,
                Action::Stop => {
                    self.link.send(&[Command::Stop.to_byte()]).await;
                    continue;
                }
                Action::Kill => {
                    self.link.send(&[Command::Kill.to_byte()]).await;
                    continue;
                }
                Action::GiveUp => return None,
            };
            select! {
                biased;
                word = self.link.next_word() => match word? {
                    Word::LeaderGone => self.watchdog.saw_leader_go(since_boot()),
                    Word::Over(over) => return Some(over),
                    Word::Started | Word::Refused { .. } => {}
                },
                () = stop.cancelled(), if !self.watchdog.is_stop_wanted() => self.watchdog.want_stop(),
                () = self.output.ready(), if self.output.is_open() => self.take_output().await,
                () = sleep(pause) => {}
            }
        }
    }

    async fn take_output(&mut self) {
        self.output.take().await;
        if self.output.is_open() {
            self.watchdog.saw_output(since_boot());
        } else {
            self.watchdog.saw_output_close();
        }
    }

    fn probe(&mut self, next: &mut Duration) {
        let now = since_boot();
        if now >= *next {
            *next = now + PROBE;
            if self.output.has_answered() {
                self.watchdog.saw_answer(now);
            }
        }
    }

    fn ended(&self, cause: Cause) -> Ended {
        match cause {
            Cause::Exited(code) => Ended::Exited(code),
            Cause::Signaled(signal) => Ended::Signaled(signal),
            Cause::Deadline => Ended::TimedOut,
            Cause::Asked => self.watchdog.ended(since_boot()),
        }
    }

    fn still_alive(&self, pids: Vec<i32>) -> Option<StillAlive> {
        (!pids.is_empty()).then(|| StillAlive::Processes { mark: self.mark.clone(), pids })
    }

    /// Ends a shim that does not answer, and then all that it left.
    async fn end_without_shim(&mut self) -> (Ended, u32, Option<StillAlive>) {
        let ended = self.watchdog.ended(since_boot());
        self.link.kill().await;
        let mark = self.mark.clone();
        let sweep = tokio::task::spawn_blocking(move || orphans::sweep(&mark, since_boot() + SWEEP_LIMIT));
        match sweep.await.expect("BUG: the search for orphans does not panic") {
            Ok(Swept { ended: pids }) => (ended, u32::try_from(pids.len()).unwrap_or(u32::MAX), None),
            Err(alive) => (ended, 0, Some(alive)),
        }
    }
}
