//! Waiting at the mailbox: requests are answered while a run rests, runs, or waits out an obstacle.

use std::time::Duration;

use runner_core::run::wait::WaitPeriod;
use runner_core::verdict::StopCause;
use runner_os::clock;
use tokio_util::sync::CancellationToken;

use crate::worker::queue::RepoQueue;
use crate::worker::requests;

/// Waits out an obstacle; returns a stop requested meanwhile.
///
/// The run's slot is released in the meantime.
pub(crate) async fn wait_for_retry(queue: &mut RepoQueue, pause: Duration) -> Option<StopCause> {
    let had_slot = queue.slot.take().is_some();
    let slots = queue.slots.clone();
    let retry = async {
        tokio::time::sleep(pause).await;
        if had_slot { slots.acquire().await } else { None }
    };
    let slot = tokio::select! {
        biased;
        cause = wait_for_stop(queue) => return Some(cause),
        slot = retry => slot,
    };
    queue.slot = slot;
    None
}

/// Waits for a request, the timer, or the shutdown of the daemon.
pub(crate) async fn wait_for_request(queue: &mut RepoQueue, wait: Option<WaitPeriod>) {
    let timer = async {
        match wait.map(|wait| wait.timer_sleep(clock::now())) {
            Some(sleep_time) => tokio::time::sleep(sleep_time.try_into().unwrap_or(Duration::ZERO)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = queue.shutdown.cancelled() => {}
        () = queue.drain.cancelled() => {}
        message = queue.mailbox.recv() => {
            match message {
                Some(message) => drop(requests::handle_message(queue, message)),
                None => queue.is_mailbox_closed = true,
            }
        }
        () = timer => {}
    }
}

/// Waits for a request to stop the live run now. Cancel-safe.
///
/// Shutdown is returned once; after that, requests are only answered.
pub(crate) async fn wait_for_stop(queue: &mut RepoQueue) -> StopCause {
    loop {
        let message = tokio::select! {
            biased;
            () = queue.shutdown.cancelled(), if !queue.is_shutdown_announced => {
                queue.is_shutdown_announced = true;
                return StopCause::Shutdown;
            }
            message = queue.mailbox.recv() => message,
        };
        match message {
            Some(message) => {
                if let Some(cause) = requests::handle_message(queue, message) {
                    return cause;
                }
            }
            None if queue.is_shutdown_announced => std::future::pending().await,
            None => queue.shutdown.cancelled().await,
        }
    }
}

/// Runs a future to its end while answering requests; a requested stop is passed on.
pub(crate) async fn serve_until_done<T>(
    queue: &mut RepoQueue,
    running: impl Future<Output = T>,
    stop: &CancellationToken,
) -> T {
    let mut running = std::pin::pin!(running);
    loop {
        tokio::select! {
            biased;
            result = running.as_mut() => return result,
            _ = self::wait_for_stop(queue) => stop.cancel(),
        }
    }
}
