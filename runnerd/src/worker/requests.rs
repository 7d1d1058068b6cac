//! What clients ask of a repository's queue: each request changes the durable record first and is answered after.
//!
//! What a request means for the live run is handed to whoever drives.

use protocol::error::{ErrorData, ErrorKind};
use protocol::event::EventKind;
use protocol::reply::{ControlReply, StartReply, StepReply};
use protocol::view::{IterationView, RunView, StatusView, StopReason};
use protocol::words::RunStatus;
use runner_core::verdict::StopCause;
use tokio::sync::oneshot;

use super::desk::{Desk, end, reason};
use super::load::load;
use super::{IdChoice, Message, StartOrder};
use crate::clock;
use crate::git::Repository;
use crate::store::{AskedFor, ResumeOrder, RunRecord, StoreError};

impl Desk {
    /// Answers a request; returns what it means for the live run.
    pub(super) fn handle(&mut self, message: Message) -> Option<StopCause> {
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
            Message::Change(order, reply) => {
                let _ = reply.send(self.take_change(*order));
                None
            }
            Message::Review { run, decision, reply } => {
                let _ = reply.send(self.take_word(run.as_deref(), decision));
                None
            }
            Message::HookEnded { event, failure } => {
                self.hook_ended(&event, failure);
                None
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
                let _ = reply
                    .send((self.file.runs.iter().map(|run| self.summary(run)).collect(), self.file.confirmed.clone()));
                None
            }
        }
    }

    fn describe(&mut self, run: &str) -> Result<StatusView, ErrorData> {
        let repo = self.repo_view();
        let record = self.find(Some(run))?.clone();
        let live = self.run_view().filter(|view| view.summary.id == record.id);
        let view = live.unwrap_or_else(|| RunView { changes: self.waiting(&record.id), ..self.look_at(&record).view });
        Ok(StatusView { repo, run: Some(view) })
    }

    pub(super) fn confirm(&mut self, digest: String) -> Result<(), ErrorData> {
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
        if let Some(other) = file.runs.iter().find(|run| run.id != id && run.id.eq_ignore_ascii_case(&id)) {
            let message = format!("id {id} differs from run {} only in case", other.id);
            return Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint("choose another id with --id"));
        }
        let known = file.runs.iter().position(|run| run.id == id);
        if known.is_some() && order.beginning.fork {
            return Err(wrong_state(
                &format!("run {id} is there already, and a fork is a new run"),
                "choose another id with --id",
            ));
        }
        if let Some(run) = known.map(|at| &file.runs[at]).filter(|run| !run.state.is_terminal()) {
            return self.already_queued(&run.clone(), order.queue_only);
        }
        let uncommitted = known.map(|at| file.runs.remove(at).uncommitted).unwrap_or_default();
        let resumed = order.begun || known.is_some();
        file.path = order.path.clone();
        file.runs.push(RunRecord {
            state: if order.queue_only { RunStatus::Paused } else { RunStatus::Queued },
            reason: order.queue_only.then(|| reason("queued and not to be started yet", "runnerctl resume")),
            // The counters that have stopped the other run do not stop its fork.
            resume: (resumed || order.beginning.fork).then(|| ResumeOrder::upon(None, 0, true)),
            beginning: Some(order.beginning),
            uncommitted,
            ..RunRecord::queued(&id, order.path, clock::now())
        });
        let ahead = file.runs.iter().filter(|run| !run.state.is_terminal()).count() - 1;
        self.keep(file).map_err(|error| fault(&error))?;
        let run = self.run(&id).map(|run| self.summary(run)).ok_or_else(|| not_found(&id))?;
        self.tell(&id, None, EventKind::RunState { state: run.state, reason: run.reason.clone(), until: None });
        Ok(StartReply { run, ahead: u32::try_from(ahead).unwrap_or(u32::MAX), resumed })
    }

    /// Starting a run that is in the queue lets it go on if the user had stopped it, unless it is only to be queued.
    fn already_queued(&mut self, run: &RunRecord, queue_only: bool) -> Result<StartReply, ErrorData> {
        if !queue_only && matches!(run.state, RunStatus::Paused | RunStatus::Held) {
            self.resume(Some(&run.id), false, None)?;
        }
        let ahead = self.file.runs.iter().filter(|run| !run.state.is_terminal()).position(|other| other.id == run.id);
        let run = self.run(&run.id).map(|run| self.summary(run)).ok_or_else(|| not_found(&run.id))?;
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
            (None, _, RunStatus::Waiting) if run.wait.is_none() => {
                self.waits_for_review(run).map_or_else(|| Ok(run.id.clone()), Err)
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
    pub(super) fn stepped(&mut self, id: &str, iteration: Option<&IterationView>) {
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
    pub(super) fn refuse_steps_if_held(&mut self) {
        let Some(held) = &self.held else { return };
        for (_, reply) in self.steps.drain(..) {
            // Whoever has stopped waiting needs no answer.
            let _ = reply.send(Err(held_error(held)));
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
                run.wait = None;
            }
        });
        let answer = changed.map_err(|error| fault(&error)).and_then(|()| self.controlled(&run.id, is_live));
        if answer.is_ok() && !is_live {
            self.stepped(&run.id, None);
        }
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
                run.uncommitted.word = None;
                end(run, RunStatus::Cancelled, reason("cancelled by the user", &command));
            }
        });
        let answer =
            changed.map_err(|error| fault(&error)).and_then(|()| self.controlled(&run.id, is_live || is_unfinished));
        if answer.is_ok() && !is_live && !is_unfinished {
            self.stepped(&run.id, None);
        }
        let cause = (answer.is_ok() && is_live).then_some(StopCause::Cancel);
        (answer, cause)
    }

    pub(super) fn resume(
        &mut self,
        run: Option<&str>,
        now: bool,
        more: Option<u32>,
    ) -> Result<ControlReply, ErrorData> {
        let run = self.find(run)?.clone();
        let refused = match run.state {
            RunStatus::Completed => {
                Some(wrong_state(&format!("run {} is completed", run.id), "runnerctl start --goal FILE"))
            }
            RunStatus::Cancelled => {
                let hint = format!("runnerctl start --id {}", run.id);
                Some(wrong_state(&format!("run {} is cancelled", run.id), &hint))
            }
            RunStatus::Waiting if run.wait.is_none() => self.waits_for_review(&run),
            RunStatus::Waiting if !now => {
                let message = format!("run {} waits and goes on by itself", run.id);
                Some(wrong_state(&message, "runnerctl resume --now"))
            }
            RunStatus::Running if run.asked.is_none() && more.is_none() => Some(self.is_going_on(&run)),
            RunStatus::Stuck => tokio::task::block_in_place(|| still_stuck(&run)),
            _ => None,
        };
        if let Some(refused) = refused {
            return Err(refused);
        }
        let was_over = run.state.is_terminal();
        self.put_into_queue(&run, |record| {
            if now {
                record.uncommitted.ask_at_once(clock::now());
            }
            if record.state != RunStatus::Running || more.is_some() {
                record.resume = Some(ResumeOrder::upon(record.resume.take(), more.unwrap_or(0), was_over));
            }
        })?;
        self.controlled(&run.id, false)
    }

    /// Puts a run that is not being driven into the queue, one that was over behind the others.
    pub(super) fn put_into_queue(
        &mut self,
        run: &RunRecord,
        change: impl FnOnce(&mut RunRecord),
    ) -> Result<(), ErrorData> {
        let was_over = run.state.is_terminal();
        let mut file = self.file.clone();
        file.runs.retain(|other| other.id != run.id || !was_over);
        if was_over {
            file.runs.push(run.clone());
        }
        if let Some(record) = file.runs.iter_mut().find(|other| other.id == run.id) {
            record.asked = None;
            record.wait = None;
            record.reason = None;
            record.ended_at = None;
            change(record);
            if record.state != RunStatus::Running {
                record.state = RunStatus::Queued;
            }
        }
        self.keep(file).map_err(|error| fault(&error))?;
        let state = self.run(&run.id).map_or(RunStatus::Queued, |run| run.state);
        self.tell(&run.id, None, EventKind::RunState { state, reason: None, until: None });
        Ok(())
    }

    /// Says that a run needs no resuming, and what it waits for if it does.
    fn is_going_on(&self, run: &RunRecord) -> ErrorData {
        let seen = self.summary(run);
        let waits = seen.reason.filter(|_| seen.state == RunStatus::Waiting);
        let message = match waits {
            Some(why) => format!("run {} goes on by itself when this has passed: {}", run.id, why.message),
            None => format!("run {} is running", run.id),
        };
        wrong_state(&message, "runnerctl status")
    }

    fn is_unfinished(&self, id: &str) -> bool {
        self.unfinished.as_deref() == Some(id)
    }

    pub(super) fn controlled(&self, id: &str, pending: bool) -> Result<ControlReply, ErrorData> {
        self.run(id).map(|run| ControlReply { run: self.summary(run), pending }).ok_or_else(|| not_found(id))
    }

    /// Finds a run by id or unique prefix; none: the current one.
    pub(super) fn find(&self, wanted: Option<&str>) -> Result<&RunRecord, ErrorData> {
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

/// Says why resuming a stuck run would change nothing, if that is so: what is committed is as it was.
///
/// What cannot be read is said when the run has its turn.
fn still_stuck(run: &RunRecord) -> Option<ErrorData> {
    let repository = Repository::discover(run.path.as_path()).ok()?;
    let tip = repository.branch(&format!("runner/{}", run.id)).ok()??;
    let loaded = load(&repository, tip).ok()?;
    let why = runner_core::run::stays_stuck(&loaded.tree)?;
    Some(wrong_state(&format!("run {} is still stuck: {}", run.id, why.message), &why.command.unwrap_or_default()))
}

fn free_id(stem: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(stem) {
        return stem.to_owned();
    }
    (2..=u64::MAX).map(|number| format!("{stem}-{number}")).find(|id| !is_taken(id)).unwrap_or_else(|| stem.to_owned())
}

pub(super) fn fault(error: &StoreError) -> ErrorData {
    ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error)
}

pub(super) fn not_found(id: &str) -> ErrorData {
    ErrorData::new(ErrorKind::NotFound, format!("no run {id} in this repository")).hint("runnerctl queue --ended")
}

pub(super) fn wrong_state(message: &str, hint: &str) -> ErrorData {
    ErrorData::new(ErrorKind::WrongState, message).hint(hint)
}

pub(super) fn held_error(held: &StopReason) -> ErrorData {
    let error = ErrorData::new(ErrorKind::Held, held.message.clone());
    held.command.iter().fold(error, |error, command| error.hint(command.clone()))
}
