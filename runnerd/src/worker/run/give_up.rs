//! What is still done for a cancelled run whose last iteration cannot be brought to its end: its programs are ended, and
//! what the runner itself had moved goes back. That the run ends is `runner_core::run`'s.

use protocol::words::PhaseName;
use runner_core::obstacle::Blocker;
use tokio::task::block_in_place;

use super::worker::RepoWorker;
use crate::causes::display_chain;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::swap;
use crate::worker::iteration::session::end_leftovers;
use crate::worker::journal::JournalFile;

/// The phases of which a program may be left.
const PROGRAM_PHASES: [PhaseName; 3] = [PhaseName::Work, PhaseName::Guard, PhaseName::Review];

/// Does what can be done, and adds to what is in the way what cannot.
pub(super) fn clean_up_run(worker: &RepoWorker, id: &str, blocker: &mut Blocker) {
    let Some(run) = worker.queue.find_run(id) else { return };
    let Ok(context) = worker.run_context(run) else { return };
    let journal = JournalFile::for_store(&worker.queue.store).read();
    // Without a journal nothing of it was started, and one that is damaged does not tell.
    let mark = journal.ok().flatten().map(|recorded| recorded.header.mark);
    for error in block_in_place(|| clean_up(&context, mark.as_deref())) {
        blocker.what = format!("{}; and {}", blocker.what, display_chain(&error));
    }
}

fn clean_up(context: &RunContext, mark: Option<&str>) -> Vec<EffectError> {
    let swept = mark.into_iter().flat_map(|mark| PROGRAM_PHASES.map(|phase| end_leftovers(context, mark, phase).map(drop)));
    swept.chain([swap::revert(context)]).filter_map(Result::err).collect()
}
