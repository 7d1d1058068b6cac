//! Tells the service manager, beat by beat, that the daemon makes progress; where it makes none, nothing is told.
//!
//! A beat goes through the registry, a thread that may block, and the question to every worker: a daemon in which any
//! of them hangs is ended by its service manager and started again, and the journals do the rest.

use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use super::ServiceNotifier;
use super::health_check::HealthCheck;
use crate::registry::RepoRegistry;

/// How often more time to end is asked for where there is no watchdog.
const UNWATCHED_PERIOD: Duration = Duration::from_secs(20);
/// Time to end beyond the next two beats.
const SPARE: Duration = Duration::from_secs(30);

/// Beats as long as the daemon lives.
#[derive(Debug)]
pub struct ServiceWatchdog {
    notifier: ServiceNotifier,
    registry: RepoRegistry,
    ending: CancellationToken,
}

impl ServiceWatchdog {
    /// Makes one that tells `notifier`. From when `ending` is cancelled, each beat asks for more time to end.
    pub fn new(notifier: ServiceNotifier, registry: RepoRegistry, ending: CancellationToken) -> Self {
        Self { notifier, registry, ending }
    }

    /// Returns the time between two beats: half of what the service manager waits for.
    fn period(&self) -> Duration {
        self.notifier.watchdog_period().map_or(UNWATCHED_PERIOD, |watchdog| watchdog / 2)
    }

    /// Returns how long the daemon may take to end, if there is no further beat.
    pub fn stop_limit(&self) -> Duration {
        2 * self.period() + SPARE
    }

    /// Beats; does not end by itself.
    pub async fn run(self) {
        if self.notifier.watchdog_period().is_none() {
            self.ending.cancelled().await;
        }
        let mut ticks = interval(self.period());
        let mut pulse = HealthCheck::new(self.period());
        let mut silent = None;
        loop {
            ticks.tick().await;
            let workers = self.registry.list().await;
            let threads_can_block = spawn_blocking(|| ()).await.is_ok();
            let found = pulse.tick(&workers);
            if let Some(repo) = found.as_ref().filter(|_| silent.is_none()) {
                tracing::error!(repo, "a worker answers nobody; the service manager is not told of progress any more");
            }
            silent = found;
            if silent.is_none() && threads_can_block {
                let running = workers.iter().filter(|worker| worker.is_driving()).count();
                self.notify_manager(workers.len(), running);
            }
        }
    }

    fn notify_manager(&self, repositories: usize, running: usize) {
        if self.ending.is_cancelled() {
            self.notifier.extend_stop_timeout(self.stop_limit());
        } else {
            self.notifier.notify_alive(&format!("repositories: {repositories}, running: {running}"));
        }
    }
}
