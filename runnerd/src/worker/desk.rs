//! The desk of a repository: its queue, what clients ask of it, and what they see.
//!
//! One owner. A request changes the durable record first and is answered after; what it means for a
//! live iteration is handed to whoever drives. No effects, and no rules of iterations.

use std::sync::Arc;

use jiff::Timestamp;
use protocol::error::{ErrorData, ErrorKind};
use protocol::event::EventKind;
use protocol::reply::{ControlReply, StartReply, StepReply};
use protocol::view::{PendingControl, RepoView, RunSummary, RunView, StatusView, StopReason};
use protocol::words::RunStatus;
use runner_core::verdict::StopCause;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::{IdChoice, Message, StartOrder};
use crate::clock;
use crate::events::{About, Events};
use crate::store::{AskedFor, Beginning, RepoFile, ResumeOrder, RunRecord, Store, StoreError};

/// What a worker does next with the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    /// Drive this run.
    Run(String),
    /// Drive one iteration of this run.
    Step(String),
    /// Nothing until a time, or until somebody asks.
    Rest(Option<Timestamp>),
    /// The daemon goes down.
    Leave,
}

/// The desk.
#[derive(Debug)]
pub(super) struct Desk {
    /// The durable record.
    pub store: Store,
    /// Its content.
    pub file: RepoFile,
    /// Why nothing may be done with this repository.
    pub held: Option<StopReason>,
    /// Whether the record on disk could not be read, and must not be written.
    pub frozen: bool,
    /// What is seen of the current run beside its record.
    pub view: Option<RunView>,
    /// Budget of an iteration of the current run, in milliseconds.
    pub(super) budget_ms: u64,
    mailbox: mpsc::Receiver<Message>,
    status: watch::Sender<Arc<StatusView>>,
    events: Events,
    shutdown: CancellationToken,
    drain: CancellationToken,
    /// Number of the iteration that a step has run.
    pub stepped_iter: Option<u32>,
    /// The run whose iteration a previous life has begun; its journal is gone through when it has its turn.
    pub unfinished: Option<String>,
    live: Option<String>,
    recheck: Option<Message>,
    /// Whether nobody can ask anything any more.
    forsaken: bool,
    /// Whether whoever drives was told that everything is to end.
    told: bool,
    steps: Vec<(String, oneshot::Sender<Result<StepReply, ErrorData>>)>,
}

/// How a desk is connected.
#[derive(Debug)]
pub(super) struct Wires {
    /// Where requests come in.
    pub mailbox: mpsc::Receiver<Message>,
    /// Where the view goes out.
    pub status: watch::Sender<Arc<StatusView>>,
    /// The daemon's stream of events.
    pub events: Events,
    /// Everything is to end now.
    pub shutdown: CancellationToken,
    /// Nothing new is to begin.
    pub drain: CancellationToken,
}

impl Desk {
    /// Sets up the desk of a repository.
    pub(super) fn new(store: Store, file: RepoFile, wires: Wires) -> Self {
        let Wires { mailbox, status, events, shutdown, drain } = wires;
        Self {
            store,
            file,
            held: None,
            frozen: false,
            view: None,
            budget_ms: 0,
            mailbox,
            status,
            events,
            shutdown,
            drain,
            stepped_iter: None,
            unfinished: None,
            live: None,
            recheck: None,
            forsaken: false,
            told: false,
            steps: Vec::new(),
        }
    }

    /// Decides what to do next with the queue: what was running goes on, else the first run that is not over.
    pub(super) fn turn(&self, now: Timestamp) -> Turn {
        if self.is_leaving() || self.forsaken {
            return Turn::Leave;
        }
        if self.held.is_some() {
            return Turn::Rest(None);
        }
        let mut queue = self.file.runs.iter().filter(|run| !run.state.is_terminal());
        if let Some(run) = queue.clone().find(|run| run.state == RunStatus::Running) {
            return Turn::Run(run.id.clone());
        }
        if let Some((run, _)) = self.steps.first() {
            return Turn::Step(run.clone());
        }
        let Some(run) = queue.next() else { return Turn::Rest(None) };
        match (run.state, run.wait_until) {
            (RunStatus::Queued | RunStatus::Running, _) => Turn::Run(run.id.clone()),
            (RunStatus::Waiting, Some(until)) if until <= now => Turn::Run(run.id.clone()),
            (RunStatus::Waiting, until) => Turn::Rest(until),
            _ => Turn::Rest(None),
        }
    }

