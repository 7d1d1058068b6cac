//! Starts a run and follows it until the run ends, the case's time limit passes, the user interrupts, or the daemon
//! dies.

use std::path::Path;
use std::time::Duration;

use jsonrpsee::core::client::Subscription as Stream;
use protocol::api::{EventApiClient as _, IterationApiClient, RunApiClient as _};
use protocol::event::{Event, EventKind};
use protocol::path::WirePath;
use protocol::request::{AtRun, Subscription};
use protocol::view::{IterationView, RunView};
use protocol::words::RunStatus;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::error::EvalError;
use crate::outcome::RunEnd;
use crate::progress::RunProgress;
use crate::sandbox::{SandboxDaemon, SandboxRepository};

/// How long a cancelled run may take to settle.
const CANCEL_LIMIT: Duration = Duration::from_secs(20);
/// How long to wait for the exit of a daemon that stopped answering.
const DEATH_LIMIT: Duration = Duration::from_secs(5);
/// If no event arrives for this long, the status is polled.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// What to run.
#[derive(Debug)]
pub(crate) struct RunRequest<'a> {
    pub(crate) repository: &'a SandboxRepository,
    /// Id of the run.
    pub(crate) run: &'a str,
    /// Path of the file that contains the goal.
    pub(crate) goal: &'a Path,
    pub(crate) keep_tree: bool,
    pub(crate) limit: Duration,
    pub(crate) progress: &'a RunProgress,
    pub(crate) stop: &'a CancellationToken,
}

/// Result of driving a run.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) end: RunEnd,
    /// The last known status.
    pub(crate) view: Option<RunView>,
    pub(crate) iterations: Vec<IterationView>,
    /// Wall-clock time from the run's start to its end.
    pub(crate) wall: Duration,
}

/// Starts a run and follows it; a refused start counts as an end, too.
pub(crate) async fn drive_run(daemon: &mut SandboxDaemon, request: &RunRequest<'_>) -> RunResult {
    let began = Instant::now();
    let mut result = RunResult { end: RunEnd::Interrupted, view: None, iterations: Vec::new(), wall: Duration::ZERO };
    result.end = match follow_run(daemon, request, &mut result.view).await {
        Ok(end) => end,
        Err(_) if request.stop.is_cancelled() => RunEnd::Interrupted,
        Err(fault) => RunEnd::Failed(describe_failure(daemon, &fault).await),
    };
    result.wall = began.elapsed();
    if matches!(result.end, RunEnd::OutOfTime(_) | RunEnd::Interrupted) {
        cancel_and_wait(daemon, request, &mut result.view).await;
    }
    if result.view.is_some() {
        let listed = IterationApiClient::list(daemon.connection().client(), run_params(request));
        result.iterations = timeout(DEATH_LIMIT, listed).await.ok().and_then(Result::ok).unwrap_or_default();
    }
    result
}

async fn follow_run(
    daemon: &mut SandboxDaemon,
    request: &RunRequest<'_>,
    last_view: &mut Option<RunView>,
) -> Result<RunEnd, EvalError> {
    let mut events = subscribe_events(daemon).await?;
    start_run(request).await?;
    let deadline = Instant::now() + request.limit;
    let mut state_changed = false;
    loop {
        if state_changed {
            *last_view = daemon.connection().client().status(run_params(request)).await?.run;
            if let Some(end) = last_view.as_ref().and_then(find_run_end) {
                return Ok(end);
            }
        }
        state_changed = tokio::select! {
            biased;
            () = request.stop.cancelled() => return Ok(RunEnd::Interrupted),
            why = daemon.wait_for_death() => return Ok(RunEnd::Failed(why)),
            () = tokio::time::sleep_until(deadline) => return Ok(RunEnd::OutOfTime(request.limit.as_secs())),
            event = events.next() => if let Some(event) = event {
                report_event(event, request.progress)
            } else {
                events = subscribe_events(daemon).await?;
                true
            },
            () = tokio::time::sleep(POLL_INTERVAL) => true,
        };
    }
}

/// Reports an event and returns whether the status may have changed. A newer daemon may send kinds that cannot be
/// parsed.
fn report_event(event: Result<Event, serde_json::Error>, progress: &RunProgress) -> bool {
    let Ok(event) = event else { return false };
    progress.report_event(&event);
    matches!(event.kind, EventKind::RunState { .. } | EventKind::Lagged | EventKind::Stopping)
}

async fn subscribe_events(daemon: &SandboxDaemon) -> Result<Stream<Event>, EvalError> {
    let subscription = Subscription { path: None, since: None, output: false };
    Ok(daemon.connection().client().subscribe_events(subscription).await?)
}

async fn start_run(request: &RunRequest<'_>) -> Result<(), EvalError> {
    let goal = request.goal.display().to_string();
    let mut words = vec!["--no-spawn", "start", "--yes", "--id", request.run, "--goal", &goal];
    if request.keep_tree {
        words.push("--keep-tree");
    }
    request.repository.client(&words).await.map(drop)
}

/// Returns how a run has ended, if it does not continue on its own.
fn find_run_end(run: &RunView) -> Option<RunEnd> {
    let state = run.summary.state;
    let waits_for_somebody = state == RunStatus::Waiting && run.wait_until.is_none() && run.phase.is_none();
    let is_over = state.is_terminal() || matches!(state, RunStatus::Held | RunStatus::Paused) || waits_for_somebody;
    let reason = run.summary.reason.as_ref().map(|reason| reason.message.clone());
    is_over.then_some(RunEnd::Run(state, reason))
}

/// Cancels the run and waits until no part of it is active.
async fn cancel_and_wait(daemon: &mut SandboxDaemon, request: &RunRequest<'_>, last_view: &mut Option<RunView>) {
    let cancelled = async {
        let client = daemon.connection().client();
        let mut events = subscribe_events(daemon).await?;
        client.cancel(run_params(request)).await?;
        loop {
            let run = client.status(run_params(request)).await?.run;
            let is_over = run.as_ref().is_none_or(|run| run.summary.state.is_terminal());
            *last_view = run.or(last_view.take());
            if is_over {
                return Ok::<(), EvalError>(());
            }
            if events.next().await.is_none() {
                return Ok(());
            }
        }
    };
    // A run that does not settle is ended with the daemon.
    let _ = timeout(CANCEL_LIMIT, cancelled).await;
}

/// Explains why the daemon stopped answering: it has died or is about to.
async fn describe_failure(daemon: &mut SandboxDaemon, fault: &EvalError) -> String {
    match timeout(DEATH_LIMIT, daemon.wait_for_death()).await {
        Ok(death) => death,
        Err(_) => fault.to_string(),
    }
}

fn run_params(request: &RunRequest<'_>) -> AtRun {
    AtRun { path: WirePath::from(request.repository.folder()), run: Some(request.run.to_owned()) }
}
