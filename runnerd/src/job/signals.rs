//! The signals that ask a job to end, and the hurry that they put git in.
//!
//! They are heard by a task of their own: whoever waits for git hears nothing. What is done then is the parent's.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::clock;
use crate::upstream::Deadline;

/// From a signal to the end of the job, less what it takes to end: engines give thirty seconds, if nobody asks for more.
const UNTIL_THE_END: Duration = Duration::from_secs(28);

/// How often the job has been asked to end.
#[derive(Debug, Clone)]
pub(super) struct JobSignals {
    heard: watch::Receiver<u32>,
}

impl JobSignals {
    /// Listens from now on.
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

    /// Waits for a signal that was not waited for yet.
    pub(super) async fn wait_next(&mut self) {
        if self.heard.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Tells whether there has been one.
    pub(super) fn was_signaled(&self) -> bool {
        *self.heard.borrow() > 0
    }
}
