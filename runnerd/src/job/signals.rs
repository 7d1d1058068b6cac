//! The signals that ask a job to exit, and the deadline that they set for git.
//!
//! A separate task receives them, as a thread blocked on git would not. The reaction is up to the parent module.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::clock;
use crate::upstream::Deadline;

/// Time from a signal to the end of the job, minus the time to exit: engines give thirty seconds by default.
const UNTIL_THE_END: Duration = Duration::from_secs(28);

/// How often the job has been asked to exit.
#[derive(Debug, Clone)]
pub(super) struct JobSignals {
    heard: watch::Receiver<u32>,
}

impl JobSignals {
    /// Starts listening.
    pub(super) fn listen(hurry: Deadline) -> io::Result<Self> {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (tell, heard) = watch::channel(0_u32);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                    () = tell.closed() => return,
                }
                hurry.set_deadline(clock::since_boot().saturating_add(UNTIL_THE_END));
                tell.send_modify(|count| *count += 1);
            }
        });
        Ok(Self { heard })
    }

    /// Waits for a signal that has not been returned yet.
    pub(super) async fn wait_next(&mut self) {
        if self.heard.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether there has been a signal.
    pub(super) fn was_signaled(&self) -> bool {
        *self.heard.borrow() > 0
    }
}
