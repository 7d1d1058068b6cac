//! The worker of a repository: stores, shows and waits.
//!
//! The order of its work is in `main_loop`.

use std::sync::Arc;
use std::time::Duration;

use protocol::view::StopReason;
use runner_core::run::blocker::{Blocker, Transience};
use runner_core::run::{self, IllegalRunEvent, RecordState, RunAction, RunEvent, RunRecord};
use runner_os::clock;
use runner_os::error_chain::display_chain;
use runner_os::retryable::describe_blocker;
use runner_process::{Inhibitor, Launcher};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::mailbox;
use crate::events::EventStream;
use crate::log_redactor::LogRedactor;
use crate::repo::layout::Layout;
use crate::store::StoreError;
use crate::upstream::Upstream;
use crate::worker::caches::LastScan;
use crate::worker::context::RunContext;
use crate::worker::iteration::drive::retry_pause;
use crate::worker::journal::{JournalContents, JournalFile};
use crate::worker::queue::RepoQueue;
use crate::worker::slots::RunSlots;

/// Dependencies that all workers share.
#[derive(Debug, Clone)]
pub struct WorkerDeps {
    /// Starts processes.
    pub launcher: Launcher,
    /// The daemon's stream of events.
    pub events: EventStream,
    /// Redacts the secrets that must not be in the daemon's log.
    pub redactor: LogRedactor,
    /// Keeps the machine awake.
    pub inhibitor: Inhibitor,
    /// Source of slots among the runs driven at once.
    pub slots: RunSlots,
    /// Cancelled when everything must end now.
    pub shutdown: CancellationToken,
    /// Cancelled when nothing new may start.
    pub drain: CancellationToken,
    /// Where the single run of a job is published.
    pub upstream: Option<Arc<Upstream>>,
}

/// The worker of one repository: its queue, and its dependencies.
pub(crate) struct RepoWorker {
    /// The queue of its repository.
    pub(crate) queue: RepoQueue,
    /// Dependencies for driving runs.
    pub(crate) deps: WorkerDeps,
    /// The journal of an earlier daemon process, until its run has its turn.
    pub(crate) unfinished_journal: Option<JournalContents>,
    /// Number of consecutive turns that ended with an obstacle.
    pub(crate) failed_turns: u32,
    /// The bug that ended the previous worker.
    pub(crate) bug: Option<StopReason>,
    /// The last hook that was started; the worker exits after it.
    pub(crate) hook: Option<JoinHandle<()>>,
}

/// Whether a run continues after an iteration.
pub(crate) enum RunFlow {
    /// The next iteration follows at once.
    Continue,
    /// The run waits, or is over.
    Pause,
}

impl RepoWorker {
    pub(crate) fn run_context(&self, run: &RunRecord) -> Result<RunContext, StoreError> {
        let upstream = self.deps.upstream.as_deref();
        let env =
            upstream.and_then(Upstream::env).map_or_else(|| self.queue.store.load_env(), |env| Ok(env.clone()))?;
        let secrets = RunContext::find_secrets(&env);
        self.queue.last_load.forget_objects();
        self.deps.redactor.set(self.queue.store.id(), secrets.clone());
        Ok(RunContext {
            secrets,
            run: run.id.clone(),
            layout: Layout::new(run.path.as_path()),
            store: self.queue.store.clone(),
            launcher: self.deps.launcher.clone(),
            events: self.deps.events.clone(),
            env,
            last_scan: LastScan::default(),
            last_load: self.queue.last_load.clone(),
            goal_files: self.queue.goal_files.clone(),
            uncommitted: run.uncommitted.clone(),
            driver: upstream.map(|upstream| upstream.driver().clone()),
        })
    }

    /// Rebuilds the view from the committed state.
    pub(crate) fn refresh_view(&mut self) {
        let current = self.queue.current_run().cloned();
        let snapshot = current.map(|run| self.queue.snapshot_run(&run));
        self.queue.budget_ms = snapshot.as_ref().map_or(0, |seen| seen.budget_ms);
        self.queue.view = snapshot.map(|seen| seen.view);
        self.queue.publish_view();
    }

    /// Whether a run is being driven.
    pub(crate) fn is_running(&self, id: &str) -> bool {
        self.queue.find_run(id).is_some_and(|run| run.state == RecordState::Running)
    }

    /// Lets a requested stop take effect before new work starts; returns whether the run stopped.
    pub(crate) async fn apply_pending_stop(&mut self, id: &str) -> Result<bool, IllegalRunEvent> {
        self.apply_event(id, RunEvent::BetweenIterations).await?;
        Ok(!self.is_running(id))
    }

    /// Stores the effect of an event on a run, however long the disk refuses: continuing without it would lose a
    /// decision.
    ///
    /// Requests are answered meanwhile, and their effects are kept.
    pub(crate) async fn apply_event(&mut self, id: &str, event: RunEvent) -> Result<Vec<RunAction>, IllegalRunEvent> {
        for tries in 1.. {
            let Some(run) = self.queue.find_run(id) else { break };
            let step = run::decide(run, event.clone(), clock::now())?;
            match self.queue.store_step(step) {
                Ok(effects) if tries == 1 => return Ok(effects),
                Ok(effects) => {
                    self.queue.blocker = None;
                    self.queue.publish_view();
                    return Ok(effects);
                }
                Err(_) if self.queue.is_shutting_down() => break,
                Err(error) => {
                    let transient = Blocker { nature: Transience::Passing, ..describe_blocker(&error) };
                    // The end of a cancelled run is a decision too.
                    self.wait_before_retry(id, &transient, retry_pause(Transience::Passing, false, tries)).await;
                }
            }
        }
        Ok(Vec::new())
    }

    /// Shows what blocks and waits, at most until a stop is requested; false to give up.
    pub(crate) async fn wait_for_blocker(&mut self, id: &str, blocker: &Blocker, tries: u32) -> bool {
        let is_cancelled = self.queue.is_cancelled(id);
        self.wait_before_retry(id, blocker, retry_pause(blocker.nature, is_cancelled, tries)).await
    }

    async fn wait_before_retry(&mut self, id: &str, blocker: &Blocker, pause: Option<Duration>) -> bool {
        let Some(pause) = pause else { return false };
        self.queue.show_blocker(id, None, blocker);
        // The stop has been recorded with the run.
        let _ = mailbox::wait_for_retry(&mut self.queue, pause).await;
        true
    }

    /// Returns the last ended run before this one in the list, whose branch may be its base.
    pub(crate) fn previous_run(&self, id: &str) -> Option<String> {
        let index = self.queue.file.runs.iter().position(|run| run.id == id)?;
        let earlier = &self.queue.file.runs[..index];
        earlier.iter().rev().find(|run| run.state.is_over()).map(|run| run.id.clone())
    }

    /// Removes the journal of an iteration whose consequences have all been stored.
    pub(crate) fn remove_journal(&self) {
        if let Err(error) = JournalFile::for_store(&self.queue.store).remove() {
            tracing::warn!(repo = self.queue.file.id, error = display_chain(&error), "failed to remove the journal");
        }
    }

    /// Removes what the effects of a settled iteration have saved.
    pub(crate) fn remove_live_files(&self) {
        let Ok(files) = std::fs::read_dir(self.queue.store.live_dir()) else { return };
        for file in files.flatten().filter(|file| file.file_name() != "shim.lock") {
            // A remaining file is removed when the same number is used again.
            let _ = std::fs::remove_file(file.path());
        }
    }
}
