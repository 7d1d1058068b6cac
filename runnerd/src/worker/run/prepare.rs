//! The work before an iteration: the run's beginning, step by step, the baseline, and requests of people.

use std::collections::BTreeSet;

use protocol::event::EventKind;
use protocol::words::{GuardOutcome, PhaseName};
use runner_core::run::{NextStep, RunEnd, RunEvent, RunPreparation, RunRecord, free_id};
use runner_core::tree::ids::run_of_ref;
use runner_git::{GitError, Repository};
use runner_os::retryable::describe_blocker;
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::setup::{self, SetupOutcome};
use super::worker::RepoWorker;
use super::{baseline, mailbox, start_run};
use crate::worker::context::RunContext;
use crate::worker::prepare_error::PrepareError;
use crate::worker::publication;
use crate::worker::requests::changes;
use crate::worker::run_error::RunError;

/// Does what is necessary before the next iteration; false if the run cannot continue now.
pub(crate) async fn prepare_iteration(worker: &mut RepoWorker, id: &str, is_first: bool) -> Result<bool, RunError> {
    if worker.unfinished_journal.as_ref().is_some_and(|recorded| recorded.header.run == id) {
        return Ok(true);
    }
    let mut needs_setup = is_first && worker.queue.file.source.is_some();
    let mut needs_baseline = is_first;
    let mut failures = 0;
    loop {
        if worker.queue.is_shutting_down() || worker.apply_pending_stop(id).await? {
            return Ok(false);
        }
        let Some(run) = worker.queue.find_run(id).cloned() else { return Ok(false) };
        let result = match run.preparation() {
            Some(step) => perform_step(worker, &run, &step).map(Some),
            None if needs_setup => {
                let context = worker.run_context(&run)?;
                match run_setup(worker, &context).await {
                    Ok(SetupOutcome::Done) => {
                        needs_setup = false;
                        Ok(None)
                    }
                    // The stop takes effect at the next check.
                    Ok(SetupOutcome::Stopped) => Ok(None),
                    Ok(SetupOutcome::Failed(reason)) => {
                        worker
                            .apply_event(id, RunEvent::Declined(NextStep::End { end: RunEnd::Failed, reason }))
                            .await?;
                        return Ok(false);
                    }
                    Err(error) => Err(error),
                }
            }
            None => match finish_preparation(worker, &run, &mut needs_baseline).await {
                Ok(true) => return Ok(true),
                Ok(false) => Ok(None),
                Err(error) => Err(error),
            },
        };
        match result {
            Ok(None) => {}
            Ok(Some(RunEvent::IdSettled { id: settled })) if settled != id => {
                rename_run(worker, id, &settled).await?;
                return Ok(false);
            }
            Ok(Some(event)) => drop(worker.apply_event(id, event).await?),
            Err(PrepareError::Hold(why)) => {
                worker.apply_event(id, RunEvent::Hold(why)).await?;
                return Ok(false);
            }
            Err(PrepareError::Effect(obstacle)) => {
                failures += 1;
                if !worker.wait_for_blocker(id, &describe_blocker(&*obstacle), failures).await {
                    return Err(obstacle.into());
                }
            }
        }
    }
}

/// Publishes what is committed, runs the guard on the base once, and commits requests of people; true if all of it is
/// done.
async fn finish_preparation(
    worker: &mut RepoWorker,
    run: &RunRecord,
    needs_baseline: &mut bool,
) -> Result<bool, PrepareError> {
    publication::publish_before_work(&mut worker.queue)?;
    if *needs_baseline {
        let context = worker.run_context(run)?;
        *needs_baseline = !run_baseline(worker, &context).await?;
        return Ok(false);
    }
    if worker.queue.changes.queue.is_empty() {
        return Ok(true);
    }
    changes::commit_changes(&mut worker.queue)?;
    publication::publish_before_work(&mut worker.queue).map(|()| true)
}

