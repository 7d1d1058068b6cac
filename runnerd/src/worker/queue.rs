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
use runner_core::change::Change;
use runner_core::obstacle::Obstruction;
use runner_core::run::{self, Asked, Effect, RunRecord, Step, Turn, Wanted};
use runner_core::wait::Wait;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::causes::in_one_line;
use crate::clock;
use crate::events::{About, Events};
use crate::hidden::Hidden;
use crate::process::{Awake, Inhibitor};
use crate::store::{Changes, RepoFile, Store, StoreError};
use crate::upstream::Upstream;
use crate::worker::Message;
use crate::worker::caches::LastLoad;
use crate::worker::hook_calls;
use crate::worker::publication::Outlet;
use crate::worker::slots::{Slot, Slots};
use crate::worker::view::snapshot::{self, Snapshot, outages, repo_view, summary};
use crate::worker::view::totals::Totals;

/// The queue.
#[derive(Debug)]
pub(crate) struct RepoQueue {
    /// The durable record.
    pub store: Store,
    /// Its content.
    pub file: RepoFile,
    /// What a person has asked and is not committed yet.
    pub changes: Changes,
    /// Why nothing may be done with this repository.
    pub held: Option<StopReason>,
    /// Whether the record on disk could not be read, and must not be written.
    pub frozen: bool,
    /// What is seen of the current run beside its record.
    pub view: Option<RunView>,
    /// What the nodes of that run have consumed.
    totals: Totals,
    /// The committed state that was read last.
    pub(crate) last_load: LastLoad,
    /// What keeps the live run from going on for now.
    pub(crate) obstacle: Option<Obstruction>,
    /// What is known of the way of an isolated run into its source.
    pub(crate) outlet: Outlet,
    /// The live run's place among the repositories that are driven at once.
    pub(crate) slot: Option<Slot>,
    /// When a held repository is looked at again, though nobody asks.
    pub(crate) look_again: Option<Wait>,
    /// Budget of an iteration of the current run, in milliseconds.
    pub(crate) budget_ms: u64,
    /// Where what is started here reports to.
    pub(crate) own: mpsc::WeakSender<Message>,
    pub(crate) mailbox: mpsc::Receiver<Message>,
    status: watch::Sender<Arc<StatusView>>,
    events: Events,
    hidden: Hidden,
    pub(crate) shutdown: CancellationToken,
    pub(crate) drain: CancellationToken,
    /// How tightly processes are held.
    pub(crate) containment: Containment,
    inhibitor: Inhibitor,
    /// Keeps the machine awake while a run goes on by itself.
    awake: Option<Awake>,
    pub(crate) slots: Slots,
    /// Where the one run of a job is published.
    pub(crate) upstream: Option<Arc<Upstream>>,
    /// Number of the iteration that a step has run.
    pub stepped_iter: Option<u32>,
    /// The run whose iteration a previous life has begun; its journal is gone through when it has its turn.
    pub unfinished: Option<String>,
    pub(crate) live: Option<String>,
    /// The request for which a held repository is to be looked at again.
    pub(crate) recheck: Option<Message>,
    /// Whether nobody can ask anything any more.
    pub(crate) forsaken: bool,
    /// Whether whoever drives was told that everything is to end.
    pub(crate) told: bool,
    pub(crate) steps: Vec<(String, oneshot::Sender<Result<StepReply, ErrorData>>)>,
}

/// How a queue is connected.
#[derive(Debug)]
pub(crate) struct Wires {
    /// Where its own programs report to.
    pub own: mpsc::WeakSender<Message>,
    /// Where requests come in.
    pub mailbox: mpsc::Receiver<Message>,
    /// Where the view goes out.
    pub status: watch::Sender<Arc<StatusView>>,
    /// The daemon's stream of events.
    pub events: Events,
    /// What must not be shown.
    pub hidden: Hidden,
    /// Everything is to end now.
    pub shutdown: CancellationToken,
    /// Nothing new is to begin.
    pub drain: CancellationToken,
    /// How tightly processes are held.
    pub containment: Containment,
    /// Keeps the machine awake.
    pub inhibitor: Inhibitor,
    /// Where its runs get their places among those that are driven at once.
    pub slots: Slots,
    /// Where the one run of a job is published.
    pub upstream: Option<Arc<Upstream>>,
}

