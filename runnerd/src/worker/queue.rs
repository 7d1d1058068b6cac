//! The queue of a repository: its durable record, which run is next, and what clients see.
//!
//! It has one owner. Requests of clients are handled in `requests`; no effects, and no rules of iterations.

use std::sync::{Arc, PoisonError};

use jiff::Timestamp;
use protocol::error::ErrorData;
use protocol::event::EventKind;
use protocol::hook::HookEvent;
use protocol::id_lookup::find_by_id;
use protocol::path::WirePath;
use protocol::reply::StepReply;
use protocol::view::{
    ChangeView, IterationView, PendingControl, PhaseView, RepoView, RunSummary, RunView, StatusView, StopReason,
};
use protocol::words::{Containment, PhaseName, RunStatus};
use runner_core::files::change::ChangeRequest;
use runner_core::run::{self, QueueInput, QueueTurn, RunAction, RunRecord, RunTransition, StopRequest};
use runner_core::run::{blocker::Blocker, wait::WaitPeriod};
use runner_os::{clock, error_chain::display_chain};
use runner_process::{Inhibitor, SleepInhibition};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::events::{EventStream, EventSubject};
use crate::log_redactor::LogRedactor;
use crate::store::{ChangeQueue, RepoFile, RepoStore, StoreError};
use crate::upstream::Upstream;
use crate::worker::caches::LastLoad;
use crate::worker::goal_files::GoalFiles;
use crate::worker::hook_queue;
use crate::worker::publication::PublishState;
use crate::worker::queue_errors::{held_error_data, no_run_error, run_not_found, store_error_data};
use crate::worker::slots::{RunSlot, RunSlots};
use crate::worker::view::snapshot::{self, RunSnapshot, outage_views, repo_view, run_summary};
use crate::worker::view::totals::UsageTotals;
use crate::worker::{KnownRuns, WorkerMessage};

/// The queue of one repository.
#[derive(Debug)]
pub(crate) struct RepoQueue {
    /// Reads and writes the repository's durable state.
    pub store: RepoStore,
    /// The content of `repo.json`, as last saved.
    pub file: RepoFile,
    /// Requests of people that are not committed yet.
    pub changes: ChangeQueue,
    /// Why nothing may be done with this repository.
    pub held: Option<StopReason>,
    /// Whether the record on disk could not be read, and must not be written.
    pub is_frozen: bool,
    /// The view of the current run, apart from its record.
    pub view: Option<RunView>,
    /// What the nodes of the current run have consumed.
    totals: UsageTotals,
    /// The cached repository and committed state.
    pub(crate) last_load: LastLoad,
    /// The files that goals were read from.
    pub(crate) goal_files: GoalFiles,
    /// What blocks the live run for now.
    pub(crate) blocker: Option<Blocker>,
    /// How far an isolated run has been published to its source.
    pub(crate) publish_state: PublishState,
    /// The live run's slot among the runs driven at once.
    pub(crate) slot: Option<RunSlot>,
    /// When a held repository is checked again without a request.
    pub(crate) recheck_wait: Option<WaitPeriod>,
    /// Time budget of an iteration of the current run, in milliseconds.
    pub(crate) budget_ms: u64,
    /// Where programs started by this worker report to.
    pub(crate) own_sender: mpsc::WeakSender<WorkerMessage>,
    pub(crate) mailbox: mpsc::Receiver<WorkerMessage>,
    status: watch::Sender<Arc<StatusView>>,
    known_runs: KnownRuns,
    events: EventStream,
    redactor: LogRedactor,
    pub(crate) shutdown: CancellationToken,
    pub(crate) drain: CancellationToken,
    /// How strictly processes are contained.
    pub(crate) containment: Containment,
    inhibitor: Inhibitor,
    /// Keeps the machine awake while a run makes progress on its own.
    sleep_inhibition: Option<SleepInhibition>,
    pub(crate) slots: RunSlots,
    /// Where the single run of a job is published.
    pub(crate) upstream: Option<Arc<Upstream>>,
    /// Number of the iteration that a step has run.
    pub stepped_iter: Option<u32>,
    /// The run whose iteration an earlier daemon process left unfinished; its journal is replayed at its next turn.
    pub unfinished_run: Option<String>,
    pub(crate) live_run: Option<String>,
    /// The request for which a held repository is to be checked again.
    pub(crate) recheck_request: Option<WorkerMessage>,
    /// Whether all senders of requests are gone.
    pub(crate) is_mailbox_closed: bool,
    /// Whether the live run knows that the daemon is shutting down.
    pub(crate) is_shutdown_announced: bool,
    pub(crate) step_waiters: Vec<(String, oneshot::Sender<Result<StepReply, ErrorData>>)>,
}