/// Performs the next step of a beginning, which is recorded before the one after it.
fn perform_step(worker: &mut RepoWorker, run: &RunRecord, step: &RunPreparation) -> Result<RunEvent, PrepareError> {
    let context = worker.run_context(run)?;
    let previous = worker.previous_run(&run.id);
    block_in_place(|| {
        Ok(match step {
            RunPreparation::SettleId(words) => {
                RunEvent::IdSettled { id: settle_id(&context, words, &worker.queue.file.runs)? }
            }
            RunPreparation::Begin(order) => {
                let store = context.store.start_store(worker.queue.file.source.as_ref());
                start_run::begin_run(&context, order, previous.as_deref(), &store)?;
                RunEvent::Started
            }
            RunPreparation::AnchorResume => {
                RunEvent::ResumeAnchored { from: start_run::anchor_resume(&context)?.to_string() }
            }
            RunPreparation::Resume(order) => {
                start_run::resume_run(&context, order)?;
                RunEvent::Resumed
            }
        })
    })
}

/// Returns the ids, in lower case, that references have or leave no room for.
pub fn used_run_ids(repository: &Repository) -> Result<BTreeSet<String>, GitError> {
    Ok(repository.list_refs()?.keys().filter_map(|name| run_of_ref(name)).map(str::to_lowercase).collect())
}

/// Returns the id of a run that has made nothing yet: its own, or the next free one if that was taken while it waited
/// for its turn.
fn settle_id(context: &RunContext, stem: &str, runs: &[RunRecord]) -> Result<String, PrepareError> {
    let used = used_run_ids(&context.repository()?)?;
    if !used.contains(&context.run.to_lowercase()) {
        return Ok(context.run.clone());
    }
    let is_known = |id: &str| runs.iter().any(|run| run.id.eq_ignore_ascii_case(id));
    Ok(free_id(stem, |id| used.contains(id) || is_known(id)))
}

/// Gives a run another id, since a branch with its own has appeared; the run continues at its next turn.
async fn rename_run(worker: &mut RepoWorker, id: &str, settled: &str) -> Result<(), RunError> {
    let message = format!("runner/{id} appeared while the run waited, and is not its branch: the run is {settled} now");
    worker.queue.publish_event(id, None, EventKind::Warning { message });
    changes::rename_run(&mut worker.queue, id, settled)?;
    worker.apply_event(id, RunEvent::IdSettled { id: settled.to_owned() }).await?;
    for (waiting, _) in worker.queue.step_waiters.iter_mut().filter(|(waiting, _)| waiting == id) {
        settled.clone_into(waiting);
    }
    Ok(())
}

/// Sets up the workspace of an isolated run, unless that was done.
async fn run_setup(worker: &mut RepoWorker, context: &RunContext) -> Result<SetupOutcome, PrepareError> {
    let Some(loaded) = block_in_place(|| setup::find_pending_setup(context))? else { return Ok(SetupOutcome::Done) };
    worker.refresh_view();
    worker.queue.show_preparation(PhaseName::Open);
    worker.queue.publish_event(&context.run, None, EventKind::Phase { phase: PhaseName::Open, node: None });
    let stop = CancellationToken::new();
    let outcome =
        mailbox::serve_until_done(&mut worker.queue, Box::pin(setup::run_setup(context, &loaded, &stop)), &stop).await;
    worker.refresh_view();
    outcome
}

/// Runs the guard on the base, unless that was done; false if it was stopped before its end.
async fn run_baseline(worker: &mut RepoWorker, context: &RunContext) -> Result<bool, PrepareError> {
    let Some(loaded) = block_in_place(|| baseline::find_missing_baseline(context))? else { return Ok(true) };
    worker.refresh_view();
    worker.queue.show_preparation(PhaseName::Guard);
    worker.queue.publish_event(&context.run, None, EventKind::Phase { phase: PhaseName::Guard, node: None });
    let stop = CancellationToken::new();
    let ended =
        mailbox::serve_until_done(&mut worker.queue, Box::pin(baseline::run_baseline(context, &loaded, &stop)), &stop)
            .await;
    worker.refresh_view();
    let result = worker.queue.view.as_ref().and_then(|view| view.baseline);
    if matches!(result, Some(GuardOutcome::Fail | GuardOutcome::Skipped)) {
        let log = context.layout.run_records(&context.run).join("baseline.log");
        let message = format!("the guard fails on the base commit, before any session; see {}", log.display());
        worker.queue.publish_event(&context.run, None, EventKind::Warning { message });
    }
    ended
}
