//! What the service manager is told (`sd_notify(3)`). When it is told is not decided here.

use std::env;
use std::time::Duration;

use sd_notify::NotifyState::{self, ExtendTimeoutUsec, Ready, Status, Stopping, Watchdog};

/// The variable that names where a service manager listens.
const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";

/// Tells the service manager how the daemon is.
#[derive(Debug, Clone, Copy)]
pub struct ServiceNotifier {
    heard: bool,
}

impl ServiceNotifier {
    /// Returns one that is heard where this process's environment says that somebody listens.
    pub fn from_env() -> Self {
        Self { heard: env::var_os(SOCKET_VARIABLE).is_some() }
    }

    /// Returns one that nobody hears.
    pub fn disabled() -> Self {
        Self { heard: false }
    }

    /// Returns whether a service manager listens.
    pub fn is_enabled(self) -> bool {
        self.heard
    }

    /// Returns how long the service manager waits for the next sign of life before it ends this process.
    pub fn watchdog_period(self) -> Option<Duration> {
        self.heard.then(sd_notify::watchdog_enabled).flatten().filter(|period| !period.is_zero())
    }

    /// Says that clients are answered.
    pub fn notify_ready(self) {
        self.notify(&[Ready, Status("listening")]);
    }

    /// Says why the daemon does not come up.
    pub fn notify_failed(self, why: &str) {
        self.notify(&[Status(why)]);
    }

    /// Says that the current iterations are waited for; how long that takes is not limited.
    pub fn notify_draining(self) {
        self.notify(&[Status("draining: ends after the current iterations")]);
    }

    /// Says that the daemon ends, and asks for the time that this may take.
    pub fn notify_stopping(self, within: Duration) {
        self.notify(&[Stopping, Status("ending"), extend_timeout(within)]);
    }

    /// Says that the end goes on, and asks for more time.
    pub fn extend_stop_timeout(self, within: Duration) {
        self.notify(&[Watchdog, extend_timeout(within)]);
    }

    /// Says that there is progress.
    pub fn notify_alive(self, status: &str) {
        self.notify(&[Watchdog, Status(status)]);
    }

    fn notify(self, words: &[NotifyState<'_>]) {
        if self.heard
            && let Err(error) = sd_notify::notify(words)
        {
            tracing::warn!(%error, "the service manager cannot be told");
        }
    }
}

fn extend_timeout(within: Duration) -> NotifyState<'static> {
    ExtendTimeoutUsec(u32::try_from(within.as_micros()).unwrap_or(u32::MAX))
}
