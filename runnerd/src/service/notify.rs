//! Notifications to the service manager (`sd_notify(3)`). When they are sent is not decided here.

use std::env;
use std::time::Duration;

use sd_notify::NotifyState::{self, ExtendTimeoutUsec, Ready, Status, Stopping, Watchdog};

/// The variable that names the service manager's socket.
const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";

/// Sends the daemon's state to the service manager.
#[derive(Debug, Clone, Copy)]
pub struct ServiceNotifier {
    enabled: bool,
}

impl ServiceNotifier {
    /// Enabled if `NOTIFY_SOCKET` is set.
    pub fn from_env() -> Self {
        Self { enabled: env::var_os(SOCKET_VARIABLE).is_some() }
    }

    /// Always disabled.
    pub fn disabled() -> Self {
        Self { enabled: false }
    }

    /// Whether a service manager receives the notifications.
    pub fn is_enabled(self) -> bool {
        self.enabled
    }

    /// Returns the service manager's watchdog timeout, after which it kills this process; `None` without a watchdog.
    pub fn watchdog_period(self) -> Option<Duration> {
        self.enabled.then(sd_notify::watchdog_enabled).flatten().filter(|period| !period.is_zero())
    }

    /// Reports that clients are answered.
    pub fn notify_ready(self) {
        self.notify(&[Ready, Status("listening")]);
    }

    /// Reports why the daemon does not start.
    pub fn notify_failed(self, why: &str) {
        self.notify(&[Status(why)]);
    }

    /// Reports that the current iterations are being finished, which may take any time.
    pub fn notify_draining(self) {
        self.notify(&[Status("draining: ends after the current iterations")]);
    }

    /// Reports that the daemon is stopping, and requests the time for it.
    pub fn notify_stopping(self, limit: Duration) {
        self.notify(&[Stopping, Status("ending"), extend_timeout(limit)]);
    }

    /// Reports that stopping is still in progress, and requests more time.
    pub fn extend_stop_timeout(self, limit: Duration) {
        self.notify(&[Watchdog, extend_timeout(limit)]);
    }

    /// Reports progress, with a status for people.
    pub fn notify_alive(self, status: &str) {
        self.notify(&[Watchdog, Status(status)]);
    }

    fn notify(self, states: &[NotifyState<'_>]) {
        if self.enabled
            && let Err(error) = sd_notify::notify(states)
        {
            tracing::warn!(%error, "failed to notify the service manager");
        }
    }
}

fn extend_timeout(limit: Duration) -> NotifyState<'static> {
    ExtendTimeoutUsec(u32::try_from(limit.as_micros()).unwrap_or(u32::MAX))
}