impl RepoQueue {
    /// Sets up the queue of a repository.
    pub(crate) fn new(store: Store, file: RepoFile, wires: Wires) -> Self {
        let Wires { own, mailbox, status, events, hidden, shutdown, drain, containment, inhibitor, slots, upstream } =
            wires;
        Self {
            store,
            file,
            changes: Changes::default(),
            held: None,
            frozen: false,
            view: None,
            totals: Totals::default(),
            last_load: LastLoad::default(),
            obstacle: None,
            outlet: Outlet::default(),
            slot: None,
            look_again: None,
            budget_ms: 0,
            own,
            mailbox,
            status,
            events,
            hidden,
            shutdown,
            drain,
            containment,
            inhibitor,
            awake: None,
            slots,
            upstream,
            stepped_iter: None,
            unfinished: None,
            live: None,
            recheck: None,
            forsaken: false,
            told: false,
            steps: Vec::new(),
        }
    }

    /// Decides what to do next with the queue; nothing when the daemon goes down.
    pub(crate) fn turn(&self, now: Timestamp) -> Option<Turn> {
        if self.is_leaving() || self.forsaken {
            return None;
        }
        if self.held.is_some() {
            return Some(Turn::Rest(self.look_again));
        }
        let steps: Vec<String> = self.steps.iter().map(|(run, _)| run.clone()).collect();
        let wanted = Wanted { steps: &steps, unfinished: self.unfinished.as_deref() };
        Some(match (run::turn(&self.file.runs, wanted, now), self.outlet.again) {
            (Turn::Rest(wait), Some(again)) => {
                Turn::Rest(Some(wait.filter(|wait| wait.until < again.until).unwrap_or(again)))
            }
            (turn, _) => turn,
        })
    }

    /// Returns whether nothing new is to begin.
    pub(crate) fn is_leaving(&self) -> bool {
        self.shutdown.is_cancelled() || self.drain.is_cancelled()
    }