    /// Returns whether nothing new is to begin.
    pub(super) fn is_leaving(&self) -> bool {
        self.shutdown.is_cancelled() || self.drain.is_cancelled()
    }

    /// Returns whether everything is to end now.
    pub(super) fn is_shutting_down(&self) -> bool {
        self.shutdown.is_cancelled()
    }

    /// Returns the run with this id.
    pub(super) fn run(&self, id: &str) -> Option<&RunRecord> {
        self.file.runs.iter().find(|run| run.id == id)
    }

    /// Changes a run's record durably, then the view.
    pub(super) fn change(&mut self, id: &str, change: impl FnOnce(&mut RunRecord)) -> Result<(), StoreError> {
        let mut file = self.file.clone();
        let Some(run) = file.runs.iter_mut().find(|run| run.id == id) else { return Ok(()) };
        let before = run.state;
        change(run);
        let after = run.clone();
        self.keep(file)?;
        if before != after.state {
            let kind = EventKind::RunState { state: after.state, reason: after.reason };
            self.tell(&after.id, None, kind);
        }
        Ok(())
    }

    fn keep(&mut self, mut file: RepoFile) -> Result<(), StoreError> {
        if self.frozen {
            return Err(StoreError::Frozen { path: self.store.folder().to_owned() });
        }
        tokio::task::block_in_place(|| self.store.save(&mut file))?;
        self.file = file;
        self.show();
        Ok(())
    }

    /// Marks the run that is being driven.
    pub(super) fn set_live(&mut self, run: Option<&str>) {
        self.live = run.map(str::to_owned);
        self.told = false;
        self.show();
    }

    /// Publishes an event about a run of this repository, and adds it to the run's own list.
    pub(super) fn tell(&self, run: &str, iter: Option<u32>, kind: EventKind) {
        let about = About { repo: Some(self.file.id.clone()), run: Some(run.to_owned()), iter };
        let event = self.events.publish(about, kind);
        if let Some(record) = self.run(run) {
            super::record::note(record.path.as_path(), run, &event);
        }
    }

    /// Publishes the view.
    pub(super) fn show(&mut self) {
        self.look_at_current();
        let status = StatusView { repo: repo_view(&self.file, self.held.clone()), run: self.run_view() };
        self.status.send_replace(Arc::new(status));
    }

    /// Makes the view anew where it is that of another run: a run is seen from the moment it is in the queue.
    fn look_at_current(&mut self) {
        let Some(current) = self.current() else { return };
        if self.view.as_ref().is_none_or(|view| view.summary.id != current.id) {
            let seen = tokio::task::block_in_place(|| super::snapshot::of_run(current));
            self.budget_ms = seen.budget_ms;
            self.view = Some(seen.view);
        }
    }

    /// Returns the request for which a held repository is to be looked at again.
    pub(super) fn take_recheck(&mut self) -> Option<Message> {
        self.recheck.take()
    }

    /// Answers a request that had the repository looked at again.
    pub(super) fn answer_rechecked(&mut self, message: Message) {
        let Message::Resume { run, now, more, reply } = message else { return };
        let going_on = self.find(run.as_deref()).ok().filter(|run| run.state == RunStatus::Running);
        let answer = match (&self.held, going_on.map(|run| run.id.clone())) {
            (Some(held), _) => Err(held_error(held)),
            (None, Some(id)) => self.controlled(&id, false),
            (None, None) => self.resume(run.as_deref(), now, more),
        };
        // Whoever has stopped waiting needs no answer.
        let _ = reply.send(answer);
    }

