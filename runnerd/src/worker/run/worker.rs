//! The worker of a repository: what is written down of its runs, shown, and waited for.
//!
//! What it does one after the other is in `turns`.

use std::sync::Arc;
use std::time::Duration;

use protocol::view::StopReason;
use runner_core::obstacle::{Nature, Obstruction};
use runner_core::run::{self, Effect, Event, IllegalEvent, RunRecord, State};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::mailbox;
use crate::causes::in_one_line;
use crate::clock;
use crate::events::Events;
use crate::hidden::Hidden;
use crate::obstruction::obstruction;
use crate::process::{Inhibitor, Launcher};
use crate::repo::layout::Layout;
use crate::store::StoreError;
use crate::upstream::Upstream;
use crate::worker::caches::LastScan;
use crate::worker::context::RunContext;
use crate::worker::iteration::drive::pause_before;
use crate::worker::journal::{Place, Recorded};
use crate::worker::queue::RepoQueue;
use crate::worker::slots::Slots;

/// What all workers share.
#[derive(Debug, Clone)]
pub struct Means {
    /// Starts processes.
    pub launcher: Launcher,
    /// The daemon's stream of events.
    pub events: Events,
    /// What takes the secrets that must not be in the daemon's log.
    pub hidden: Hidden,
    /// Keeps the machine awake.
    pub inhibitor: Inhibitor,
    /// Where runs get their places among those that are driven at once.
    pub slots: Slots,
    /// Everything is to end now.
    pub shutdown: CancellationToken,
    /// Nothing new is to begin.
    pub drain: CancellationToken,
    /// Where the one run of a job is published.
    pub upstream: Option<Arc<Upstream>>,
}

/// The worker of one repository: its queue, and what it drives the runs with.
pub(crate) struct Worker {
    /// The queue of its repository.
    pub(crate) queue: RepoQueue,
    /// What it drives runs with.
    pub(crate) means: Means,
    /// The journal of a previous life, until its run has its turn.
    pub(crate) recorded: Option<Recorded>,
    /// Obstacles in a row that ended a turn.
    pub(crate) tries: u32,
    /// The bug that ended the worker before this one.
    pub(crate) bug: Option<StopReason>,
    /// The hook that was started last; the worker ends after it.
    pub(crate) hook: Option<JoinHandle<()>>,
}

/// Whether a run goes on after an iteration.
pub(crate) enum Then {
    /// It does.
    GoOn,
    /// It waits, or is over.
    Rest,
}

impl Worker {
    pub(crate) fn context(&self, run: &RunRecord) -> Result<RunContext, StoreError> {
        let upstream = self.means.upstream.as_deref();
        let env =
            upstream.and_then(Upstream::env).map_or_else(|| self.queue.store.load_env(), |env| Ok(env.clone()))?;
        let secrets = RunContext::secrets_in(&env);
        self.queue.last_load.forget_objects();
        self.means.hidden.set(self.queue.store.id(), secrets.clone());
        Ok(RunContext {
            secrets,
            run: run.id.clone(),
            layout: Layout::new(run.path.as_path()),
            store: self.queue.store.clone(),
            launcher: self.means.launcher.clone(),
            events: self.means.events.clone(),
            env,
            last_scan: LastScan::default(),
            last_load: self.queue.last_load.clone(),
            uncommitted: run.uncommitted.clone(),
            driver: upstream.map(|upstream| upstream.driver().clone()),
        })
    }

    /// Makes the view anew from what is committed.
    pub(crate) fn refresh(&mut self) {
        let current = self.queue.current().cloned();
        let seen = current.map(|run| self.queue.look_at(&run));
        self.queue.budget_ms = seen.as_ref().map_or(0, |seen| seen.budget_ms);
        self.queue.view = seen.map(|seen| seen.view);
        self.queue.show();
    }

    /// Whether a run is being driven.
    pub(crate) fn is_running(&self, id: &str) -> bool {
        self.queue.run(id).is_some_and(|run| run.state == State::Running)
    }

    /// Lets a stop that was asked for take effect before anything is begun; whether one did.
    pub(crate) async fn stopped_before_work(&mut self, id: &str) -> Result<bool, IllegalEvent> {
        self.happens(id, Event::Between).await?;
        Ok(!self.is_running(id))
    }

    /// Writes down what an event makes of a run, however long the disk refuses: going on without it would forget a decision.
    ///
    /// Requests are answered meanwhile, and what they change stays changed.
    pub(crate) async fn happens(&mut self, id: &str, event: Event) -> Result<Vec<Effect>, IllegalEvent> {
        for tries in 1.. {
            let Some(run) = self.queue.run(id) else { break };
            let step = run::decide(run, event.clone(), clock::now())?;
            match self.queue.come_to(step) {
                Ok(effects) if tries == 1 => return Ok(effects),
                Ok(effects) => {
                    self.queue.obstacle = None;
                    self.queue.show();
                    return Ok(effects);
                }
                Err(_) if self.queue.is_shutting_down() => break,
                Err(error) => {
                    let passing = Obstruction { nature: Nature::Passing, ..obstruction(&error) };
                    // The end of a cancelled run is a decision too.
                    self.wait_out(id, &passing, pause_before((Nature::Passing, false), tries)).await;
                }
            }
        }
        Ok(Vec::new())
    }

    /// Shows what is in the way and waits, no longer than until somebody wants to stop; false if it is given up.
    pub(crate) async fn wait_for_obstacle(&mut self, id: &str, obstruction: &Obstruction, tries: u32) -> bool {
        let is_cancelled = self.queue.is_cancelled(id);
        self.wait_out(id, obstruction, pause_before((obstruction.nature, is_cancelled), tries)).await
    }

    async fn wait_out(&mut self, id: &str, obstruction: &Obstruction, pause: Option<Duration>) -> bool {
        let Some(pause) = pause else { return false };
        self.queue.obstructed(id, None, obstruction);
        // Who wants to stop has it written down.
        let _ = mailbox::wait_out(&mut self.queue, pause).await;
        true
    }

    /// Returns the run before this one in the list, whose end may be its base.
    pub(crate) fn previous(&self, id: &str) -> Option<String> {
        let at = self.queue.file.runs.iter().position(|run| run.id == id)?;
        let before = &self.queue.file.runs[..at];
        before.iter().rev().find(|run| run.state.is_over()).map(|run| run.id.clone())
    }

    /// Removes the journal of an iteration from which nothing is left to follow.
    pub(crate) fn close_journal(&self) {
        if let Err(error) = Place::of(&self.queue.store).remove() {
            tracing::warn!(repo = self.queue.file.id, error = in_one_line(&error), "the journal stays");
        }
    }

    /// Removes what the effects of a settled iteration have kept.
    pub(crate) fn sweep_live(&self) {
        let Ok(files) = std::fs::read_dir(self.queue.store.live()) else { return };
        for file in files.flatten().filter(|file| file.file_name() != "shim.lock") {
            // What stays is removed when the same number is used again.
            let _ = std::fs::remove_file(file.path());
        }
    }
}
