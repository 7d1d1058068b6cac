//! What a previous life has left: state that is read, or holds the repository, and a journal that is gone through again.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::SignedDuration;
use protocol::view::StopReason;
use protocol::words::PhaseName;
use runner_core::iteration::{Event, Phase};
use runner_core::message::{Receipt, RunnerCommit};
use runner_core::obstacle::{Nature, Obstruction};
use runner_core::run::{self, Asked, Effect, RunRecord, State};
use runner_core::verdict::Task;
use runner_core::wait::Wait;
use tokio::task::block_in_place;

use crate::causes::in_one_line;
use crate::clock;
use crate::git::Id;
use crate::obstruction::{LOOK_AT_LOG, Obstructs as _, obstruction};
use crate::store::RepoFile;
use crate::worker::clear::clear_leftovers;
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::failure::Failure;
use crate::worker::integrity::access;
use crate::worker::iteration::drive::DriveError;
use crate::worker::iteration::log::{Entries, JournalLog};
use crate::worker::journal::{self, Place, Recorded};
use crate::worker::run::worker::Worker;
use crate::worker::trusted::Trusted;

/// Pause before state that could not be read is read again.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// Reads what a previous life has left; what cannot be read holds the repository, and is read again by itself where
/// that may help.
pub(crate) fn recover(worker: &mut Worker) {
    block_in_place(|| clear_work_trees(worker));
    let left = read_left(worker);
    let passes = left.as_ref().is_err_and(Failure::passes);
    let now = clock::now();
    worker.queue.look_again = passes.then(|| Wait { since: now, until: now + LOOK_AGAIN });
    worker.queue.held = left.err().map(|error| {
        tracing::error!(repo = worker.queue.file.id, error = in_one_line(&error), "repository held");
        let message = format!("the daemon's state of this repository cannot be read: {}", in_one_line(&error));
        StopReason::new(message, way_on(worker, passes))
    });
    end_cancelled_if_held(worker);
    worker.queue.refuse_steps_if_held();
    worker.refresh();
}

/// Removes what a life that was killed has left in the work trees of the repository. What cannot be removed now is in the
/// way of those who say so.
fn clear_work_trees(worker: &Worker) {
    let RepoFile { path, runs, .. } = &worker.queue.file;
    let paths: BTreeSet<&Path> = runs.iter().map(|run| run.path.as_path()).chain([path.as_path()]).collect();
    for path in paths {
        let repository = Trusted::of(&worker.queue.store, path).repository();
        let cleared = repository.and_then(|found| found.as_ref().map_or(Ok(false), clear_leftovers));
        if let Err(error) = cleared {
            tracing::warn!(path = %path.display(), error = in_one_line(&error), "what a killed process has left stays");
        }
    }
}

/// Ends what a person has cancelled though nobody can tell what its iteration has left; the state that cannot be read stays.
fn end_cancelled_if_held(worker: &mut Worker) {
    let Some(held) = worker.queue.held.clone().filter(|_| !worker.queue.frozen) else { return };
    let remedy = held.command.unwrap_or_else(|| LOOK_AT_LOG.to_owned());
    let obstruction = Obstruction { what: held.message, remedy, nature: Nature::Lasting };
    let cancelled = worker.queue.file.runs.iter().filter(|run| run.state == State::Running);
    let cancelled: Vec<RunRecord> = cancelled.filter(|run| run.asked == Some(Asked::Cancel)).cloned().collect();
    for run in cancelled {
        let ended = run::decide(&run, run::Event::Obstructed(obstruction.clone()), clock::now());
        if let Ok(step) = ended
            && let Err(error) = worker.queue.come_to(step)
        {
            tracing::error!(run = run.id, error = in_one_line(&error), "the run has not ended");
        }
    }
}

fn way_on(worker: &Worker, passes: bool) -> &'static str {
    match (passes, worker.queue.frozen) {
        (true, _) => "it is read again by itself, and at once with: runnerctl resume",
        (false, true) => {
            "restore the file, then: runnerctl resume; or forget the repository: runnerctl repos --remove PATH"
        }
        (false, false) => "look at the file, move it away, then: runnerctl resume",
    }
}

