//! The signals that ask a job to exit, and the deadline that they set for git.
//!
//! A separate task receives them, as a thread blocked on git would not. The reaction is up to the parent module.

use std::io;
use std::time::Duration;

use runner_os::clock;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::upstream::Deadline;

/// Time from a signal to the end of the job, minus the time to exit: engines give thirty seconds by default.
const STOP_LIMIT: Duration = Duration::from_secs(28);

/// How often the job has been asked to exit.
#[derive(Debug, Clone)]
pub(super) struct JobSignals {
    count: watch::Receiver<u32>,
}

impl JobSignals {
    /// Starts listening.
    pub(super) fn listen(deadline: Deadline) -> io::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (sender, count) = watch::channel(0_u32);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                    () = sender.closed() => return,
                }
                deadline.set_deadline(clock::since_boot().saturating_add(STOP_LIMIT));
                sender.send_modify(|count| *count += 1);
            }
        });
        Ok(Self { count })
    }

    /// Waits for a signal that has not been returned yet.
    pub(super) async fn wait_next(&mut self) {
        if self.count.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether there has been a signal.
    pub(super) fn was_signaled(&self) -> bool {
        *self.count.borrow() > 0
    }
}
