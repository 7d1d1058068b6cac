//! Asks the rules what a request makes of a run, from its record, what is under way and what is committed.

use protocol::error::ErrorData;
use runner_core::run::{self, Effect, Request, RunRecord, Situation, Standing, State, Step, Work};
use tokio::task::block_in_place;

use crate::clock;
use crate::worker::queue::{RepoQueue, fault, not_found};
use crate::worker::requests::branch_tip::BranchTip;

/// Asks something of a run: what it comes to is written down, and what is to be done beside it comes back.
pub(super) fn ask(queue: &mut RepoQueue, id: &str, request: Request) -> Result<Vec<Effect>, ErrorData> {
    let step = answer(queue, id, request)?;
    queue.come_to(step).map_err(|error| fault(&error))
}

pub(super) fn answer(queue: &RepoQueue, id: &str, request: Request) -> Result<Step, ErrorData> {
    let run = queue.run(id).ok_or_else(|| not_found(id))?;
    let tip = branch_tip(queue, run, &request)?;
    let standing = tip.as_ref().map(|tip| tip.loaded.standing(&run.uncommitted));
    run::ask(run, request, &situation(queue, run, standing)).map_err(|refusal| refusal.told(id))
}

/// Reads what is committed where that has a say in the answer. A word on what cannot be read is refused for that; what a
/// resumed run cannot read is said when it has its turn.
fn branch_tip(queue: &RepoQueue, run: &RunRecord, request: &Request) -> Result<Option<BranchTip>, ErrorData> {
    let is_refused_anyway = queue.held.is_some() || work(queue, &run.id) != Work::Nothing;
    if is_refused_anyway || !request.reads_commit(run.state) {
        return Ok(None);
    }
    match (block_in_place(|| BranchTip::of(&queue.store, run)), request) {
        (Err(error), Request::Review { .. }) => Err(error.told()),
        (tip, _) => Ok(tip.ok().flatten()),
    }
}

fn situation<'a>(queue: &'a RepoQueue, run: &RunRecord, standing: Option<Standing<'a>>) -> Situation<'a> {
    let running = || queue.file.runs.iter().find(|run| run.state == State::Running).map(|run| &run.id);
    Situation {
        held: queue.held.as_ref(),
        work: work(queue, &run.id),
        driven: queue.live.as_ref().or(queue.unfinished.as_ref()).or_else(running).map(String::as_str),
        obstacle: queue.obstacle.as_ref().filter(|_| queue.live.as_ref() == Some(&run.id)),
        standing,
        now: clock::now(),
    }
}

fn work(queue: &RepoQueue, id: &str) -> Work {
    match (queue.live.as_deref() == Some(id), queue.unfinished.as_deref() == Some(id)) {
        (true, _) => Work::Live,
        (false, true) => Work::Unfinished,
        (false, false) => Work::Nothing,
    }
}
