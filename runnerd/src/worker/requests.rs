//! What people ask of a repository's queue: found, handed to the rules, written down, answered.
//!
//! Which request is legal in which state, and what a refusal says, is `runner_core::run`'s. What a request means for the
//! live run is handed to whoever drives.

use protocol::error::{ErrorData, ErrorKind};
use protocol::reply::{ControlReply, StartReply, StepReply};
use protocol::view::{IterationView, RunView, StatusView, StopReason};
use runner_core::run::{self, Asked, Effect, Request, RunRecord, Situation, Standing, State, Step, Work};
use runner_core::verdict::StopCause;
use tokio::task::block_in_place;

use super::changes::told;
use super::desk::Desk;
use super::ground::Ground;
use super::{IdChoice, Message, Reply, StartOrder};
use crate::clock;
use crate::store::StoreError;

impl Desk {
    /// Answers a request; returns what it means for the live run.
    pub(super) fn handle(&mut self, message: Message) -> Option<StopCause> {
        match message {
            Message::Start(order, reply) => {
                let _ = reply.send(self.start(*order));
            }
            Message::Step { run, reply } => self.step(run.as_deref(), reply),
            Message::Pause { run, now, reply } => return self.control(run.as_deref(), Request::Pause { now }, reply),
            Message::Resume { run, now, more, reply } if self.held.is_some() => {
                self.recheck = Some(Message::Resume { run, now, more, reply });
            }
            Message::Resume { run, now, more, reply } => {
                return self.control(run.as_deref(), Request::Resume { now, more, looked: false }, reply);
            }
            Message::Cancel { run, reply } => return self.control(run.as_deref(), Request::Cancel, reply),
            Message::Change(order, reply) => {
                let _ = reply.send(self.take_change(*order));
            }
            Message::Review { run, decision, reply } => {
                let _ = reply.send(self.take_word(run.as_deref(), decision));
            }
            Message::HookEnded { event, failure } => self.hook_ended(&event, failure),
            Message::Confirm { digest, reply } => {
                let _ = reply.send(self.confirm(digest));
            }
            Message::Describe { run, reply } => {
                let _ = reply.send(self.describe(&run));
            }
            Message::List { reply } => {
                let runs = self.file.runs.iter().map(|run| self.summary(run)).collect();
                let _ = reply.send((runs, self.file.confirmed.clone()));
            }
        }
        None
    }

    /// Answers a request for which a held repository was looked at again.
    pub(super) fn answer_rechecked(&mut self, message: Message) {
        let Message::Resume { run, now, more, reply } = message else { return };
        self.control(run.as_deref(), Request::Resume { now, more, looked: true }, reply);
    }

    /// Asks something of a run: what it comes to is written down, and what is to be done beside it comes back.
    pub(super) fn ask(&mut self, id: &str, request: Request) -> Result<Vec<Effect>, ErrorData> {
        let step = self.answer(id, request)?;
        self.come_to(step).map_err(|error| fault(&error))
    }

    fn answer(&self, id: &str, request: Request) -> Result<Step, ErrorData> {
        let run = self.run(id).ok_or_else(|| not_found(id))?;
        let ground = self.ground(run, &request)?;
        let standing = ground.as_ref().map(|ground| ground.loaded.standing(&run.uncommitted));
        run::ask(run, request, &self.situation(run, standing)).map_err(|refusal| refusal.told(id))
    }

    /// Reads what is committed where that has a say in the answer. A word on what cannot be read is refused for that; what a
    /// resumed run cannot read is said when it has its turn.
    fn ground(&self, run: &RunRecord, request: &Request) -> Result<Option<Ground>, ErrorData> {
        let is_refused_anyway = self.held.is_some() || self.work(&run.id) != Work::Nothing;
        if is_refused_anyway || !request.reads_commit(run.state) {
            return Ok(None);
        }
        match (block_in_place(|| Ground::of(&self.store, run)), request) {
            (Err(error), Request::Review(_)) => Err(told(&error)),
            (ground, _) => Ok(ground.ok().flatten()),
        }
    }