    fn run_view(&self) -> Option<RunView> {
        let current = self.current()?;
        let mut view = self.view.clone().filter(|view| view.summary.id == current.id)?;
        view.summary = summary(current);
        view.wait_until = current.wait_until;
        view.pending = current.asked.and_then(|asked| match asked {
            AskedFor::Pause => Some(PendingControl::Pause),
            AskedFor::Cancel => Some(PendingControl::Cancel),
            AskedFor::Step => None,
        });
        let obstacle = view.phase.as_ref().and_then(|phase| phase.obstacle.clone());
        if let (Some(message), RunStatus::Running) = (obstacle, view.summary.state) {
            view.summary.state = RunStatus::Waiting;
            view.summary.reason = Some(StopReason { message, command: None });
        }
        Some(view)
    }

    /// Returns the run that is being driven, else the one at the head of the queue, else the last one that ended.
    pub(super) fn current(&self) -> Option<&RunRecord> {
        let live = self.live.as_ref().and_then(|live| self.run(live));
        live.or_else(|| current(&self.file))
    }

    /// Waits for a request, or for a time, or for the daemon to go down.
    pub(super) async fn rest(&mut self, until: Option<Timestamp>) {
        let wait = until.map(|until| until.duration_since(clock::now()).unsigned_abs());
        // A machine that slept wakes up late: look again at least every minute.
        let wait = wait.unwrap_or(std::time::Duration::MAX).min(std::time::Duration::from_secs(60));
        let timer = async {
            match until {
                Some(_) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.shutdown.cancelled() => {}
            () = self.drain.cancelled() => {}
            message = self.mailbox.recv() => {
                match message {
                    Some(message) => drop(self.handle(message)),
                    None => self.forsaken = true,
                }
            }
            () = timer => {}
        }
    }

    /// Waits until somebody wants the live run to stop now. Cancel-safe.
    ///
    /// That everything is to end is said once; after it only requests are answered.
    pub(super) async fn stop(&mut self) -> StopCause {
        loop {
            let message = tokio::select! {
                biased;
                () = self.shutdown.cancelled(), if !self.told => {
                    self.told = true;
                    return StopCause::Shutdown;
                }
                message = self.mailbox.recv() => message,
            };
            match message {
                Some(message) => {
                    if let Some(cause) = self.handle(message) {
                        return cause;
                    }
                }
                None if self.told => std::future::pending().await,
                None => self.shutdown.cancelled().await,
            }
        }
    }

    /// Answers a request; returns what it means for the live run.
    fn handle(&mut self, message: Message) -> Option<StopCause> {
        match message {
            Message::Start(order, reply) => {
                let _ = reply.send(self.start(*order));
                None
            }
            Message::Step { run, reply } => {
                self.step(run.as_deref(), reply);
                None
            }
            Message::Pause { run, now, reply } => {
                let (answer, cause) = self.pause(run.as_deref(), now);
                let _ = reply.send(answer);
                cause
            }
            message @ Message::Resume { .. } if self.held.is_some() => {
                self.recheck = Some(message);
                None
            }
            Message::Resume { run, now, more, reply } => {
                let _ = reply.send(self.resume(run.as_deref(), now, more));
                None
            }
            Message::Cancel { run, reply } => {
                let (answer, cause) = self.cancel(run.as_deref());
                let _ = reply.send(answer);
                cause
            }
            Message::Confirm { digest, reply } => {
                let _ = reply.send(self.confirm(digest));
                None
            }
            Message::Describe { run, reply } => {
                let _ = reply.send(self.describe(&run));
                None
            }
            Message::List { reply } => {
                let _ = reply.send((self.file.runs.iter().map(summary).collect(), self.file.confirmed.clone()));
                None
            }
        }
    }

    fn describe(&self, run: &str) -> Result<StatusView, ErrorData> {
        let repo = repo_view(&self.file, self.held.clone());
        let record = self.find(Some(run))?;
        let live = self.run_view().filter(|view| view.summary.id == record.id);
        let view = live.unwrap_or_else(|| tokio::task::block_in_place(|| super::snapshot::of_run(record).view));
        Ok(StatusView { repo, run: Some(view) })
    }

    fn confirm(&mut self, digest: String) -> Result<(), ErrorData> {
        if self.file.confirmed.contains(&digest) {
            return Ok(());
        }
        let mut file = self.file.clone();
        file.confirmed.push(digest);
        self.keep(file).map_err(|error| fault(&error))
    }

    fn start(&mut self, order: StartOrder) -> Result<StartReply, ErrorData> {
        if let Some(held) = &self.held {
            return Err(held_error(held));
        }
        let mut file = self.file.clone();
        let id = match &order.id {
            IdChoice::Given(id) => id.clone(),
            IdChoice::Derived { stem, taken } => free_id(stem, |id| taken.contains(id) || self.run(id).is_some()),
        };
        let known = file.runs.iter().position(|run| run.id == id);
        if let Some(run) = known.map(|at| &file.runs[at]).filter(|run| !run.state.is_terminal()) {
            return self.already_queued(&run.clone());
        }
        if let Some(at) = known {
            file.runs.remove(at);
        }
        let resumed = order.begun || known.is_some();
        file.path = order.path.clone();
        file.runs.push(RunRecord {
            id: id.clone(),
            path: order.path,
            state: if order.queue_only { RunStatus::Paused } else { RunStatus::Queued },
            reason: order.queue_only.then(|| reason("queued and not to be started yet", "runnerctl resume")),
            queued_at: clock::now(),
            ended_at: None,
            beginning: Some(Beginning { base: order.base, goal: order.goal, keep_tree: order.keep_tree }),
            resume: resumed.then_some(ResumeOrder { more: 0, reset: true, from: None }),
            asked: None,
            wait_until: None,
            waits: 0,
        });
        let ahead = file.runs.iter().filter(|run| !run.state.is_terminal()).count() - 1;
        self.keep(file).map_err(|error| fault(&error))?;
        let run = self.run(&id).map(summary).ok_or_else(|| not_found(&id))?;
        self.tell(&id, None, EventKind::RunState { state: run.state, reason: run.reason.clone() });
        Ok(StartReply { run, ahead: u32::try_from(ahead).unwrap_or(u32::MAX), resumed })
    }

    /// Starting a run that is in the queue lets it go on if the user had stopped it.
    fn already_queued(&mut self, run: &RunRecord) -> Result<StartReply, ErrorData> {
        if matches!(run.state, RunStatus::Paused | RunStatus::Held) {
            self.resume(Some(&run.id), false, None)?;
        }
        let ahead = self.file.runs.iter().filter(|run| !run.state.is_terminal()).position(|other| other.id == run.id);
        let run = self.run(&run.id).map(summary).ok_or_else(|| not_found(&run.id))?;
        Ok(StartReply { run, ahead: u32::try_from(ahead.unwrap_or(0)).unwrap_or(u32::MAX), resumed: true })
    }

    fn step(&mut self, run: Option<&str>, reply: oneshot::Sender<Result<StepReply, ErrorData>>) {
        let running = self.live.as_ref().or(self.unfinished.as_ref());
        let running = running.or(self.file.runs.iter().find(|run| run.state == RunStatus::Running).map(|run| &run.id));
        let found = self.find(run).and_then(|run| match (&self.held, running, run.state) {
            (Some(held), _, _) => Err(held_error(held)),
            (None, Some(other), _) if *other != run.id || run.state == RunStatus::Running => {
                Err(wrong_state(&format!("run {other} is running"), "runnerctl pause"))
            }
            (None, _, RunStatus::Completed | RunStatus::Cancelled) => {
                Err(wrong_state(&format!("run {} is {}", run.id, run.state), "runnerctl start"))
            }
            (None, _, _) => Ok(run.id.clone()),
        });
        match found {
            Ok(run) => self.steps.push((run, reply)),
            Err(error) => {
                let _ = reply.send(Err(error));
            }
        }
    }

    /// Answers whoever waits for a step of this run.
    pub(super) fn stepped(&mut self, id: &str, iteration: Option<protocol::view::IterationView>) {
        let run = self.run(id).map(summary).ok_or_else(|| not_found(id));
        let (done, left) = std::mem::take(&mut self.steps).into_iter().partition(|(step, _)| step == id);
        self.steps = left;
        for (_, reply) in Vec::from_iter::<Vec<_>>(done) {
            let _ = reply.send(run.clone().map(|run| StepReply { run, iteration: iteration.clone() }));
        }
    }

    fn pause(&mut self, run: Option<&str>, now: bool) -> (Result<ControlReply, ErrorData>, Option<StopCause>) {
        let run = match self.find(run) {
            Ok(run) => run.clone(),
            Err(error) => return (Err(error), None),
        };
        let is_live = self.live.as_ref() == Some(&run.id);
        // An iteration that a previous life has begun comes to its end first.
        let is_live = is_live || self.is_unfinished(&run.id) && run.state == RunStatus::Running;
        if run.state.is_terminal() {
            return (Err(wrong_state(&format!("run {} is {}", run.id, run.state), "runnerctl status")), None);
        }
        let changed = self.change(&run.id, |run| {
            if is_live {
                run.asked = run.asked.filter(|asked| *asked == AskedFor::Cancel).or(Some(AskedFor::Pause));
            } else {
                run.state = RunStatus::Paused;
                run.reason = Some(reason("paused by the user", "runnerctl resume"));
                run.wait_until = None;
            }
        });
        let answer = changed.map_err(|error| fault(&error)).and_then(|()| self.controlled(&run.id, is_live));
        let cause = (answer.is_ok() && is_live && now).then_some(StopCause::Pause);
        (answer, cause)
    }

    fn cancel(&mut self, run: Option<&str>) -> (Result<ControlReply, ErrorData>, Option<StopCause>) {
        let run = match self.find(run) {
            Ok(run) => run.clone(),
            Err(error) => return (Err(error), None),
        };
        let is_live = self.live.as_ref() == Some(&run.id);
        let is_unfinished = self.is_unfinished(&run.id);
        if run.state.is_terminal() {
            return (Err(wrong_state(&format!("run {} is {}", run.id, run.state), "runnerctl status")), None);
        }
        let changed = self.change(&run.id, |run| {
            if is_live || is_unfinished {
                // What a session has left is committed before the run ends.
                run.asked = Some(AskedFor::Cancel);
                run.state = RunStatus::Running;
            } else {
                let command = format!("runnerctl start --id {}", run.id);
                end(run, RunStatus::Cancelled, reason("cancelled by the user", &command));
            }
        });
        let answer =
            changed.map_err(|error| fault(&error)).and_then(|()| self.controlled(&run.id, is_live || is_unfinished));
        let cause = (answer.is_ok() && is_live).then_some(StopCause::Cancel);
        (answer, cause)
    }

    fn resume(&mut self, run: Option<&str>, now: bool, more: Option<u32>) -> Result<ControlReply, ErrorData> {
        let run = self.find(run)?.clone();
        let refused = match run.state {
            RunStatus::Completed => {
                Some(wrong_state(&format!("run {} is completed", run.id), "runnerctl start --goal FILE"))
            }
            RunStatus::Cancelled => {
                let hint = format!("runnerctl start --id {}", run.id);
                Some(wrong_state(&format!("run {} is cancelled", run.id), &hint))
            }
            RunStatus::Waiting if !now => {
                let message = format!("run {} waits and goes on by itself", run.id);
                Some(wrong_state(&message, "runnerctl resume --now"))
            }
            RunStatus::Running if run.asked.is_none() && more.is_none() => {
                Some(wrong_state(&format!("run {} is running", run.id), "runnerctl status"))
            }
            _ => None,
        };
        if let Some(refused) = refused {
            return Err(refused);
        }
        let was_over = run.state.is_terminal();
        let mut file = self.file.clone();
        file.runs.retain(|other| other.id != run.id || !was_over);
        if was_over {
            file.runs.push(run.clone());
        }
        if let Some(record) = file.runs.iter_mut().find(|other| other.id == run.id) {
            record.asked = None;
            record.wait_until = None;
            record.reason = None;
            record.ended_at = None;
            if record.state != RunStatus::Running || more.is_some() {
                let before = record.resume.take().unwrap_or(ResumeOrder { more: 0, reset: false, from: None });
                let more = before.more.saturating_add(more.unwrap_or(0));
                record.resume = Some(ResumeOrder { more, reset: before.reset || was_over, from: None });
            }
            if record.state != RunStatus::Running {
                record.state = RunStatus::Queued;
            }
        }
        self.keep(file).map_err(|error| fault(&error))?;
        let state = self.run(&run.id).map_or(RunStatus::Queued, |run| run.state);
        self.tell(&run.id, None, EventKind::RunState { state, reason: None });
        self.controlled(&run.id, false)
    }

    fn is_unfinished(&self, id: &str) -> bool {
        self.unfinished.as_deref() == Some(id)
    }

    fn controlled(&self, id: &str, pending: bool) -> Result<ControlReply, ErrorData> {
        self.run(id).map(|run| ControlReply { run: summary(run), pending }).ok_or_else(|| not_found(id))
    }

    /// Finds a run by id or unique prefix; none: the current one.
    fn find(&self, wanted: Option<&str>) -> Result<&RunRecord, ErrorData> {
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
                let message = format!("`{wanted}` is the start of more than one run: {}, {}", a.id, b.id);
                Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint("runnerctl queue --ended"))
            }
        }
    }
}

