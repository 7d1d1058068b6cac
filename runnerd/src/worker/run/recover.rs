//! What an earlier daemon process has left: state that is read or holds the repository, and a journal that is replayed.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::SignedDuration;
use protocol::view::StopReason;
use protocol::words::PhaseName;
use runner_core::iteration::{IterationEvent, Phase};
use runner_core::message::{Receipt, RunnerCommit};
use runner_core::run::blocker::{Blocker, Transience};
use runner_core::run::wait::WaitPeriod;
use runner_core::run::{self, RecordState, RunAction, RunRecord, StopRequest};
use runner_core::verdict::SessionTask;
use runner_git::Id;
use runner_os::clock;
use runner_os::error_chain::display_chain;
use runner_os::retryable::{LOOK_AT_LOG, Retryable as _, describe_blocker};
use tokio::task::block_in_place;

use crate::store::RepoFile;
use crate::worker::cleanup::clear_leftovers;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::unreadable;
use crate::worker::iteration::drive::DriveError;
use crate::worker::iteration::log::{JournalLog, SharedEntries};
use crate::worker::journal::{self, JournalContents, JournalFile};
use crate::worker::pinned_repo::PinnedRepo;
use crate::worker::run::worker::RepoWorker;
use crate::worker::run_error::RunError;

/// Pause before unreadable state is read again.
const REREAD_INTERVAL: SignedDuration = SignedDuration::from_secs(30);

/// Reads what an earlier daemon process has left; unreadable state holds the repository, and is read again
/// automatically if that may help.
pub(crate) fn recover_state(worker: &mut RepoWorker) {
    block_in_place(|| clean_work_trees(worker));
    let result = read_previous_state(worker);
    let is_transient = result.as_ref().is_err_and(RunError::is_transient);
    let now = clock::now();
    worker.queue.recheck_wait = is_transient.then(|| WaitPeriod { since: now, until: now + REREAD_INTERVAL });
    worker.queue.held = result.err().map(|error| {
        tracing::error!(repo = worker.queue.file.id, error = display_chain(&error), "repository held");
        let message = format!("the daemon's state of this repository cannot be read: {}", display_chain(&error));
        StopReason::new(message, recovery_hint(worker, is_transient))
    });
    end_cancelled_if_held(worker);
    worker.queue.refuse_steps_if_held();
    worker.refresh_view();
}

/// Removes what a killed daemon process has left in the work trees of the repository. Whatever cannot be removed is
/// reported by the operation that it blocks.
fn clean_work_trees(worker: &RepoWorker) {
    let RepoFile { path, runs, .. } = &worker.queue.file;
    let paths: BTreeSet<&Path> = runs.iter().map(|run| run.path.as_path()).chain([path.as_path()]).collect();
    for path in paths {
        let repository = PinnedRepo::for_work_tree(&worker.queue.store, path).try_open();
        let cleared = repository.and_then(|found| found.as_ref().map_or(Ok(false), clear_leftovers));
        if let Err(error) = cleared {
            tracing::warn!(path = %path.display(), error = display_chain(&error), "failed to remove what a killed process left");
        }
    }
}

/// Ends cancelled runs although the state of their iteration is unknown; the unreadable state is kept.
fn end_cancelled_if_held(worker: &mut RepoWorker) {
    let Some(held) = worker.queue.held.clone().filter(|_| !worker.queue.is_frozen) else { return };
    let remedy = held.command.unwrap_or_else(|| LOOK_AT_LOG.to_owned());
    let blocker = Blocker { what: held.message, remedy, nature: Transience::Lasting };
    let cancelled = worker.queue.file.runs.iter().filter(|run| run.state == RecordState::Running);
    let cancelled: Vec<RunRecord> =
        cancelled.filter(|run| run.stop_request == Some(StopRequest::Cancel)).cloned().collect();
    for run in cancelled {
        let ended = run::decide(&run, run::RunEvent::Blocked(blocker.clone()), clock::now());
        if let Ok(step) = ended
            && let Err(error) = worker.queue.store_step(step)
        {
            tracing::error!(run = run.id, error = display_chain(&error), "the run has not ended");
        }
    }
}

fn recovery_hint(worker: &RepoWorker, is_transient: bool) -> &'static str {
    match (is_transient, worker.queue.is_frozen) {
        (true, _) => "it is read again automatically, and at once with: runnerctl resume",
        (false, true) => {
            "restore the file, then: runnerctl resume; or forget the repository: runnerctl repos --remove PATH"
        }
        (false, false) => "look at the file, move it away, then: runnerctl resume",
    }
}

