//! The queue of a repository: its durable record, whose turn it is, and what clients see.
//!
//! One owner. What clients ask is `requests`'; no effects, and no rules of iterations.

use std::sync::Arc;

use jiff::Timestamp;
use protocol::error::{ErrorData, ErrorKind};
use protocol::event::EventKind;
use protocol::hook::HookEvent;
use protocol::path::WirePath;
use protocol::reply::StepReply;
use protocol::view::{
    ChangeView, IterationView, PendingControl, PhaseView, RepoView, RunSummary, RunView, StatusView, StopReason,
};
use protocol::words::{Containment, PhaseName, RunStatus};
use runner_core::change::ChangeRequest;
use runner_core::obstacle::Blocker;
use runner_core::run::{self, StopRequest, RunAction, RunRecord, RunTransition, QueueTurn, QueueInput};
use runner_core::wait::WaitPeriod;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::causes::display_chain;
use crate::clock;
use crate::events::{EventSubject, EventStream};
use crate::hidden::LogRedactor;
use crate::process::{SleepInhibition, Inhibitor};
use crate::store::{ChangeQueue, RepoFile, RepoStore, StoreError};
use crate::upstream::Upstream;
use crate::worker::WorkerMessage;
use crate::worker::caches::LastLoad;
use crate::worker::hook_calls;
use crate::worker::publication::PublishState;
use crate::worker::slots::{RunSlot, RunSlots};
use crate::worker::view::snapshot::{self, RunSnapshot, outage_views, repo_view, run_summary};
use crate::worker::view::totals::UsageTotals;

/// The queue.
#[derive(Debug)]
pub(crate) struct RepoQueue {
    /// The durable record.
    pub store: RepoStore,
    /// Its content.
    pub file: RepoFile,
    /// What a person has asked and is not committed yet.
    pub changes: ChangeQueue,
    /// Why nothing may be done with this repository.
    pub held: Option<StopReason>,
    /// Whether the record on disk could not be read, and must not be written.
    pub is_frozen: bool,
    /// What is seen of the current run beside its record.
    pub view: Option<RunView>,
    /// What the nodes of that run have consumed.
    totals: UsageTotals,
    /// The committed state that was read last.
    pub(crate) last_load: LastLoad,
    /// What keeps the live run from going on for now.
    pub(crate) blocker: Option<Blocker>,
    /// What is known of the way of an isolated run into its source.
    pub(crate) publish_state: PublishState,
    /// The live run's place among the repositories that are driven at once.
    pub(crate) slot: Option<RunSlot>,
    /// When a held repository is looked at again, though nobody asks.
    pub(crate) recheck_wait: Option<WaitPeriod>,
    /// Budget of an iteration of the current run, in milliseconds.
    pub(crate) budget_ms: u64,
    /// Where what is started here reports to.
    pub(crate) own_sender: mpsc::WeakSender<WorkerMessage>,
    pub(crate) mailbox: mpsc::Receiver<WorkerMessage>,
    status: watch::Sender<Arc<StatusView>>,
    events: EventStream,
    redactor: LogRedactor,
    pub(crate) shutdown: CancellationToken,
    pub(crate) drain: CancellationToken,
    /// How tightly processes are held.
    pub(crate) containment: Containment,
    inhibitor: Inhibitor,
    /// Keeps the machine awake while a run goes on by itself.
    sleep_inhibition: Option<SleepInhibition>,
    pub(crate) slots: RunSlots,
    /// Where the one run of a job is published.
    pub(crate) upstream: Option<Arc<Upstream>>,
    /// Number of the iteration that a step has run.
    pub stepped_iter: Option<u32>,
    /// The run whose iteration a previous life has begun; its journal is gone through when it has its turn.
    pub unfinished_run: Option<String>,
    pub(crate) live_run: Option<String>,
    /// The request for which a held repository is to be looked at again.
    pub(crate) recheck_request: Option<WorkerMessage>,
    /// Whether nobody can ask anything any more.
    pub(crate) is_mailbox_closed: bool,
    /// Whether whoever drives was told that everything is to end.
    pub(crate) is_shutdown_announced: bool,
    pub(crate) step_waiters: Vec<(String, oneshot::Sender<Result<StepReply, ErrorData>>)>,
}

