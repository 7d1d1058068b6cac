//! Cleans up after a cancelled run whose last iteration cannot be finished: its programs are killed, files that the
//! runner itself had moved are moved back, a checkout that was cut off is reverted, and the bookkeeping that it had written is as committed again. Ending the run
//! is up to `runner_core::run`.

use protocol::words::PhaseName;
use runner_core::run::blocker::Blocker;
use runner_git::Head;
use runner_os::error_chain::display_chain;
use tokio::task::block_in_place;

use super::branch_checkout;
use super::worker::RepoWorker;
use crate::repo::durable;
use crate::repo::layout::Layout;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::guard_overlay;
use crate::worker::iteration::session::end_leftovers;
use crate::worker::journal::JournalFile;

/// The phases that may leave a program running.
const PROGRAM_PHASES: [PhaseName; 3] = [PhaseName::Work, PhaseName::Guard, PhaseName::Review];

/// The files that the runner writes for its commits after the start.
const BOOKKEEPING: [&str; 5] = [Layout::TREE, Layout::RUN_STATE, Layout::FEEDBACK, Layout::PROGRESS, Layout::TESTS];

/// Cleans up as far as possible, and adds what fails to the obstruction.
pub(super) fn clean_up_run(worker: &RepoWorker, id: &str, blocker: &mut Blocker) {
    let Some(run) = worker.queue.find_run(id) else { return };
    let Ok(context) = worker.run_context(run) else { return };
    let journal = JournalFile::for_store(&worker.queue.store).read();
    // Without a journal nothing was started; a damaged one does not say.
    let mark = journal.ok().flatten().map(|recorded| recorded.header.mark);
    let is_begun = run.beginning.is_none();
    for error in block_in_place(|| clean_up(&context, mark.as_deref(), is_begun)) {
        blocker.what = format!("{}; and {}", blocker.what, display_chain(&error));
    }
}

fn clean_up(context: &RunContext, mark: Option<&str>, is_begun: bool) -> Vec<EffectError> {
    let swept =
        mark.into_iter().flat_map(|mark| PROGRAM_PHASES.map(|phase| end_leftovers(context, mark, phase).map(drop)));
    // A person's prepared files are committed with the start, and not before.
    let restored = is_begun.then(|| restore_bookkeeping(context));
    let reverted = context
        .repository()
        .map_err(EffectError::from)
        .and_then(|repository| branch_checkout::clear_work_tree(context, &repository));
    swept.chain([guard_overlay::revert(context), reverted]).chain(restored).filter_map(Result::err).collect()
}

/// Puts back the bookkeeping of a commit that was not made. Otherwise the next start would ask a person to commit it.
fn restore_bookkeeping(context: &RunContext) -> Result<(), EffectError> {
    let repository = context.repository()?;
    let Head::Branch { name, commit: Some(head) } = repository.head()? else { return Ok(()) };
    let committed = repository.read_file(&head, Layout::RUN_STATE)?;
    // A session's own change of the task tree remains as long as the runner has written nothing.
    if name == context.branch() && committed != durable::read(&context.layout.run_state())? {
        repository.check_out_paths(&BOOKKEEPING)?;
    }
    Ok(())
}
