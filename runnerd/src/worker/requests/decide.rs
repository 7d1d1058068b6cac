//! Applies the rules to a request about a run, given its record, the work in progress and the committed state.

use protocol::error::ErrorData;
use runner_core::run::{
    self, RecordState, RequestContext, RunAction, RunActivity, RunInputs, RunRecord, RunRequest, RunTransition,
};
use runner_os::clock;
use tokio::task::block_in_place;

use crate::worker::queue::RepoQueue;
use crate::worker::queue_errors::{run_not_found, store_error_data};
use crate::worker::requests::branch_tip::BranchTip;

/// Decides a request about a run and stores the transition; returns the actions that remain to be done.
pub(super) fn apply_request(queue: &mut RepoQueue, id: &str, request: RunRequest) -> Result<Vec<RunAction>, ErrorData> {
    let step = decide_request(queue, id, request)?;
    queue.store_step(step).map_err(|error| store_error_data(&error))
}

pub(super) fn decide_request(queue: &RepoQueue, id: &str, request: RunRequest) -> Result<RunTransition, ErrorData> {
    let run = queue.find_run(id).ok_or_else(|| run_not_found(id))?;
    let tip = read_branch_tip(queue, run, &request)?;
    let inputs = tip.as_ref().map(|tip| tip.loaded.run_inputs(&run.uncommitted));
    run::handle_request(run, request, &request_context(queue, run, inputs)).map_err(|refusal| refusal.to_error_data(id))
}

/// Reads the committed state if the answer depends on it. A review of an unreadable state is refused for that; for a
/// resumed run the fault is reported at its next turn.
fn read_branch_tip(queue: &RepoQueue, run: &RunRecord, request: &RunRequest) -> Result<Option<BranchTip>, ErrorData> {
    let is_refused = queue.held.is_some() || run_activity(queue, &run.id) != RunActivity::Nothing;
    if is_refused || !request.needs_commit(run.state) {
        return Ok(None);
    }
    match (block_in_place(|| BranchTip::read_tip(&queue.store, run)), request) {
        (Err(error), RunRequest::Review { .. }) => Err(error.to_error_data()),
        (tip, _) => Ok(tip.ok().flatten()),
    }
}

fn request_context<'a>(queue: &'a RepoQueue, run: &RunRecord, inputs: Option<RunInputs<'a>>) -> RequestContext<'a> {
    let running = || queue.file.runs.iter().find(|run| run.state == RecordState::Running).map(|run| &run.id);
    RequestContext {
        hold_reason: queue.held.as_ref(),
        work: run_activity(queue, &run.id),
        driven_run: queue.live_run.as_ref().or(queue.unfinished_run.as_ref()).or_else(running).map(String::as_str),
        blocker: queue.blocker.as_ref().filter(|_| queue.live_run.as_ref() == Some(&run.id)),
        inputs,
        now: clock::now(),
    }
}

fn run_activity(queue: &RepoQueue, id: &str) -> RunActivity {
    match (queue.live_run.as_deref() == Some(id), queue.unfinished_run.as_deref() == Some(id)) {
        (true, _) => RunActivity::Active,
        (false, true) => RunActivity::Unfinished,
        (false, false) => RunActivity::Nothing,
    }
}