/// How a queue is connected.
#[derive(Debug)]
pub(crate) struct QueueIo {
    /// Where its own programs report to.
    pub own_sender: mpsc::WeakSender<WorkerMessage>,
    /// Where requests come in.
    pub mailbox: mpsc::Receiver<WorkerMessage>,
    /// Where the view goes out.
    pub status: watch::Sender<Arc<StatusView>>,
    /// The daemon's stream of events.
    pub events: EventStream,
    /// What must not be shown.
    pub redactor: LogRedactor,
    /// Everything is to end now.
    pub shutdown: CancellationToken,
    /// Nothing new is to begin.
    pub drain: CancellationToken,
    /// How tightly processes are held.
    pub containment: Containment,
    /// Keeps the machine awake.
    pub inhibitor: Inhibitor,
    /// Where its runs get their places among those that are driven at once.
    pub slots: RunSlots,
    /// Where the one run of a job is published.
    pub upstream: Option<Arc<Upstream>>,
}

impl RepoQueue {
    /// Sets up the queue of a repository.
    pub(crate) fn new(store: RepoStore, file: RepoFile, wires: QueueIo) -> Self {
        let QueueIo { own_sender, mailbox, status, events, redactor, shutdown, drain, containment, inhibitor, slots, upstream } =
            wires;
        Self {
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

    /// Decides what to do next with the queue; nothing when the daemon goes down.
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

    /// Returns whether nothing new is to begin.
    pub(crate) fn is_draining(&self) -> bool {
        self.shutdown.is_cancelled() || self.drain.is_cancelled()
    }

    /// Returns whether everything is to end now.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutdown.is_cancelled()
    }

    /// Returns whether a person has cancelled a run that has not ended yet.
    pub(crate) fn is_cancelled(&self, id: &str) -> bool {
        self.find_run(id).is_some_and(|run| run.asked == Some(StopRequest::Cancel))
    }

    /// Returns whether no session runs, and none has left something that was not looked at.
    pub(crate) fn is_idle(&self) -> bool {
        self.live_run.is_none() && self.unfinished_run.is_none()
    }

    /// Returns the run with this id.
    pub(crate) fn find_run(&self, id: &str) -> Option<&RunRecord> {
        self.file.runs.iter().find(|run| run.id == id)
    }

    /// Writes down what a run comes to, then shows it; what is to be done beside it comes back.
    pub(crate) fn store_step(&mut self, step: RunTransition) -> Result<Vec<RunAction>, StoreError> {
        self.store_step_at(None, step)
    }

    /// Does so for a run that begins in a work tree.
    pub(crate) fn store_step_at(&mut self, path: Option<WirePath>, step: RunTransition) -> Result<Vec<RunAction>, StoreError> {
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
        hook_calls::enqueue_hooks(&self.file, &mut file);
        tokio::task::block_in_place(|| self.store.save_repo_file(&mut file))?;
        self.file = file;
        self.publish_view();
        Ok(())
    }

    /// Marks the run that is being driven.
    pub(crate) fn set_live_run(&mut self, run: Option<&str>) {
        self.live_run = run.map(str::to_owned);
        self.is_shutdown_announced = false;
        self.blocker = None;
        self.publish_view();
    }

    /// Publishes an event about a run of this repository, and adds it to the run's own list.
    pub(crate) fn publish_event(&self, run: &str, iter: Option<u32>, kind: EventKind) {
        let scope = EventSubject { repo: Some(self.file.id.clone()), run: Some(run.to_owned()), iter };
        let event = self.events.publish(scope, kind);
        if let Some(record) = self.find_run(run) {
            crate::worker::record::append_event((record.path.as_path(), run), &event, &self.redactor);
        }
    }

    /// Shows what is done before the first session: the guard runs on the base, or a workspace is made ready.
    pub(crate) fn show_preparation(&mut self, name: PhaseName) {
        let (now, budget_ms) = (clock::now(), self.budget_ms);
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

    /// Publishes the view.
    pub(crate) fn publish_view(&mut self) {
        self.refresh_current_view();
        self.update_inhibitor();
        let status = StatusView { repo: self.repo_view(), run: self.run_view(), isolated: Vec::new() };
        self.status.send_replace(Arc::new(status));
    }

    /// Keeps the machine awake while a run goes on by itself: now, or before long.
    pub(crate) fn update_inhibitor(&mut self) {
        let now = clock::now();
        let is_active = self.file.runs.iter().any(|run| run.state.is_active(now));
        if is_active {
            self.sleep_inhibition.get_or_insert_with(|| self.inhibitor.hold());
        } else {
            self.sleep_inhibition = None;
        }
    }

    /// Makes the view anew where it is that of another run: a run is seen from the moment it is in the queue.
    fn refresh_current_view(&mut self) {
        let is_other_run = |run: &&RunRecord| self.view.as_ref().is_none_or(|view| view.summary.id != run.id);
        let Some(current) = self.current_run().filter(is_other_run).cloned() else { return };
        let snapshot = self.snapshot_run(&current);
        self.budget_ms = snapshot.budget_ms;
        self.view = Some(snapshot.view);
    }

    /// Describes a run from what is committed.
    pub(crate) fn snapshot_run(&mut self, run: &RunRecord) -> RunSnapshot {
        let blank = snapshot::blank_view(run, self.containment);
        let caches = (&mut self.totals, &self.last_load);
        let snapshot = tokio::task::block_in_place(|| snapshot::snapshot_run(&self.store, run, &blank, caches));
        if self.live_run.is_none() {
            self.last_load.clear();
        }
        snapshot
    }

    pub(crate) fn run_view(&self) -> Option<RunView> {
        let current = self.current_run()?;
        let mut view = self.view.clone().filter(|view| view.summary.id == current.id)?;
        view.summary = self.run_summary(current);
        // Its end is known before the view is made anew.
        let is_active = matches!(view.summary.state, RunStatus::Running | RunStatus::Waiting);
        view.phase = view.phase.filter(|_| is_active);
        if let Some(phase) = &mut view.phase {
            phase.obstacle = self.blocker.as_ref().map(|obstacle| obstacle.what.clone());
        }
        view.wait_until = current.state.wait().map(|wait| wait.until);
        view.outages = outage_views(current);
        view.changes = self.pending_changes(&current.id);
        view.pending = current.asked.and_then(|asked| match asked {
            StopRequest::Pause => Some(PendingControl::Pause),
            StopRequest::Cancel => Some(PendingControl::Cancel),
            StopRequest::Step => None,
        });
        Some(view)
    }

    /// Returns what a person has asked of a run's files and what is not committed yet.
    pub(crate) fn pending_changes(&self, run: &str) -> Vec<ChangeView> {
        let queued = self.changes.queue.iter().filter(|waiting| waiting.run == run);
        let view = |change: &ChangeRequest| {
            let (id, text) = change.describe();
            ChangeView { command: change.command().to_owned(), id: id.map(str::to_owned), text }
        };
        queued.map(|waiting| view(&waiting.change)).collect()
    }

    /// Describes a run as it is seen now: one that an obstacle keeps from going on waits.
    pub(crate) fn run_summary(&self, run: &RunRecord) -> RunSummary {
        let obstacle = self.blocker.as_ref().filter(|_| self.live_run.as_ref() == Some(&run.id));
        let (state, reason) = run.shown_status(obstacle);
        let is_published = self.file.source.as_ref().is_some_and(|source| source.run == run.id);
        let published = self.publish_state.view().filter(|_| is_published);
        RunSummary { state, reason, published, ..run_summary(run) }
    }

    /// Describes the repository as it is seen now.
    pub(crate) fn repo_view(&self) -> RepoView {
        let queue = self.file.runs.iter().filter(|run| !run.state.is_over());
        RepoView { queue: queue.map(|run| self.run_summary(run)).collect(), ..repo_view(&self.file, self.held.clone()) }
    }

    /// Shows what keeps the live run from going on.
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

    /// Describes one run.
    pub(crate) fn describe_run(&mut self, run: &str) -> Result<StatusView, ErrorData> {
        let repo = self.repo_view();
        let record = self.resolve_run(Some(run))?.clone();
        let current = self.run_view().filter(|view| view.summary.id == record.id);
        let view = current.unwrap_or_else(|| RunView { changes: self.pending_changes(&record.id), ..self.snapshot_run(&record).view });
        Ok(StatusView { repo, run: Some(view), isolated: Vec::new() })
    }

    /// Remembers that this user has confirmed commands.
    pub(crate) fn confirm_commands(&mut self, digest: String) -> Result<(), ErrorData> {
        if self.file.confirmed.contains(&digest) {
            return Ok(());
        }
        let mut file = self.file.clone();
        file.confirmed.push(digest);
        self.save_file(file).map_err(|error| store_error_data(&error))
    }

    /// Forgets an event whose hook has ended, and tells why it failed.
    pub(crate) fn finish_hook(&mut self, event: &HookEvent, failure: Option<String>) {
        if let Some(failure) = failure {
            let message = format!("{} of run {}: {failure}", event.hook, event.run);
            tracing::warn!(repo = self.file.id, message, "a hook failed");
            self.publish_event(&event.run, None, EventKind::Warning { message });
        }
        let mut file = self.file.clone();
        file.hooks.queue.retain(|waiting| waiting.event != *event);
        if let Err(error) = self.save_file(file) {
            tracing::warn!(repo = self.file.id, error = display_chain(&error), "the event of a hook stays");
        }
    }

    /// Answers whoever waits for a step of this run.
    pub(crate) fn answer_steps(&mut self, id: &str, iteration: Option<&IterationView>) {
        let run = self.find_run(id).map(|run| self.run_summary(run)).ok_or_else(|| run_not_found(id));
        let (waiters, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.step_waiters).into_iter().partition(|(step, _)| step == id);
        self.step_waiters = others;
        for (_, reply) in waiters {
            // Whoever has stopped waiting needs no answer.
            let _ = reply.send(run.clone().map(|run| StepReply { run, iteration: iteration.cloned() }));
        }
    }

    /// Answers everybody who waits for a step of a repository that is held.
    pub(crate) fn refuse_steps_if_held(&mut self) {
        let Some(held) = &self.held else { return };
        for (_, reply) in self.step_waiters.drain(..) {
            // Whoever has stopped waiting needs no answer.
            let _ = reply.send(Err(held_error_data(held)));
        }
    }

    /// Finds a run by id or unique prefix; none: the current one.
    pub(crate) fn resolve_run(&self, selector: Option<&str>) -> Result<&RunRecord, ErrorData> {
        let Some(selector) = selector else {
            let none = || {
                let message = format!("{} has no run", self.file.path);
                ErrorData::new(ErrorKind::NotFound, message).hint("runnerctl start")
            };
            return self.current_run().ok_or_else(none);
        };
        if let Some(run) = self.find_run(selector) {
            return Ok(run);
        }
        let mut matches = self.file.runs.iter().filter(|run| run.id.starts_with(selector));
        match (matches.next(), matches.next()) {
            (Some(run), None) => Ok(run),
            (None, _) => Err(run_not_found(selector)),
            (Some(a), Some(b)) => {
                let message = format!("`{selector}` matches more than one run: {}, {}", a.id, b.id);
                Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint("runnerctl queue --ended"))
            }
        }
    }
}

pub(crate) fn store_error_data(error: &StoreError) -> ErrorData {
    ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error)
}

pub(crate) fn run_not_found(id: &str) -> ErrorData {
    ErrorData::new(ErrorKind::NotFound, format!("no run {id} in this repository")).hint("runnerctl queue --ended")
}

pub(crate) fn held_error_data(held: &StopReason) -> ErrorData {
    let error = ErrorData::new(ErrorKind::Held, held.message.clone());
    held.ways().into_iter().fold(error, ErrorData::hint)
}
