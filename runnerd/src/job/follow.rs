//! Follows the single run of a job through its own daemon until there is nothing left to wait for.
//!
//! The consequences for the job are decided by the parent module.

use std::time::Duration;

use jiff::Timestamp;
use protocol::api::RunApiClient as _;
use protocol::client::{ConnectOptions, Connection, caller_env};
use protocol::path::WirePath;
use protocol::request::{CallerEnv, PauseParams, StartParams};
use protocol::view::{RunView, StopReason};
use protocol::words::RunStatus;
use runner_os::clock;
use tokio::task::block_in_place;
use tokio::time::{sleep, timeout};

use super::record_archive::RecordArchive;
use super::signals::JobSignals;
use super::{DriveJob, JobError};
use crate::registry::RepoRegistry;
use crate::upstream::{SupersededReason, Upstream};
use crate::worker::WorkerHandle;

/// Time limit for a session to end, and for its work to be committed.
const STOP_GRACE: Duration = Duration::from_secs(20);

/// Why there is nothing left to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JobEnd {
    /// The run has stopped.
    Stopped(RunStatus, Option<StopReason>),
    /// The job was asked to exit.
    Terminated,
    /// The remote has diverged, or does not accept what is committed.
    Superseded(SupersededReason),
    /// The run waits longer than a job may, until this time.
    WaitsTooLong(Timestamp, Option<StopReason>),
}

/// Starts the run, and follows it.
pub(super) async fn follow_run(
    job: &DriveJob,
    upstream: &Upstream,
    signals: &mut JobSignals,
    registry: &RepoRegistry,
    archive: &mut Option<RecordArchive>,
    is_new: bool,
) -> Result<JobEnd, JobError> {
    let connection = Connection::open(&ConnectOptions {
        socket: Some(job.socket.clone()),
        client_name: "runnerd drive".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..ConnectOptions::default()
    })
    .await?;
    start_run(job, upstream, &connection, is_new).await?;
    let handle = registry.list().await.into_iter().next().ok_or(JobError::Interrupted)?;
    watch_run(job, upstream, signals, handle, archive, &connection).await
}

async fn start_run(job: &DriveJob, upstream: &Upstream, connection: &Connection, is_new: bool) -> Result<(), JobError> {
    let path = WirePath(job.checkout.folder.clone());
    let client = connection.client();
    let collected = caller_env::collect(connection, &path).await;
    let always_sent = collected.0.clone().into_iter().filter(|(name, _)| caller_env::is_sent_always(name));
    // No programs are started if the run is only begun here.
    let env = if upstream.starts_only() { CallerEnv::default() } else { CallerEnv(always_sent.collect()) };
    upstream.set_env(collected.0);
    let params = StartParams {
        path,
        goal: job.goal.clone().filter(|_| is_new),
        goal_file: None,
        id: Some(job.options.run.clone()),
        base: None,
        onto: None,
        keep_tree: false,
        queue_only: false,
        isolated: Some(false),
        default_config: false,
        defaults: None,
        confirmed: job.options.yes,
        env,
    };
    client.start(params).await.map(drop).map_err(|error| JobError::Call(error.into()))
}

async fn watch_run(
    job: &DriveJob,
    upstream: &Upstream,
    signals: &mut JobSignals,
    mut handle: WorkerHandle,
    archive: &mut Option<RecordArchive>,
    connection: &Connection,
) -> Result<JobEnd, JobError> {
    let mut waiting_since: Option<Duration> = None;
    loop {
        let view = handle.status();
        let run = view.run.as_ref().filter(|run| run.summary.id == job.options.run);
        if let (Some(keeper), Some(run)) = (archive.as_mut(), run) {
            block_in_place(|| keeper.archive_finished(Some(run.iteration)));
        }
        if let Some(ended) = run.and_then(|run| find_run_end(run, upstream)) {
            return Ok(ended);
        }
        let waiting = run.filter(|run| run.summary.state == RunStatus::Waiting);
        waiting_since = waiting.map(|_| waiting_since.unwrap_or_else(clock::since_boot));
        if let Some((run, since)) = waiting.zip(waiting_since)
            && let Some(until) = exceeds_max_wait(run, since, job.options.max_wait)
        {
            pause_and_wait(job, &mut handle, connection, signals).await;
            return Ok(JobEnd::WaitsTooLong(until, run.summary.reason.clone()));
        }
        let wait_limit = waiting_since.map_or(Duration::MAX, |since| {
            (since + job.options.max_wait).saturating_sub(clock::since_boot()).max(Duration::from_millis(100))
        });
        tokio::select! {
            () = signals.wait_next() => {
                pause_and_wait(job, &mut handle, connection, signals).await;
                return Ok(if let Some(parted) = upstream.superseded_reason() { JobEnd::Superseded(parted) } else { JobEnd::Terminated });
            }
            is_alive = handle.wait_for_change() => if !is_alive { return Err(JobError::Interrupted) },
            () = sleep(wait_limit) => {}
        }
    }
}

/// Returns why a run has stopped; `None` if it has not.
fn find_run_end(run: &RunView, upstream: &Upstream) -> Option<JobEnd> {
    let state = run.summary.state;
    let stopped = || JobEnd::Stopped(state, run.summary.reason.clone());
    match state {
        RunStatus::Held => Some(upstream.superseded_reason().map_or_else(stopped, JobEnd::Superseded)),
        RunStatus::Paused => Some(stopped()),
        // A person's review, whose time is unknown.
        RunStatus::Waiting if run.wait_until.is_none() && run.phase.is_none() => Some(stopped()),
        _ if state.is_terminal() => Some(stopped()),
        _ => None,
    }
}

/// Returns until when a run waits, if that is too long for a job.
fn exceeds_max_wait(run: &RunView, since: Duration, max_wait: Duration) -> Option<Timestamp> {
    let now = clock::now();
    let until = run.wait_until.unwrap_or(now);
    let remaining = Duration::try_from(until.duration_since(now)).unwrap_or_default();
    let waited = clock::since_boot().saturating_sub(since);
    (waited.saturating_add(remaining) > max_wait).then_some(until)
}

/// Ends the session, and waits until its work is committed.
async fn pause_and_wait(job: &DriveJob, handle: &mut WorkerHandle, connection: &Connection, signals: &mut JobSignals) {
    let path = WirePath(job.checkout.folder.clone());
    let params = PauseParams { path, run: Some(job.options.run.clone()), now: true };
    if let Err(error) = connection.client().pause(params).await {
        // A run that is over has no session to end.
        tracing::debug!(%error, "not paused");
    }
    let settled = async {
        loop {
            let view = handle.status();
            let state = view.run.as_ref().map(|run| run.summary.state);
            if !matches!(state, Some(RunStatus::Running | RunStatus::Waiting | RunStatus::Queued))
                || !handle.wait_for_change().await
            {
                return;
            }
        }
    };
    tokio::select! {
        ended = timeout(STOP_GRACE, settled) => if ended.is_err() { tracing::warn!("the session did not end in time") },
        () = signals.wait_next() => tracing::warn!("exiting now"),
    }
}