    fn situation<'a>(&'a self, run: &RunRecord, standing: Option<Standing<'a>>) -> Situation<'a> {
        let running = || self.file.runs.iter().find(|run| run.state == State::Running).map(|run| &run.id);
        Situation {
            held: self.held.as_ref(),
            work: self.work(&run.id),
            driven: self.live.as_ref().or(self.unfinished.as_ref()).or_else(running).map(String::as_str),
            obstacle: self.obstacle.as_ref().filter(|_| self.live.as_ref() == Some(&run.id)),
            standing,
            now: clock::now(),
        }
    }

    fn work(&self, id: &str) -> Work {
        match (self.live.as_deref() == Some(id), self.unfinished.as_deref() == Some(id)) {
            (true, _) => Work::Live,
            (false, true) => Work::Unfinished,
            (false, false) => Work::Nothing,
        }
    }

    /// Answers a request to let a run stop or go on; returns what it means for the live run.
    fn control(&mut self, run: Option<&str>, request: Request, reply: Reply<ControlReply>) -> Option<StopCause> {
        let found = self.find(run).map(|run| run.id.clone());
        let asked = found.and_then(|id| Ok((self.ask(&id, request)?, id)));
        let (answer, stop) = match asked {
            Ok((effects, id)) => {
                let stop = effects
                    .iter()
                    .find_map(|effect| if let Effect::Stop(cause) = effect { Some(*cause) } else { None });
                if effects.contains(&Effect::AnswerSteps) {
                    self.stepped(&id, None);
                }
                (self.controlled(&id), stop)
            }
            Err(error) => (Err(error), None),
        };
        // Whoever has stopped waiting needs no answer.
        let _ = reply.send(answer);
        stop
    }

    fn controlled(&self, id: &str) -> Result<ControlReply, ErrorData> {
        let run = self.run(id).ok_or_else(|| not_found(id))?;
        let pending = matches!(run.asked, Some(Asked::Pause | Asked::Cancel));
        Ok(ControlReply { run: self.summary(run), pending })
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
        let StartOrder { id, start } = order;
        let id = match id {
            IdChoice::Given(id) => id,
            IdChoice::Derived { stem, taken } => run::free_id(&stem, |id| taken.contains(id) || self.run(id).is_some()),
        };
        if let Some(other) = self.file.runs.iter().find(|run| run.id != id && run.id.eq_ignore_ascii_case(&id)) {
            let message = format!("id {id} differs from run {} only in case", other.id);
            return Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint("choose another id with --id"));
        }
        let known = self.run(&id).map(|run| run.state);
        let resumed = known.is_some() || start.is_begun;
        let path = start.path.clone();
        let step = match known {
            Some(_) => self.answer(&id, Request::Start(start))?,
            None => run::begin(&id, start, clock::now()),
        };
        let path = known.is_none_or(State::is_over).then_some(path);
        self.come_to_in(path, step).map_err(|error| fault(&error))?;
        let run = self.run(&id).map(|run| self.summary(run)).ok_or_else(|| not_found(&id))?;
        let ahead = self.file.runs.iter().filter(|run| !run.state.is_over()).position(|other| other.id == id);
        Ok(StartReply { run, ahead: u32::try_from(ahead.unwrap_or(0)).unwrap_or(u32::MAX), resumed })
    }

    fn step(&mut self, run: Option<&str>, reply: Reply<StepReply>) {
        let found = self.find(run).map(|run| run.id.clone());
        match found.and_then(|id| self.ask(&id, Request::Step).map(|_| id)) {
            Ok(id) => self.steps.push((id, reply)),
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

pub(super) fn fault(error: &StoreError) -> ErrorData {
    ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error)
}

pub(super) fn not_found(id: &str) -> ErrorData {
    ErrorData::new(ErrorKind::NotFound, format!("no run {id} in this repository")).hint("runnerctl queue --ended")
}

pub(super) fn held_error(held: &StopReason) -> ErrorData {
    let error = ErrorData::new(ErrorKind::Held, held.message.clone());
    held.command.iter().fold(error, |error, command| error.hint(command.clone()))
}
