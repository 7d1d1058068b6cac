//! What comes before an iteration: the run's beginning, one step after the other, the baseline, and what people have asked.

use protocol::event::EventKind;
use protocol::words::{GuardOutcome, PhaseName};
use runner_core::run::{End, Event, Next, Preparation, RunRecord};
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::setup::{self, Setup};
use super::worker::Worker;
use super::{baseline, begin, mailbox};
use crate::obstruction::obstruction;
use crate::worker::context::RunContext;
use crate::worker::failure::Failure;
use crate::worker::publication;
use crate::worker::requests::changes;
use crate::worker::unready::Unready;

/// Does what is to be done before the next iteration; false if the run cannot go on now.
pub(crate) async fn prepare(worker: &mut Worker, id: &str, is_first: bool) -> Result<bool, Failure> {
    if worker.recorded.as_ref().is_some_and(|recorded| recorded.header.run == id) {
        return Ok(true);
    }
    let mut needs_setup = is_first && worker.queue.file.source.is_some();
    let mut needs_baseline = is_first;
    let mut tries = 0;
    loop {
        if worker.queue.is_shutting_down() || worker.stopped_before_work(id).await? {
            return Ok(false);
        }
        let Some(run) = worker.queue.run(id).cloned() else { return Ok(false) };
        let done = match run.preparation() {
            Some(step) => do_step(worker, &run, &step).map(Some),
            None if needs_setup => {
                let context = worker.context(&run)?;
                match run_setup(worker, &context).await {
                    Ok(Setup::Done) => {
                        needs_setup = false;
                        Ok(None)
                    }
                    // What stops it takes effect at the next look.
                    Ok(Setup::Stopped) => Ok(None),
                    Ok(Setup::Failed(reason)) => {
                        worker.happens(id, Event::Declined(Next::End { end: End::Failed, reason })).await?;
                        return Ok(false);
                    }
                    Err(error) => Err(error),
                }
            }
            None => match begun(worker, &run, &mut needs_baseline).await {
                Ok(true) => return Ok(true),
                Ok(false) => Ok(None),
                Err(error) => Err(error),
            },
        };
        match done {
            Ok(None) => {}
            Ok(Some(event)) => drop(worker.happens(id, event).await?),
            Err(Unready::Hold(why)) => {
                worker.happens(id, Event::Hold(why)).await?;
                return Ok(false);
            }
            Err(Unready::Obstacle(obstacle)) => {
                tries += 1;
                if !worker.wait_for_obstacle(id, &obstruction(&*obstacle), tries).await {
                    return Err(obstacle.into());
                }
            }
        }
    }
}

/// Publishes what is committed, runs the guard on the base once, and commits what people have asked; true if nothing of it
/// is left to do.
async fn begun(worker: &mut Worker, run: &RunRecord, needs_baseline: &mut bool) -> Result<bool, Unready> {
    publication::publish_before_work(&mut worker.queue)?;
    if *needs_baseline {
        let context = worker.context(run)?;
        *needs_baseline = !run_baseline(worker, &context).await?;
        return Ok(false);
    }
    if worker.queue.changes.queue.is_empty() {
        return Ok(true);
    }
    changes::commit_changes(&mut worker.queue)?;
    publication::publish_before_work(&mut worker.queue).map(|()| true)
}

/// Does the next step of a beginning; it is written down before the one after it.
fn do_step(worker: &mut Worker, run: &RunRecord, step: &Preparation) -> Result<Event, Unready> {
    let (context, previous) = (worker.context(run)?, worker.previous(&run.id));
    block_in_place(|| {
        Ok(match step {
            Preparation::Begin(order) => {
                begin::begin(&context, order, previous.as_deref())?;
                Event::Begun
            }
            Preparation::TakeUp => Event::TakenUp { from: begin::take_up(&context)?.to_string() },
            Preparation::Resume(order) => {
                begin::resume(&context, order)?;
                Event::Resumed
            }
        })
    })
}

/// Makes the workspace of an isolated run ready, if that has not been done.
async fn run_setup(worker: &mut Worker, context: &RunContext) -> Result<Setup, Unready> {
    let Some(loaded) = block_in_place(|| setup::needed(context))? else { return Ok(Setup::Done) };
    worker.refresh();
    worker.queue.show_preparation(PhaseName::Open);
    worker.queue.tell(&context.run, None, EventKind::Phase { phase: PhaseName::Open, node: None });
    let stop = CancellationToken::new();
    let ended = mailbox::attend(&mut worker.queue, Box::pin(setup::setup(context, &loaded, &stop)), &stop).await;
    worker.refresh();
    ended
}

/// Runs the guard on the base, if that has not been done; false if it was stopped before its end.
async fn run_baseline(worker: &mut Worker, context: &RunContext) -> Result<bool, Unready> {
    let Some(loaded) = block_in_place(|| baseline::needed(context))? else { return Ok(true) };
    worker.refresh();
    worker.queue.show_preparation(PhaseName::Guard);
    worker.queue.tell(&context.run, None, EventKind::Phase { phase: PhaseName::Guard, node: None });
    let stop = CancellationToken::new();
    let ended = mailbox::attend(&mut worker.queue, Box::pin(baseline::baseline(context, &loaded, &stop)), &stop).await;
    worker.refresh();
    let result = worker.queue.view.as_ref().and_then(|view| view.baseline);
    if matches!(result, Some(GuardOutcome::Fail | GuardOutcome::Skipped)) {
        let log = context.layout.run_records(&context.run).join("baseline.log");
        let message = format!("the guard fails on the base commit, before any session; see {}", log.display());
        worker.queue.tell(&context.run, None, EventKind::Warning { message });
    }
    ended
}
