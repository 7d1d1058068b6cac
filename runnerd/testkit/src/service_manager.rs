//! A service manager for tests: it owns the daemon's socket, passes it on, and receives the daemon's notifications.

use std::fs::{self, File, Permissions};
use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::PATIENCE;
use crate::daemon::Daemon;
use crate::home::Home;

/// Passes standard input to the daemon as the descriptor of a service manager.
const PASS_SOCKET_SCRIPT: &str = "export LISTEN_PID=$$; exec \"$0\" 3<&0 </dev/null";

/// A service manager; while it exists, connections to the socket queue for a daemon.
#[derive(Debug)]
pub struct ServiceManager<'a> {
    home: &'a Home,
    listener: UnixListener,
    notifications: UnixDatagram,
}

impl<'a> ServiceManager<'a> {
    /// Creates the socket of a home.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be made.
    pub fn new(home: &'a Home) -> Self {
        let listener = UnixListener::bind(home.socket()).expect("the socket can be made");
        fs::set_permissions(home.socket(), Permissions::from_mode(0o600)).expect("the socket can be protected");
        let notifications = UnixDatagram::bind(home.path().join("run/notify")).expect("a socket for words can be made");
        Self { home, listener, notifications }
    }

    /// Returns the command that becomes the daemon of `program`, with everything a service manager passes to it.
    ///
    /// # Panics
    ///
    /// Panics if the socket cannot be passed.
    pub fn command(&self, program: &Path, watchdog: Duration) -> Command {
        let log = File::options().create(true).append(true).open(self.home.path().join("runnerd.stderr"));
        let socket = self.listener.try_clone().expect("the socket can be passed");
        let mut command = Command::new("sh");
        command.env_clear().envs(self.home.env().iter().cloned()).current_dir(self.home.path());
        command.env("LISTEN_FDS", "1").env("NOTIFY_SOCKET", self.home.path().join("run/notify"));
        command.env("WATCHDOG_USEC", watchdog.as_micros().to_string());
        command.arg("-c").arg(PASS_SOCKET_SCRIPT).arg(program).stdin(OwnedFd::from(socket)).stdout(Stdio::null());
        command.stderr(log.expect("a file for the daemon's words can be made"));
        command
    }

    /// Starts the daemon of `program` and waits until it reports ready.
    ///
    /// # Panics
    ///
    /// Panics if it does not.
    pub fn start(&self, program: &Path, watchdog: Duration) -> Daemon {
        let child = self.command(program, watchdog).spawn().expect("the daemon can be started");
        self.expect_notification("READY=1");
        Daemon::from_child(child)
    }

    /// Returns whether a connection is waiting for a daemon.
    ///
    /// # Panics
    ///
    /// Panics if the socket cannot be queried.
    pub fn has_connection(&self) -> bool {
        self.listener.set_nonblocking(true).expect("the socket can be set");
        self.listener.accept().is_ok()
    }

    /// Waits until the daemon sends a notification.
    ///
    /// # Panics
    ///
    /// Panics if it does not within the time limit.
    #[track_caller]
    pub fn expect_notification(&self, word: &str) {
        assert!(self.receives_within(word, PATIENCE), "the daemon does not say {word}");
    }

    /// Waits until the daemon sends a notification; false if it does not within `limit`.
    ///
    /// # Panics
    ///
    /// Panics if notifications cannot be received.
    pub fn receives_within(&self, word: &str, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            self.notifications.set_read_timeout(Some(left)).expect("a limit can be set");
            if self.next_notification().is_some_and(|message| message.lines().any(|line| line == word)) {
                return true;
            }
        }
        false
    }

    /// Discards all notifications received so far.
    ///
    /// # Panics
    ///
    /// Panics if notifications cannot be received.
    pub fn discard_notifications(&self) {
        self.notifications.set_nonblocking(true).expect("the socket can be set");
        while self.next_notification().is_some() {}
        self.notifications.set_nonblocking(false).expect("the socket can be set");
    }

    fn next_notification(&self) -> Option<String> {
        let mut buffer = [0; 4096];
        match self.notifications.recv(&mut buffer) {
            Ok(length) => Some(String::from_utf8_lossy(&buffer[..length]).into_owned()),
            // A wait with a timeout is interrupted if the process was stopped meanwhile.
            Err(error) if matches!(error.kind(), WouldBlock | TimedOut | Interrupted) => None,
            Err(error) => panic!("no notification can be received: {error}"),
        }
    }
}
