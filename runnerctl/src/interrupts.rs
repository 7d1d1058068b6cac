//! Signals that end a command with cleanup to do first: Ctrl-C, and those sent by a service manager or a closing
//! terminal.

use protocol::error::ExitStatus;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The signals that end a command in order.
#[derive(Debug)]
pub(crate) struct InterruptSignals {
    int: Signal,
    term: Signal,
    hup: Signal,
}

impl InterruptSignals {
    /// Installs handlers, so that the signals no longer end the program.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen_for = |kind| signal(kind).map_err(|error| Failure::io("listening for signals", &error));
        let int = SignalKind::interrupt();
        let term = SignalKind::terminate();
        let hup = SignalKind::hangup();
        Ok(Self { int: listen_for(int)?, term: listen_for(term)?, hup: listen_for(hup)? })
    }

    /// Waits for the next signal.
    pub(crate) async fn recv(&mut self) {
        tokio::select! {
            _ = self.int.recv() => {}
            _ = self.term.recv() => {}
            _ = self.hup.recv() => {}
        }
    }
}

/// Runs a future unless interrupted; on interruption it is dropped, and has cleaned up when this returns.
pub(crate) async fn unless_interrupted<T>(
    what: &str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut interrupts = InterruptSignals::listen()?;
    tokio::select! {
        result = work => result,
        () = interrupts.recv() => Err(Failure::new(ExitStatus::Interrupted, "interrupted", format!("{what} was interrupted"))),
    }
}
