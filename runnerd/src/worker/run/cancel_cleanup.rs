//! Cleans up after a cancelled run whose last iteration cannot be finished: its programs are killed, and files that the
//! runner itself had moved are moved back. Ending the run is up to `runner_core::run`.

use protocol::words::PhaseName;
use runner_core::blocker::Blocker;
use tokio::task::block_in_place;

use super::worker::RepoWorker;
use crate::error_chain::display_chain;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::guard_overlay;
use crate::worker::iteration::session::end_leftovers;
use crate::worker::journal::JournalFile;

/// The phases that may leave a program running.
const PROGRAM_PHASES: [PhaseName; 3] = [PhaseName::Work, PhaseName::Guard, PhaseName::Review];

/// Cleans up as far as possible, and adds what fails to the obstruction.
pub(super) fn clean_up_run(worker: &RepoWorker, id: &str, blocker: &mut Blocker) {
    let Some(run) = worker.queue.find_run(id) else { return };
    let Ok(context) = worker.run_context(run) else { return };
    let journal = JournalFile::for_store(&worker.queue.store).read();
    // Without a journal nothing was started; a damaged one does not say.
    let mark = journal.ok().flatten().map(|recorded| recorded.header.mark);
    for error in block_in_place(|| clean_up(&context, mark.as_deref())) {
        blocker.what = format!("{}; and {}", blocker.what, display_chain(&error));
    }
}

fn clean_up(context: &RunContext, mark: Option<&str>) -> Vec<EffectError> {
    let swept =
        mark.into_iter().flat_map(|mark| PROGRAM_PHASES.map(|phase| end_leftovers(context, mark, phase).map(drop)));
    swept.chain([guard_overlay::revert(context)]).filter_map(Result::err).collect()
}