/// The connections of a queue.
#[derive(Debug)]
pub(crate) struct QueueIo {
    /// Where its own programs report to.
    pub own_sender: mpsc::WeakSender<WorkerMessage>,
    /// Where requests come in.
    pub mailbox: mpsc::Receiver<WorkerMessage>,
    /// Where the view goes out.
    pub status: watch::Sender<Arc<StatusView>>,
    /// Where the list of runs goes out.
    pub known_runs: KnownRuns,
    /// The daemon's stream of events.
    pub events: EventStream,
    /// Secrets that must not be shown.
    pub redactor: LogRedactor,
    /// Cancelled when everything must end now.
    pub shutdown: CancellationToken,
    /// Cancelled when nothing new may start.
    pub drain: CancellationToken,
    /// How strictly processes are contained.
    pub containment: Containment,
    /// Keeps the machine awake.
    pub inhibitor: Inhibitor,
    /// Source of slots among the runs driven at once.
    pub slots: RunSlots,
    /// Where the single run of a job is published.
    pub upstream: Option<Arc<Upstream>>,
}

impl RepoQueue {
    /// Sets up the queue of a repository.
    pub(crate) fn new(store: RepoStore, file: RepoFile, wires: QueueIo) -> Self {
        let QueueIo {
            own_sender,
            mailbox,
            status,
            known_runs,
            events,
            redactor,
            shutdown,
            drain,
            containment,
            inhibitor,
            slots,
            upstream,
        } = wires;
        Self {
            goal_files: GoalFiles::of_runs(&file.runs),
            store,
            file,
            changes: ChangeQueue::default(),
            held: None,
            is_frozen: false,
            view: None,
            totals: UsageTotals::default(),
            last_load: LastLoad::default(),
            blocker: None,
            publish_state: PublishState::default(),
            slot: None,
            recheck_wait: None,
            budget_ms: 0,
            own_sender,
            mailbox,
            status,
            known_runs,
            events,
            redactor,
            shutdown,
            drain,
            containment,
            inhibitor,
            sleep_inhibition: None,
            slots,
            upstream,
            stepped_iter: None,
            unfinished_run: None,
            live_run: None,
            recheck_request: None,
            is_mailbox_closed: false,
            is_shutdown_announced: false,
            step_waiters: Vec::new(),
        }
    }

    /// Decides what the queue does next; `None` when the daemon shuts down.
    pub(crate) fn next_turn(&self, now: Timestamp) -> Option<QueueTurn> {
        if self.is_draining() || self.is_mailbox_closed {
            return None;
        }
        if self.held.is_some() {
            return Some(QueueTurn::Idle(self.recheck_wait));
        }
        let steps: Vec<String> = self.step_waiters.iter().map(|(run, _)| run.clone()).collect();
        let input = QueueInput { steps: &steps, unfinished: self.unfinished_run.as_deref() };
        Some(match (run::choose_turn(&self.file.runs, input, now), self.publish_state.retry) {
            (QueueTurn::Idle(wait), Some(retry)) => {
                QueueTurn::Idle(Some(wait.filter(|wait| wait.until < retry.until).unwrap_or(retry)))
            }
            (turn, _) => turn,
        })
    }

    /// Whether nothing new may start.
    pub(crate) fn is_draining(&self) -> bool {
        self.shutdown.is_cancelled() || self.drain.is_cancelled()
    }

