//! What the service manager is told (`sd_notify(3)`). When it is told is not decided here.

use std::env;
use std::time::Duration;

use sd_notify::NotifyState::{self, ExtendTimeoutUsec, Ready, Status, Stopping, Watchdog};

/// The variable that names where a service manager listens.
const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";

/// Tells the service manager how the daemon is.
#[derive(Debug, Clone, Copy)]
pub struct Notifier {
    heard: bool,
}

impl Notifier {
    /// Returns one that is heard where this process's environment says that somebody listens.
    pub fn from_env() -> Self {
        Self { heard: env::var_os(SOCKET_VARIABLE).is_some() }
    }

    /// Returns one that nobody hears.
    pub fn unheard() -> Self {
        Self { heard: false }
    }

    /// Returns whether a service manager listens.
    pub fn is_heard(self) -> bool {
        self.heard
    }

    /// Returns how long the service manager waits for the next sign of life before it ends this process.
    pub fn watchdog(self) -> Option<Duration> {
        self.heard.then(sd_notify::watchdog_enabled).flatten().filter(|period| !period.is_zero())
    }

    /// Says that clients are answered.
    pub fn ready(self) {
        self.say(&[Ready, Status("listening")]);
    }

    /// Says why the daemon does not come up.
    pub fn failed(self, why: &str) {
        self.say(&[Status(why)]);
    }

    /// Says that the current iterations are waited for; how long that takes is not limited.
    pub fn draining(self) {
        self.say(&[Status("draining: ends after the current iterations")]);
    }

    /// Says that the daemon ends, and asks for the time that this may take.
    pub fn stopping(self, within: Duration) {
        self.say(&[Stopping, Status("ending"), extension(within)]);
    }

    /// Says that the end goes on, and asks for more time.
    pub fn still_stopping(self, within: Duration) {
        self.say(&[Watchdog, extension(within)]);
    }

    /// Says that there is progress.
    pub fn alive(self, status: &str) {
        self.say(&[Watchdog, Status(status)]);
    }

    fn say(self, words: &[NotifyState<'_>]) {
        if self.heard
            && let Err(error) = sd_notify::notify(words)
        {
            tracing::warn!(%error, "the service manager cannot be told");
        }
    }
}

fn extension(within: Duration) -> NotifyState<'static> {
    ExtendTimeoutUsec(u32::try_from(within.as_micros()).unwrap_or(u32::MAX))
}
