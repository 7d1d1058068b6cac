//! Periodically tells the service manager that the daemon makes progress; if it makes none, nothing is sent.
//!
//! A beat goes through the registry, a blocking thread, and a question to every worker: if any of them hangs, the
//! service manager kills the daemon and starts it again, and the journals do the rest.

use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use super::ServiceNotifier;
use super::health_check::HealthCheck;
use crate::registry::RepoRegistry;

/// How often more time to stop is requested if there is no watchdog.
const DEFAULT_PERIOD: Duration = Duration::from_secs(20);
/// Time to stop beyond the next two beats.
const STOP_MARGIN: Duration = Duration::from_secs(30);

/// Sends the watchdog's messages for the lifetime of the daemon.
#[derive(Debug)]
pub struct ServiceWatchdog {
    notifier: ServiceNotifier,
    registry: RepoRegistry,
    stopping: CancellationToken,
}

impl ServiceWatchdog {
    /// Creates one that reports to `notifier`. Once `stopping` is cancelled, each beat requests more time to stop.
    pub fn new(notifier: ServiceNotifier, registry: RepoRegistry, stopping: CancellationToken) -> Self {
        Self { notifier, registry, stopping }
    }

    /// Returns the time between two beats: half of the service manager's timeout.
    fn period(&self) -> Duration {
        self.notifier.watchdog_period().map_or(DEFAULT_PERIOD, |watchdog| watchdog / 2)
    }

    /// Returns how long the daemon may take to stop without a further beat.
    pub fn stop_limit(&self) -> Duration {
        2 * self.period() + STOP_MARGIN
    }

    /// Sends beats; never returns.
    pub async fn run(self) {
        if self.notifier.watchdog_period().is_none() {
            self.stopping.cancelled().await;
        }
        let mut ticks = interval(self.period());
        let mut health = HealthCheck::new(self.period());
        let mut unresponsive = None;
        loop {
            ticks.tick().await;
            let workers = self.registry.list().await;
            let threads_can_block = spawn_blocking(|| ()).await.is_ok();
            let missing = health.tick(&workers);
            if let Some(repo) = missing.as_ref().filter(|_| unresponsive.is_none()) {
                tracing::error!(repo, "a worker does not respond; watchdog notifications to the service manager stop");
            }
            unresponsive = missing;
            if unresponsive.is_none() && threads_can_block {
                let running = workers.iter().filter(|worker| worker.is_driving()).count();
                self.notify_manager(workers.len(), running);
            }
        }
    }

    fn notify_manager(&self, repositories: usize, running: usize) {
        if self.stopping.is_cancelled() {
            self.notifier.extend_stop_timeout(self.stop_limit());
        } else {
            self.notifier.notify_alive(&format!("repositories: {repositories}, running: {running}"));
        }
    }
}
