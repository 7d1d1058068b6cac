//! Requests that steer a run: start, step, pause, resume, cancel.

use protocol::error::{ErrorData, ErrorKind};
use protocol::reply::{ControlReply, StartReply, StepReply};
use runner_core::run::{self, Asked, Effect, Request, State};
use runner_core::verdict::StopCause;

use super::ask::{answer, ask};
use crate::clock;
use crate::worker::queue::{RepoQueue, fault, held_error, not_found};
use crate::worker::{IdChoice, Message, Reply, StartOrder};

/// Answers a request to let a run stop or go on; returns what it means for the live run.
pub(super) fn control(
    queue: &mut RepoQueue,
    run: Option<&str>,
    request: Request,
    reply: Reply<ControlReply>,
) -> Option<StopCause> {
    let found = queue.find(run).map(|run| run.id.clone());
    let asked = found.and_then(|id| Ok((ask(queue, &id, request)?, id)));
    let (answer, stop) = match asked {
        Ok((effects, id)) => {
            let stop =
                effects.iter().find_map(|effect| if let Effect::Stop(cause) = effect { Some(*cause) } else { None });
            if effects.contains(&Effect::AnswerSteps) {
                queue.stepped(&id, None);
            }
            (controlled(queue, &id), stop)
        }
        Err(error) => (Err(error), None),
    };
    // Whoever has stopped waiting needs no answer.
    let _ = reply.send(answer);
    stop
}

fn controlled(queue: &RepoQueue, id: &str) -> Result<ControlReply, ErrorData> {
    let run = queue.run(id).ok_or_else(|| not_found(id))?;
    let pending = matches!(run.asked, Some(Asked::Pause | Asked::Cancel));
    Ok(ControlReply { run: queue.summary(run), pending })
}

pub(super) fn start(queue: &mut RepoQueue, order: StartOrder) -> Result<StartReply, ErrorData> {
    if let Some(held) = &queue.held {
        return Err(held_error(held));
    }
    let StartOrder { id, start, refusal } = order;
    let id = match id {
        IdChoice::Given(id) => id,
        IdChoice::Derived { stem, taken } => run::free_id(&stem, |id| taken.contains(id) || queue.run(id).is_some()),
    };
    if let Some(other) = queue.file.runs.iter().find(|run| run.id != id && run.id.eq_ignore_ascii_case(&id)) {
        let message = format!("id {id} differs from run {} only in case", other.id);
        return Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint("choose another id with --id"));
    }
    let known = queue.run(&id).map(|run| run.state);
    let resumed = known.is_some() || start.is_begun;
    let path = start.path.clone();
    let step = match known {
        Some(_) => answer(queue, &id, Request::Start(start))?,
        None => match refusal {
            Some(refusal) => return Err(refusal.told(&id)),
            None => run::begin(&id, start, clock::now()),
        },
    };
    let path = known.is_none_or(State::is_over).then_some(path);
    queue.come_to_in(path, step).map_err(|error| fault(&error))?;
    let run = queue.run(&id).map(|run| queue.summary(run)).ok_or_else(|| not_found(&id))?;
    let ahead = queue.file.runs.iter().filter(|run| !run.state.is_over()).position(|other| other.id == id);
    let ahead = u32::try_from(ahead.unwrap_or(0)).unwrap_or(u32::MAX);
    Ok(StartReply { run, ahead, resumed, workspace: None })
}

pub(super) fn step(queue: &mut RepoQueue, run: Option<&str>, reply: Reply<StepReply>) {
    let found = queue.find(run).map(|run| run.id.clone());
    match found.and_then(|id| ask(queue, &id, Request::Step).map(|_| id)) {
        Ok(id) => queue.steps.push((id, reply)),
        Err(error) => {
            let _ = reply.send(Err(error));
        }
    }
}

/// Answers a request for which a held repository was looked at again.
pub(crate) fn answer_rechecked(queue: &mut RepoQueue, message: Message) {
    let Message::Resume { run, now, more, reply } = message else { return };
    if let Some(held) = &queue.held {
        // Whoever has stopped waiting needs no answer.
        let _ = reply.send(Err(held_error(held)));
        return;
    }
    control(queue, run.as_deref(), Request::Resume { now, more, looked: true }, reply);
}