    /// Returns whether everything is to end now.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutdown.is_cancelled()
    }

    /// Returns whether a person has cancelled a run that has not ended yet.
    pub(crate) fn is_cancelled(&self, id: &str) -> bool {
        self.run(id).is_some_and(|run| run.asked == Some(Asked::Cancel))
    }

    /// Returns whether no session runs, and none has left something that was not looked at.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.live.is_none() && self.unfinished.is_none()
    }

    /// Returns the run with this id.
    pub(crate) fn run(&self, id: &str) -> Option<&RunRecord> {
        self.file.runs.iter().find(|run| run.id == id)
    }

    /// Writes down what a run comes to, then shows it; what is to be done beside it comes back.
    pub(crate) fn come_to(&mut self, step: Step) -> Result<Vec<Effect>, StoreError> {
        self.come_to_in(None, step)
    }

    /// Does so for a run that begins in a work tree.
    pub(crate) fn come_to_in(&mut self, path: Option<WirePath>, step: Step) -> Result<Vec<Effect>, StoreError> {
        let Step { record, effects } = step;
        let before = self.run(&record.id).cloned();
        if before.as_ref() != Some(&record) || effects.contains(&Effect::GoLast) {
            let mut file = self.file.clone();
            file.path = path.unwrap_or(file.path);
            run::put(&mut file.runs, record.clone(), effects.contains(&Effect::GoLast));
            self.keep(file)?;
        }
        let state = record.state.status();
        if before.is_none_or(|before| before.state.status() != state) || effects.contains(&Effect::Tell) {
            let until = record.state.wait().map(|wait| wait.until);
            self.tell(&record.id, None, EventKind::RunState { state, reason: record.reason, until });
        }
        Ok(effects)
    }

    pub(crate) fn keep(&mut self, mut file: RepoFile) -> Result<(), StoreError> {
        if self.frozen {
            return Err(StoreError::Frozen { path: self.store.folder() });
        }
        hook_calls::called_by(&self.file, &mut file);
        tokio::task::block_in_place(|| self.store.save(&mut file))?;
        self.file = file;
        self.show();
        Ok(())
    }

    /// Marks the run that is being driven.
    pub(crate) fn set_live(&mut self, run: Option<&str>) {
        self.live = run.map(str::to_owned);
        self.told = false;
        self.obstacle = None;
        self.show();
    }

    /// Publishes an event about a run of this repository, and adds it to the run's own list.
    pub(crate) fn tell(&self, run: &str, iter: Option<u32>, kind: EventKind) {
        let about = About { repo: Some(self.file.id.clone()), run: Some(run.to_owned()), iter };
        let event = self.events.publish(about, kind);
        if let Some(record) = self.run(run) {
            crate::worker::record::note((record.path.as_path(), run), &event, &self.hidden);
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
        self.show();
    }

    /// Publishes the view.
    pub(crate) fn show(&mut self) {
        self.look_at_current();
        self.mind_sleep();
        let status = StatusView { repo: self.repo_view(), run: self.run_view(), isolated: Vec::new() };
        self.status.send_replace(Arc::new(status));
    }

    /// Keeps the machine awake while a run goes on by itself: now, or before long.
    pub(crate) fn mind_sleep(&mut self) {
        let now = clock::now();
        let is_active = self.file.runs.iter().any(|run| run.state.is_active(now));
        if is_active {
            self.awake.get_or_insert_with(|| self.inhibitor.hold());
        } else {
            self.awake = None;
        }
    }

    /// Makes the view anew where it is that of another run: a run is seen from the moment it is in the queue.
    fn look_at_current(&mut self) {
        let is_another = |run: &&RunRecord| self.view.as_ref().is_none_or(|view| view.summary.id != run.id);
        let Some(current) = self.current().filter(is_another).cloned() else { return };
        let seen = self.look_at(&current);
        self.budget_ms = seen.budget_ms;
        self.view = Some(seen.view);
    }

    /// Describes a run from what is committed.
    pub(crate) fn look_at(&mut self, run: &RunRecord) -> Snapshot {
        let blank = snapshot::blank(run, self.containment);
        let memory = (&mut self.totals, &self.last_load);
        let seen = tokio::task::block_in_place(|| snapshot::of_run(&self.store, run, &blank, memory));
        if self.live.is_none() {
            self.last_load.clear();
        }
        seen
    }

    pub(crate) fn run_view(&self) -> Option<RunView> {
        let current = self.current()?;
        let mut view = self.view.clone().filter(|view| view.summary.id == current.id)?;
        view.summary = self.summary(current);
        // Its end is known before the view is made anew.
        let goes_on = matches!(view.summary.state, RunStatus::Running | RunStatus::Waiting);
        view.phase = view.phase.filter(|_| goes_on);
        if let Some(phase) = &mut view.phase {
            phase.obstacle = self.obstacle.as_ref().map(|obstacle| obstacle.what.clone());
        }
        view.wait_until = current.state.wait().map(|wait| wait.until);
        view.outages = outages(current);
        view.changes = self.waiting(&current.id);
        view.pending = current.asked.and_then(|asked| match asked {
            Asked::Pause => Some(PendingControl::Pause),
            Asked::Cancel => Some(PendingControl::Cancel),
            Asked::Step => None,
        });
        Some(view)
    }

    /// Returns what a person has asked of a run's files and what is not committed yet.
    pub(crate) fn waiting(&self, run: &str) -> Vec<ChangeView> {
        let waiting = self.changes.queue.iter().filter(|waiting| waiting.run == run);
        let view = |change: &Change| {
            let (id, text) = change.shown();
            ChangeView { command: change.command().to_owned(), id: id.map(str::to_owned), text }
        };
        waiting.map(|waiting| view(&waiting.change)).collect()
    }

    /// Describes a run as it is seen now: one that an obstacle keeps from going on waits.
    pub(crate) fn summary(&self, run: &RunRecord) -> RunSummary {
        let obstacle = self.obstacle.as_ref().filter(|_| self.live.as_ref() == Some(&run.id));
        let (state, reason) = run.shown(obstacle);
        let is_published = self.file.source.as_ref().is_some_and(|source| source.run == run.id);
        let published = self.outlet.view().filter(|_| is_published);
        RunSummary { state, reason, published, ..summary(run) }
    }

    /// Describes the repository as it is seen now.
    pub(crate) fn repo_view(&self) -> RepoView {
        let queue = self.file.runs.iter().filter(|run| !run.state.is_over());
        RepoView { queue: queue.map(|run| self.summary(run)).collect(), ..repo_view(&self.file, self.held.clone()) }
    }

    /// Shows what keeps the live run from going on.
    pub(crate) fn obstructed(&mut self, run: &str, iter: Option<u32>, obstruction: &Obstruction) {
        let what = &obstruction.what;
        tracing::warn!(run, what, "obstructed");
        self.obstacle = Some(obstruction.clone());
        self.show();
        self.tell(run, iter, EventKind::Obstacle { message: what.clone() });
    }

    /// Returns the run that is being driven, else the one at the head of the queue, else the last one that ended.
    pub(crate) fn current(&self) -> Option<&RunRecord> {
        let live = self.live.as_ref().and_then(|live| self.run(live));
        live.or_else(|| run::current(&self.file.runs))
    }

    /// Describes one run.
    pub(crate) fn describe(&mut self, run: &str) -> Result<StatusView, ErrorData> {
        let repo = self.repo_view();
        let record = self.find(Some(run))?.clone();
        let live = self.run_view().filter(|view| view.summary.id == record.id);
        let view = live.unwrap_or_else(|| RunView { changes: self.waiting(&record.id), ..self.look_at(&record).view });
        Ok(StatusView { repo, run: Some(view), isolated: Vec::new() })
    }

    /// Remembers that this user has confirmed commands.
    pub(crate) fn confirm(&mut self, digest: String) -> Result<(), ErrorData> {
        if self.file.confirmed.contains(&digest) {
            return Ok(());
        }
        let mut file = self.file.clone();
        file.confirmed.push(digest);
        self.keep(file).map_err(|error| fault(&error))
    }

    /// Forgets an event whose hook has ended, and tells why it failed.
    pub(crate) fn hook_ended(&mut self, event: &HookEvent, failure: Option<String>) {
        if let Some(failure) = failure {
            let message = format!("{} of run {}: {failure}", event.hook, event.run);
            tracing::warn!(repo = self.file.id, message, "a hook failed");
            self.tell(&event.run, None, EventKind::Warning { message });
        }
        let mut file = self.file.clone();
        file.hooks.queue.retain(|waiting| waiting.event != *event);
        if let Err(error) = self.keep(file) {
            tracing::warn!(repo = self.file.id, error = in_one_line(&error), "the event of a hook stays");
        }
    }

    /// Answers whoever waits for a step of this run.
    pub(crate) fn stepped(&mut self, id: &str, iteration: Option<&IterationView>) {
        let run = self.run(id).map(|run| self.summary(run)).ok_or_else(|| not_found(id));
        let (done, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.steps).into_iter().partition(|(step, _)| step == id);
        self.steps = left;
        for (_, reply) in done {
            // Whoever has stopped waiting needs no answer.
            let _ = reply.send(run.clone().map(|run| StepReply { run, iteration: iteration.cloned() }));
        }
    }

    /// Answers everybody who waits for a step of a repository that is held.
    pub(crate) fn refuse_steps_if_held(&mut self) {
        let Some(held) = &self.held else { return };
        for (_, reply) in self.steps.drain(..) {
            // Whoever has stopped waiting needs no answer.
            let _ = reply.send(Err(held_error(held)));
        }
    }

    /// Finds a run by id or unique prefix; none: the current one.
    pub(crate) fn find(&self, wanted: Option<&str>) -> Result<&RunRecord, ErrorData> {
        let Some(wanted) = wanted else {
            let none = || {
                let message = format!("{} has no run", self.file.path);
                ErrorData::new(ErrorKind::NotFound, message).hint("runnerctl start")
            };
            return self.current().ok_or_else(none);
        };
        if let Some(run) = self.run(wanted) {
            return Ok(run);
        }
        let mut matches = self.file.runs.iter().filter(|run| run.id.starts_with(wanted));
        match (matches.next(), matches.next()) {
            (Some(run), None) => Ok(run),
            (None, _) => Err(not_found(wanted)),
            (Some(a), Some(b)) => {
                let message = format!("`{wanted}` matches more than one run: {}, {}", a.id, b.id);
                Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint("runnerctl queue --ended"))
            }
        }
    }
}

pub(crate) fn fault(error: &StoreError) -> ErrorData {
    ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error)
}

pub(crate) fn not_found(id: &str) -> ErrorData {
    ErrorData::new(ErrorKind::NotFound, format!("no run {id} in this repository")).hint("runnerctl queue --ended")
}

pub(crate) fn held_error(held: &StopReason) -> ErrorData {
    let error = ErrorData::new(ErrorKind::Held, held.message.clone());
    held.ways().into_iter().fold(error, ErrorData::hint)
}