fn read_left(worker: &mut Worker) -> Result<(), Failure> {
    if worker.queue.frozen {
        let no_record = || Failure::NoRecord { folder: worker.queue.store.folder() };
        worker.queue.file = worker.queue.store.take_over()?.ok_or_else(no_record)?;
        worker.queue.frozen = false;
    }
    worker.queue.changes = block_in_place(|| worker.queue.store.load_changes())?;
    worker.recorded = None;
    worker.queue.unfinished = None;
    let place = Place::of(&worker.queue.store);
    let Some(recorded) = block_in_place(|| place.read())? else { return Ok(()) };
    let Some(run) = worker.queue.run(&recorded.header.run) else { return Ok(()) };
    let is_over = matches!(journal::replay(place.path(), &recorded), Ok(Phase::Over { .. }));
    if run::decide(run, run::Event::Restarted { is_over }, clock::now())?.effects.contains(&Effect::RemoveJournal) {
        // What followed from it is written down.
        return Ok(place.remove()?);
    }
    worker.queue.unfinished = Some(run.id.clone());
    worker.recorded = Some(recorded);
    Ok(())
}

/// Reads the journal of a previous life again before its run has its turn: a person may have moved it away. False
/// if the repository is held now.
pub(crate) fn read_again(worker: &mut Worker) -> bool {
    if worker.recorded.is_some() {
        recover(worker);
    }
    worker.queue.held.is_none()
}

/// Goes on with the journal of a previous life, however long the disk refuses.
pub(crate) async fn reopen(
    worker: &mut Worker,
    context: &RunContext,
    recorded: Recorded,
    entries: &Entries,
) -> Result<(Phase, JournalLog), DriveError> {
    block_in_place(|| refuse_outdated(context, &recorded))?;
    let mut tries = 0;
    loop {
        match block_in_place(|| JournalLog::reopen(&worker.queue.store, recorded.clone(), entries.clone())) {
            Err(DriveError::Journal(error)) if error.is_obstacle() && !worker.queue.is_shutting_down() => {
                tries += 1;
                if !worker.wait_for_obstacle(&context.run, &obstruction(&error), tries).await {
                    return Err(error.into());
                }
            }
            reopened => {
                let reopened = reopened?;
                worker.recorded = None;
                worker.queue.unfinished = None;
                return Ok(reopened);
            }
        }
    }
}

/// Refuses a journal that is not of what goes on: its seals do not tell an old one, or the beginning of one, from the
/// last, and the branch does.
fn refuse_outdated(context: &RunContext, recorded: &Recorded) -> Result<(), DriveError> {
    let phase = journal::replay(Place::of(&context.store).path(), recorded)?;
    let opened = recorded.entries.iter().find_map(|entry| match &entry.event {
        Event::Opened(task) => Some(task),
        _ => None,
    });
    let Some(task) = opened else { return Ok(()) };
    let of = match phase {
        Phase::Guard { .. } => PhaseName::Guard,
        Phase::Review { .. } => PhaseName::Review,
        _ => PhaseName::Work,
    };
    access::regain(context, (task.iter, of)).map_err(|error| DriveError::Obstructed(obstruction(&error)))?;
    let is_settling = matches!(phase, Phase::Settle { .. } | Phase::Over { .. });
    let beyond =
        made_beyond(context, (task, is_settling)).map_err(|error| DriveError::Obstructed(obstruction(&error)))?;
    let Some(commit) = beyond else { return Ok(()) };
    let what = format!("the journal is of iteration {}, and the branch has gone on to {}", task.iter, commit.short(12));
    let remedy = format!("look at {}, and move it away", Place::of(&context.store).path().display());
    Err(DriveError::Obstructed(Obstruction { what, remedy, nature: Nature::Lasting }))
}

/// Returns a commit of an iteration upon From that a journal of this one cannot know of.
fn made_beyond(context: &RunContext, (task, is_settling): (&Task, bool)) -> Result<Option<Id>, Obstacle> {
    let repository = context.repository()?;
    if !repository.find_pipes().is_empty() {
        // Git would wait for them; those who look at what the session has left take them away.
        return Ok(None);
    }
    let is_beyond = |receipt: &Receipt| {
        let is_own = receipt.iter == task.iter && receipt.from == task.from && is_settling;
        receipt.run == context.run && receipt.iter >= task.iter && !is_own
    };
    Ok(RunContext::was_made(
        &repository,
        &task.from,
        |commit| matches!(commit, RunnerCommit::Iteration(receipt) if is_beyond(receipt)),
    )?)
}