/// Returns the run at the head of the queue, else the last one that ended.
pub(super) fn current(file: &RepoFile) -> Option<&RunRecord> {
    let head = file.runs.iter().find(|run| !run.state.is_terminal());
    head.or_else(|| file.runs.iter().max_by_key(|run| run.ended_at))
}

/// Describes a repository.
pub(super) fn repo_view(file: &RepoFile, held: Option<StopReason>) -> RepoView {
    RepoView {
        id: file.id.clone(),
        path: file.path.clone(),
        held,
        queue: file.runs.iter().filter(|run| !run.state.is_terminal()).map(summary).collect(),
    }
}

/// Describes a run for lists.
pub fn summary(run: &RunRecord) -> RunSummary {
    RunSummary {
        id: run.id.clone(),
        branch: format!("runner/{}", run.id),
        path: run.path.clone(),
        state: run.state,
        reason: run.reason.clone(),
        queued_at: run.queued_at,
        ended_at: run.ended_at,
    }
}

/// Ends a run's record.
pub(super) fn end(run: &mut RunRecord, state: RunStatus, reason: StopReason) {
    run.state = state;
    run.reason = Some(reason);
    run.ended_at = Some(clock::now());
    run.asked = None;
    run.wait_until = None;
    run.waits = 0;
}

/// Builds a reason.
pub(super) fn reason(message: impl Into<String>, command: &str) -> StopReason {
    StopReason { message: message.into(), command: (!command.is_empty()).then(|| command.to_owned()) }
}

fn free_id(stem: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(stem) {
        return stem.to_owned();
    }
    (2_u64..).map(|number| format!("{stem}-{number}")).find(|id| !is_taken(id)).unwrap_or_else(|| stem.to_owned())
}

fn fault(error: &StoreError) -> ErrorData {
    ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error)
}

fn not_found(id: &str) -> ErrorData {
    ErrorData::new(ErrorKind::NotFound, format!("no run {id} in this repository")).hint("runnerctl queue --ended")
}

fn wrong_state(message: &str, hint: &str) -> ErrorData {
    ErrorData::new(ErrorKind::WrongState, message).hint(hint)
}

fn held_error(held: &StopReason) -> ErrorData {
    let error = ErrorData::new(ErrorKind::Held, held.message.clone());
    held.command.iter().fold(error, |error, command| error.hint(command.clone()))
}
