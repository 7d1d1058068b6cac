//! Requests that control a run: start, step, pause, resume, cancel.

use protocol::error::{ErrorData, ErrorKind};
use protocol::reply::{ControlReply, StartReply, StepReply};
use runner_core::run::{self, RecordState, RunAction, RunRecord, RunRequest, StopRequest};
use runner_core::verdict::StopCause;
use runner_os::clock;

use super::decide::{apply_request, decide_request};
use crate::worker::queue::RepoQueue;
use crate::worker::queue_errors::{held_error_data, run_not_found, store_error_data};
use crate::worker::{IdChoice, ReplySender, StartOrder, WorkerMessage};

/// Answers a request to stop or continue a run; returns the stop that it requests of the live run, if any.
pub(super) fn control_run(
    queue: &mut RepoQueue,
    run: Option<&str>,
    request: RunRequest,
    reply: ReplySender<ControlReply>,
) -> Option<StopCause> {
    let is_cancel = request == RunRequest::Cancel;
    let found = queue.resolve_run(run).map(|run| (run.id.clone(), is_cancel && run.is_cancelled()));
    let applied = found.and_then(|(id, already)| Ok((apply_request(queue, &id, request)?, id, already)));
    let (answer, stop) = match applied {
        Ok((effects, id, already)) => {
            let stop =
                effects.iter().find_map(|effect| if let RunAction::Stop(cause) = effect { Some(*cause) } else { None });
            if effects.contains(&RunAction::AnswerSteps) {
                queue.answer_steps(&id, None);
            }
            (control_reply(queue, &id, already), stop)
        }
        Err(error) => (Err(error), None),
    };
    // A caller that has stopped waiting needs no answer.
    let _ = reply.send(answer);
    stop
}

fn control_reply(queue: &RepoQueue, id: &str, already: bool) -> Result<ControlReply, ErrorData> {
    let run = queue.find_run(id).ok_or_else(|| run_not_found(id))?;
    let pending = matches!(run.stop_request, Some(StopRequest::Pause | StopRequest::Cancel));
    Ok(ControlReply { run: queue.run_summary(run), pending, already })
}

/// Keeps the record of an isolated run that is over: its branch is here, and its workspace is about to be removed.
pub(super) fn adopt_run(queue: &mut RepoQueue, run: RunRecord) -> Result<(), ErrorData> {
    let mut file = queue.file.clone();
    run::put_record(&mut file.runs, run, false);
    queue.save_file(file).map_err(|error| store_error_data(&error))
}

pub(super) fn start_run(queue: &mut RepoQueue, order: StartOrder) -> Result<StartReply, ErrorData> {
    if let Some(held) = &queue.held {
        return Err(held_error_data(held));
    }
    let StartOrder { id, start, refusal } = order;
    let id = match id {
        IdChoice::Given(id) => id,
        IdChoice::Derived { stem, taken } => {
            let is_known = |id: &str| queue.file.runs.iter().any(|run| run.id.eq_ignore_ascii_case(id));
            run::free_id(&stem, |id| taken.contains(id) || is_known(id))
        }
    };
    if let Some(other) = queue.file.runs.iter().find(|run| run.id != id && run.id.eq_ignore_ascii_case(&id)) {
        let message = format!("id {id} differs from run {} only in case", other.id);
        return Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint("choose another id with --id"));
    }
    let known = queue.find_run(&id).map(|run| run.state);
    let resumed = known.is_some() || start.is_begun;
    let path = start.path.clone();
    let step = match known {
        Some(_) => decide_request(queue, &id, RunRequest::Start(start))?,
        None => match refusal {
            Some(refusal) => return Err(refusal.to_error_data(&id)),
            None => run::create_run(&id, start, clock::now()),
        },
    };
    let path = known.is_none_or(RecordState::is_over).then_some(path);
    queue.store_step_at(path, step).map_err(|error| store_error_data(&error))?;
    let run = queue.find_run(&id).map(|run| queue.run_summary(run)).ok_or_else(|| run_not_found(&id))?;
    let ahead = queue.file.runs.iter().filter(|run| !run.state.is_over()).position(|other| other.id == id);
    let ahead = u32::try_from(ahead.unwrap_or(0)).unwrap_or(u32::MAX);
    Ok(StartReply {
        run,
        ahead,
        resumed,
        workspace: None,
        from: None,
        back: None,
        detached: None,
        guard: None,
        settings: None,
        head_config: false,
    })
}

pub(super) fn step_run(queue: &mut RepoQueue, run: Option<&str>, reply: ReplySender<StepReply>) {
    let run_id = queue.resolve_run(run).map(|run| run.id.clone());
    match run_id.and_then(|id| apply_request(queue, &id, RunRequest::Step).map(|_| id)) {
        Ok(id) => queue.step_waiters.push((id, reply)),
        Err(error) => {
            let _ = reply.send(Err(error));
        }
    }
}

/// Answers a request for which a held repository was checked again.
pub(crate) fn answer_rechecked_request(queue: &mut RepoQueue, message: WorkerMessage) {
    let WorkerMessage::Resume { run, now, more, reply } = message else { return };
    if let Some(held) = &queue.held {
        // A caller that has stopped waiting needs no answer.
        let _ = reply.send(Err(held_error_data(held)));
        return;
    }
    control_run(queue, run.as_deref(), RunRequest::Resume { now, more, rechecked: true }, reply);
}