    /// Whether everything must end now.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutdown.is_cancelled()
    }

    /// Whether a person has cancelled a run that has not ended yet.
    pub(crate) fn is_cancelled(&self, id: &str) -> bool {
        self.find_run(id).is_some_and(|run| run.stop_request == Some(StopRequest::Cancel))
    }

    /// Whether no session runs, and none is left to be inspected.
    pub(crate) fn is_idle(&self) -> bool {
        self.live_run.is_none() && self.unfinished_run.is_none()
    }

    /// Returns the run with this id.
    pub(crate) fn find_run(&self, id: &str) -> Option<&RunRecord> {
        self.file.runs.iter().find(|run| run.id == id)
    }

    /// Stores and publishes a transition of a run; returns the actions that remain to be done.
    pub(crate) fn store_step(&mut self, step: RunTransition) -> Result<Vec<RunAction>, StoreError> {
        self.store_step_at(None, step)
    }

    /// The same for a run that begins in the work tree `path`.
    pub(crate) fn store_step_at(
        &mut self,
        path: Option<WirePath>,
        step: RunTransition,
    ) -> Result<Vec<RunAction>, StoreError> {
        let RunTransition { record, effects } = step;
        let before = self.find_run(&record.id).cloned();
        if before.as_ref() != Some(&record) || effects.contains(&RunAction::MoveToBack) {
            let mut file = self.file.clone();
            file.path = path.unwrap_or(file.path);
            run::put_record(&mut file.runs, record.clone(), effects.contains(&RunAction::MoveToBack));
            self.save_file(file)?;
        }
        let state = record.state.status();
        if before.is_none_or(|before| before.state.status() != state) || effects.contains(&RunAction::NotifyState) {
            let until = record.state.wait().map(|wait| wait.until);
            self.publish_event(&record.id, None, EventKind::RunState { state, reason: record.reason, until });
        }
        Ok(effects)
    }

    pub(crate) fn save_file(&mut self, mut file: RepoFile) -> Result<(), StoreError> {
        if self.is_frozen {
            return Err(StoreError::ReadOnly { path: self.store.folder() });
        }
        hook_queue::enqueue_hooks(&self.file, &mut file);
        tokio::task::block_in_place(|| self.store.save_repo_file(&mut file))?;
        self.file = file;
        self.goal_files.set(&self.file.runs);
        self.publish_view();
        Ok(())
    }

    /// Sets the run that is being driven, if any.
    pub(crate) fn set_live_run(&mut self, run: Option<&str>) {
        self.live_run = run.map(str::to_owned);
        self.is_shutdown_announced = false;
        self.blocker = None;
        self.publish_view();
    }

    /// Publishes an event about a run of this repository, and appends it to the run's own list.
    pub(crate) fn publish_event(&self, run: &str, iter: Option<u32>, kind: EventKind) {
        let scope = EventSubject { repo: Some(self.file.id.clone()), run: Some(run.to_owned()), iter };
        let event = self.events.publish(scope, kind);
        if let Some(record) = self.find_run(run) {
            crate::worker::record::append_event(record.path.as_path(), run, &event, &self.redactor);
        }
    }

    /// Shows a step before the first session: the guard runs on the base, or a workspace is set up.
    pub(crate) fn show_preparation(&mut self, name: PhaseName) {
        let now = clock::now();
        let budget_ms = self.budget_ms;
        let phase = PhaseView {
            name,
            since: now,
            iteration_since: now,
            budget_ms,
            agent: None,
            obstacle: None,
            baseline: name == PhaseName::Guard,
        };
        if let Some(view) = &mut self.view {
            view.phase = Some(phase);
        }
        self.publish_view();
    }

    /// Returns the runs, and the digests of confirmed commands.
    pub(crate) fn list_runs(&self) -> (Vec<RunSummary>, Vec<String>) {
        let runs = self.file.runs.iter().map(|run| self.run_summary(run)).collect();
        (runs, self.file.confirmed.clone())
    }

    /// Publishes the view.
    pub(crate) fn publish_view(&mut self) {
        self.refresh_current_view();
        self.update_inhibitor();
        let status = StatusView { repo: self.repo_view(), run: self.run_view(), isolated: Vec::new(), on_run: None };
        self.status.send_replace(Arc::new(status));
        *self.known_runs.lock().unwrap_or_else(PoisonError::into_inner) = self.list_runs();
    }

    /// Keeps the machine awake while a run is active or will be shortly.
    pub(crate) fn update_inhibitor(&mut self) {
        let now = clock::now();
        let is_active = self.file.runs.iter().any(|run| run.state.is_active(now));
        if is_active {
            self.sleep_inhibition.get_or_insert_with(|| self.inhibitor.hold());
        } else {
            self.sleep_inhibition = None;
        }
    }

    /// Rebuilds the view if it shows another run: a run is visible from the moment it is queued.
    fn refresh_current_view(&mut self) {
        let is_other_run = |run: &&RunRecord| self.view.as_ref().is_none_or(|view| view.summary.id != run.id);
        let Some(current) = self.current_run().filter(is_other_run).cloned() else { return };
        let snapshot = self.snapshot_run(&current);
        self.budget_ms = snapshot.budget_ms;
        self.view = Some(snapshot.view);
    }

    /// Builds the view of a run from its committed state.
    pub(crate) fn snapshot_run(&mut self, run: &RunRecord) -> RunSnapshot {
        let blank = snapshot::blank_view(run, self.containment);
        let snapshot = tokio::task::block_in_place(|| {
            snapshot::snapshot_run(&self.store, run, &blank, &mut self.totals, &self.last_load)
        });
        if self.live_run.is_none() {
            self.last_load.clear();
        }
        snapshot
    }

    pub(crate) fn run_view(&self) -> Option<RunView> {
        let current = self.current_run()?;
        let mut view = self.view.clone().filter(|view| view.summary.id == current.id)?;
        view.summary = self.run_summary(current);
        // The record knows the end before the view is rebuilt.
        let is_active = matches!(view.summary.state, RunStatus::Running | RunStatus::Waiting);
        view.phase = view.phase.filter(|_| is_active);
        if let Some(phase) = &mut view.phase {
            phase.obstacle = self.blocker.as_ref().map(|obstacle| obstacle.what.clone());
        }
        view.wait_until = current.state.wait().map(|wait| wait.until);
        view.outages = outage_views(current);
        view.changes = self.pending_changes(&current.id);
        view.pending = current.stop_request.and_then(|request| match request {
            StopRequest::Pause => Some(PendingControl::Pause),
            StopRequest::Cancel => Some(PendingControl::Cancel),
            StopRequest::Step => None,
        });
        Some(view)
    }

    /// Returns a person's requests to change a run's files that are not committed yet.
    pub(crate) fn pending_changes(&self, run: &str) -> Vec<ChangeView> {
        let queued = self.changes.queue.iter().filter(|waiting| waiting.run == run);
        let view = |change: &ChangeRequest| {
            let (id, text) = change.describe();
            ChangeView { command: change.command().to_owned(), id: id.map(str::to_owned), text }
        };
        queued.map(|waiting| view(&waiting.change)).collect()
    }

    /// Returns the summary of a run as currently shown: a blocked run counts as waiting.
    pub(crate) fn run_summary(&self, run: &RunRecord) -> RunSummary {
        let obstacle = self.blocker.as_ref().filter(|_| self.live_run.as_ref() == Some(&run.id));
        let (state, reason) = run.shown_status(obstacle);
        let reason = reason.or_else(|| run::queue_reason(&self.file.runs, run));
        let is_only = self.file.runs.iter().all(|other| other.id == run.id || other.state.is_over());
        let reason = if is_only { reason } else { reason.map(|reason| reason.about_run(&run.id)) };
        let is_published = self.file.source.as_ref().is_some_and(|source| source.run == run.id);
        let published = self.publish_state.view().filter(|_| is_published);
        RunSummary { state, reason, published, ..run_summary(run) }
    }

    /// Returns the repository as currently shown.
    pub(crate) fn repo_view(&self) -> RepoView {
        let queue = self.file.runs.iter().filter(|run| !run.state.is_over());
        RepoView { queue: queue.map(|run| self.run_summary(run)).collect(), ..repo_view(&self.file, self.held.clone()) }
    }

    /// Shows what blocks the live run.
    pub(crate) fn show_blocker(&mut self, run: &str, iter: Option<u32>, blocker: &Blocker) {
        let what = &blocker.what;
        tracing::warn!(run, what, "obstructed");
        self.blocker = Some(blocker.clone());
        self.publish_view();
        self.publish_event(run, iter, EventKind::Obstacle { message: what.clone() });
    }

    /// Returns the run that is being driven, else the one at the head of the queue, else the last one that ended.
    pub(crate) fn current_run(&self) -> Option<&RunRecord> {
        let active = self.live_run.as_ref().and_then(|live| self.find_run(live));
        active.or_else(|| run::current_run(&self.file.runs))
    }

    /// Returns the view of one run.
    pub(crate) fn describe_run(&mut self, run: &str) -> Result<StatusView, ErrorData> {
        let repo = self.repo_view();
        let record = self.resolve_run(Some(run))?.clone();
        let current = self.run_view().filter(|view| view.summary.id == record.id);
        let view = current.unwrap_or_else(|| RunView {
            summary: self.run_summary(&record),
            changes: self.pending_changes(&record.id),
            ..self.snapshot_run(&record).view
        });
        Ok(StatusView { repo, run: Some(view), isolated: Vec::new(), on_run: None })
    }

    /// Records that this user has confirmed commands, and where a work tree is that was moved.
    pub(crate) fn confirm_commands(
        &mut self,
        digest: String,
        moved: Option<(WirePath, WirePath)>,
    ) -> Result<(), ErrorData> {
        let mut file = self.file.clone();
        if !file.confirmed.contains(&digest) {
            file.confirmed.push(digest);
        }
        if let Some((from, to)) = moved {
            let recorded = file.runs.iter_mut().map(|run| &mut run.path).chain([&mut file.path]);
            recorded.filter(|path| **path == from).for_each(|path| path.clone_from(&to));
        }
        if file == self.file {
            return Ok(());
        }
        self.save_file(file).map_err(|error| store_error_data(&error))
    }

    /// Removes the event of a hook that has ended, and reports a failure.
    pub(crate) fn finish_hook(&mut self, event: &HookEvent, failure: Option<String>) {
        if let Some(failure) = failure {
            let message = format!("{} of run {}: {failure}", event.hook, event.run);
            tracing::warn!(repo = self.file.id, message, "a hook failed");
            self.publish_event(&event.run, None, EventKind::Warning { message });
        }
        let mut file = self.file.clone();
        file.hooks.queue.retain(|waiting| waiting.event != *event);
        if let Err(error) = self.save_file(file) {
            tracing::warn!(repo = self.file.id, error = display_chain(&error), "failed to remove the event of a hook");
        }
    }

    /// Answers the callers waiting for a step of this run.
    pub(crate) fn answer_steps(&mut self, id: &str, iteration: Option<&IterationView>) {
        let run = self.find_run(id).map(|run| self.run_summary(run)).ok_or_else(|| run_not_found(id));
        let (waiters, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.step_waiters).into_iter().partition(|(step, _)| step == id);
        self.step_waiters = others;
        for (_, reply) in waiters {
            // A caller that has stopped waiting needs no answer.
            let _ = reply.send(run.clone().map(|run| StepReply { run, iteration: iteration.cloned() }));
        }
    }

    /// Answers all callers waiting for a step if the repository is held.
    pub(crate) fn refuse_steps_if_held(&mut self) {
        let Some(held) = &self.held else { return };
        for (_, reply) in self.step_waiters.drain(..) {
            // A caller that has stopped waiting needs no answer.
            let _ = reply.send(Err(held_error_data(held)));
        }
    }

    /// Finds a run by id, by the one under which it was queued, or by a unique prefix; `None` means the current one.
    pub(crate) fn resolve_run(&self, selector: Option<&str>) -> Result<&RunRecord, ErrorData> {
        let Some(selector) = selector else {
            return self.current_run().ok_or_else(|| no_run_error(self.file.path.as_path()));
        };
        let was_queued_so = |run: &&RunRecord| run.queued_as.as_deref() == Some(selector);
        if let Some(run) = self.find_run(selector).or_else(|| self.file.runs.iter().rfind(was_queued_so)) {
            return Ok(run);
        }
        find_by_id(&self.file.runs, |run| &run.id, selector)?.ok_or_else(|| run_not_found(selector))
    }
}