fn read_previous_state(worker: &mut RepoWorker) -> Result<(), RunError> {
    if worker.queue.is_frozen {
        let missing_record = || RunError::MissingRecord { folder: worker.queue.store.folder() };
        worker.queue.file = worker.queue.store.take_over()?.ok_or_else(missing_record)?;
        worker.queue.is_frozen = false;
    }
    worker.queue.changes = block_in_place(|| worker.queue.store.load_changes())?;
    worker.unfinished_journal = None;
    worker.queue.unfinished_run = None;
    let place = JournalFile::for_store(&worker.queue.store);
    let Some(recorded) = block_in_place(|| place.read())? else { return Ok(()) };
    let Some(run) = worker.queue.find_run(&recorded.header.run) else { return Ok(()) };
    let is_over = matches!(journal::replay(place.path(), &recorded), Ok(Phase::Over { .. }));
    if run::decide(run, run::RunEvent::Restarted { is_over }, clock::now())?.effects.contains(&RunAction::RemoveJournal)
    {
        // Everything that followed from it has been stored.
        return Ok(place.remove()?);
    }
    worker.queue.unfinished_run = Some(run.id.clone());
    worker.unfinished_journal = Some(recorded);
    Ok(())
}

/// Reads the journal of an earlier daemon process again before its run has its turn: a person may have moved it away.
/// False if the repository is held now.
pub(crate) fn reread_journal(worker: &mut RepoWorker) -> bool {
    if worker.unfinished_journal.is_some() {
        recover_state(worker);
    }
    worker.queue.held.is_none()
}

/// Continues the journal of an earlier daemon process, however long the disk refuses.
pub(crate) async fn reopen_journal(
    worker: &mut RepoWorker,
    context: &RunContext,
    recorded: JournalContents,
    entries: &SharedEntries,
) -> Result<(Phase, JournalLog), DriveError> {
    block_in_place(|| refuse_outdated_journal(context, &recorded))?;
    let mut failures = 0;
    loop {
        match block_in_place(|| JournalLog::reopen_journal(&worker.queue.store, recorded.clone(), entries.clone())) {
            Err(DriveError::Journal(error)) if error.is_retryable() && !worker.queue.is_shutting_down() => {
                failures += 1;
                if !worker.wait_for_blocker(&context.run, &describe_blocker(&error), failures).await {
                    return Err(error.into());
                }
            }
            reopened => {
                let reopened = reopened?;
                worker.unfinished_journal = None;
                worker.queue.unfinished_run = None;
                return Ok(reopened);
            }
        }
    }
}

/// Refuses a journal that is not of the current iteration: its seals do not reveal an old or truncated copy, but the
/// branch does.
fn refuse_outdated_journal(context: &RunContext, recorded: &JournalContents) -> Result<(), DriveError> {
    let phase = journal::replay(JournalFile::for_store(&context.store).path(), recorded)?;
    let opened = recorded.entries.iter().find_map(|entry| match &entry.event {
        IterationEvent::Opened(task) => Some(task),
        _ => None,
    });
    let Some(task) = opened else { return Ok(()) };
    let last_phase = match phase {
        Phase::Guard { .. } => PhaseName::Guard,
        Phase::Review { .. } => PhaseName::Review,
        _ => PhaseName::Work,
    };
    unreadable::clear_unreadable(context, task.iter, last_phase)
        .map_err(|error| DriveError::Blocked(describe_blocker(&error)))?;
    let is_settling = matches!(phase, Phase::Settle { .. } | Phase::Over { .. });
    let later_commit =
        find_later_commit(context, task, is_settling).map_err(|error| DriveError::Blocked(describe_blocker(&error)))?;
    let Some(commit) = later_commit else { return Ok(()) };
    let what = format!("the journal is of iteration {}, and the branch has gone on to {}", task.iter, commit.short(12));
    let remedy = format!("look at {}, and move it away", JournalFile::for_store(&context.store).path().display());
    Err(DriveError::Blocked(Blocker { what, remedy, nature: Transience::Lasting }))
}

/// Returns an iteration's commit on top of From that a journal of this iteration cannot know about.
fn find_later_commit(context: &RunContext, task: &SessionTask, is_settling: bool) -> Result<Option<Id>, EffectError> {
    let repository = context.repository()?;
    if !repository.find_pipes().is_empty() {
        // Git would block on them; the check after the session removes them.
        return Ok(None);
    }
    let is_later = |receipt: &Receipt| {
        let is_own = receipt.iter == task.iter && receipt.from == task.from && is_settling;
        receipt.run == context.run && receipt.iter >= task.iter && !is_own
    };
    Ok(RunContext::find_own_commit(
        &repository,
        &task.from,
        |commit| matches!(commit, RunnerCommit::Iteration(receipt) if is_later(receipt)),
    )?)
}
