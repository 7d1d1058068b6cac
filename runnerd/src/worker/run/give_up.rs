//! What is still done for a cancelled run whose last iteration cannot be brought to its end: its programs are ended, and
//! what the runner itself had moved goes back. That the run ends is `runner_core::run`'s.

use protocol::words::PhaseName;
use runner_core::obstacle::Obstruction;
use tokio::task::block_in_place;

use super::worker::Worker;
use crate::causes::in_one_line;
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::swap;
use crate::worker::iteration::session::sweep;
use crate::worker::journal::Place;

/// The phases of which a program may be left.
const WITH_PROGRAMS: [PhaseName; 3] = [PhaseName::Work, PhaseName::Guard, PhaseName::Review];

/// Does what can be done, and adds to what is in the way what cannot.
pub(super) fn tidy(worker: &Worker, id: &str, obstruction: &mut Obstruction) {
    let Some(run) = worker.queue.run(id) else { return };
    let Ok(context) = worker.context(run) else { return };
    let journal = Place::of(&worker.queue.store).read();
    // Without a journal nothing of it was started, and one that is damaged does not tell.
    let mark = journal.ok().flatten().map(|recorded| recorded.header.mark);
    for error in block_in_place(|| tidied(&context, mark.as_deref())) {
        obstruction.what = format!("{}; and {}", obstruction.what, in_one_line(&error));
    }
}

fn tidied(context: &RunContext, mark: Option<&str>) -> Vec<Obstacle> {
    let swept = mark.into_iter().flat_map(|mark| WITH_PROGRAMS.map(|phase| sweep(context, mark, phase).map(drop)));
    swept.chain([swap::back(context)]).filter_map(Result::err).collect()
}
