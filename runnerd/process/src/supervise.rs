//! The daemon's part while a program runs: reads the output, and carries out the watchdog's decisions.

use std::time::Duration;

use protocol::words::Containment;
use supervisor::{EndCause, FinalReport, ShimCommand, ShimMessage, since_boot};
use tokio::{select, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    Mark, ProgramEnd, ProgramReport,
    orphans::{self, StillAlive, SweepReport},
    output::ProgramOutput,
    shim_link::ShimLink,
    watchdog::{ProgramWatchdog, WatchdogAction},
};

/// Interval between two checks for the answer.
const ANSWER_INTERVAL: Duration = Duration::from_millis(500);
/// Time limit of the search after a lost shim.
const SWEEP_LIMIT: Duration = Duration::from_secs(10);

/// A running program, as seen by the daemon.
pub(super) struct ProgramSupervision<'a> {
    pub link: ShimLink,
    pub output: ProgramOutput<'a>,
    pub watchdog: ProgramWatchdog,
    pub mark: Mark,
    /// The containment in force.
    pub containment: Containment,
    /// Time since boot at the start.
    pub began: Duration,
}

impl ProgramSupervision<'_> {
    /// Serves the program until no process of it is alive.
    pub(super) async fn wait_for_end(mut self, stop: &CancellationToken) -> ProgramReport {
        let (end, survivors, still_alive) = match self.watch_program(stop).await {
            Some(over) => (self.program_end(over.cause), over.survivors, self.survivors_of(over.still_alive)),
            None => self.end_without_shim().await,
        };
        self.link.close().await;
        self.output.drain_rest().await;
        let elapsed = since_boot().saturating_sub(self.began);
        let log = self.output.finish().await;
        ProgramReport {
            end,
            elapsed,
            answered: self.watchdog.answered_at().map(|at| at.saturating_sub(self.began)),
            captured_bytes: log.kept,
            dropped_bytes: log.dropped,
            log_fault: log.fault,
            survivors,
            still_alive,
            containment: self.containment,
        }
    }

    /// Returns the shim's final report, or `None` if it is gone without one.
    async fn watch_program(&mut self, stop: &CancellationToken) -> Option<FinalReport> {
        let mut next_check = self.began;
        loop {
            self.check_answer(&mut next_check);
            let pause = match self.watchdog.next_action(since_boot()) {
                WatchdogAction::Wait(pause) => pause,
                WatchdogAction::Stop => {
                    self.link.send(&[ShimCommand::Stop.to_byte()]).await;
                    continue;
                }
                WatchdogAction::Kill => {
                    self.link.send(&[ShimCommand::Kill.to_byte()]).await;
                    continue;
                }
                WatchdogAction::GiveUp => return None,
            };
            select! {
                biased;
                message = self.link.next_message() => match message? {
                    ShimMessage::LeaderGone => self.watchdog.record_leader_exit(since_boot()),
                    ShimMessage::Over(over) => return Some(over),
                    ShimMessage::Started | ShimMessage::Refused { .. } => {}
                },
                () = stop.cancelled(), if !self.watchdog.is_stop_requested() => self.watchdog.request_stop(),
                () = self.output.wait_ready(), if self.output.is_open() => self.drain_output().await,
                () = sleep(pause) => {}
            }
        }
    }

    async fn drain_output(&mut self) {
        self.output.drain().await;
        if self.output.is_open() {
            self.watchdog.record_output(since_boot());
        } else {
            self.watchdog.record_output_closed();
        }
    }

    fn check_answer(&mut self, next: &mut Duration) {
        let now = since_boot();
        if now >= *next {
            *next = now + ANSWER_INTERVAL;
            if self.output.has_answered() {
                self.watchdog.record_answer(now);
            }
        }
    }

    fn program_end(&self, cause: EndCause) -> ProgramEnd {
        match cause {
            EndCause::Exited(code) => ProgramEnd::Exited(code),
            EndCause::Signaled(signal) => ProgramEnd::Signaled(signal),
            EndCause::Deadline => ProgramEnd::TimedOut,
            EndCause::Asked => self.watchdog.program_end(since_boot()),
        }
    }

    fn survivors_of(&self, pids: Vec<i32>) -> Option<StillAlive> {
        (!pids.is_empty()).then(|| StillAlive::Processes { mark: self.mark.clone(), pids })
    }

    /// Kills a shim that does not answer, and then everything that it left.
    async fn end_without_shim(&mut self) -> (ProgramEnd, u32, Option<StillAlive>) {
        let ended = self.watchdog.program_end(since_boot());
        self.link.kill().await;
        let mark = self.mark.clone();
        let search = tokio::task::spawn_blocking(move || orphans::sweep_until(&mark, since_boot() + SWEEP_LIMIT));
        match search.await.expect("BUG: the search for orphans does not panic") {
            Ok(SweepReport { ended: pids }) => (ended, u32::try_from(pids.len()).unwrap_or(u32::MAX), None),
            Err(alive) => (ended, 0, Some(alive)),
        }
    }
}
