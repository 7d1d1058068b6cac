//! A worker's turns with its queue: recover, then prepare, iterate and follow, one run at a time, until the daemon leaves.

use std::sync::Arc;

use protocol::event::EventKind;
use protocol::view::{StatusView, StopReason};
use protocol::words::RunStatus;
use runner_core::iteration::{Over, Phase};
use runner_core::run::{self, Effect, Event, Turn};
use tokio::sync::{mpsc, watch};
use tokio::task::block_in_place;

use super::control::IterationControl;
use super::follow_up::{self, Notices, Settled};
use super::worker::{Means, Then, Worker};
use super::{give_up, hooks, mailbox, prepare, recover};
use crate::causes::in_one_line;
use crate::clock;
use crate::git::{GitError, Repository};
use crate::obstruction::obstruction;
use crate::store::{RepoFile, Store};
use crate::worker::Handle;
use crate::worker::claim::Claim;
use crate::worker::context::RunContext;
use crate::worker::failure::Failure;
use crate::worker::iteration::drive::{Drive, DriveError, Drove};
use crate::worker::iteration::effects::Effects;
use crate::worker::iteration::log::{Entries, JournalLog};
use crate::worker::publication;
use crate::worker::queue::{RepoQueue, Wires};
use crate::worker::requests::{self, changes};
use crate::worker::trusted::Trusted;
use crate::worker::view::snapshot;

/// Requests that may wait for a worker.
const MAILBOX: usize = 64;

/// Sets up the worker of a repository; the future is its life.
pub fn spawn(means: Means, store: Store, file: RepoFile) -> (Handle, impl Future<Output = ()> + Send) {
    let (handle, worker) = employ(means, store, Some(file));
    (handle, live(worker))
}

/// Sets up the worker of a repository whose record cannot be read: it is held, and its files stay as they are.
pub fn spawn_held(means: Means, store: Store) -> (Handle, impl Future<Output = ()> + Send) {
    let (handle, worker) = employ(means, store, None);
    (handle, live(worker))
}

/// Sets up the worker of a repository whose last one met a bug: it is held until somebody resumes it.
pub fn spawn_after_bug(means: Means, store: Store, what: &str) -> (Handle, impl Future<Output = ()> + Send + use<>) {
    let file = store.take_over().ok().flatten();
    let (handle, mut worker) = employ(means, store, file);
    let message = format!("a bug of the daemon ended the work on this repository: {what}");
    worker.bug = Some(StopReason::new(
        message,
        "the daemon's log has more; nothing is lost, and it goes on with: runnerctl resume",
    ));
    (handle, live(worker))
}

/// Sets up a worker; without a record it must write none.
fn employ(means: Means, store: Store, file: Option<RepoFile>) -> (Handle, Worker) {
    let frozen = file.is_none();
    let file = file.unwrap_or_else(|| RepoFile::unknown(store.id().to_owned()));
    let (sender, mailbox) = mpsc::channel(MAILBOX);
    let (id, source) = (file.id.clone(), file.source.clone().map(Arc::new));
    let containment = means.launcher.offer().level();
    let run = run::current(&file.runs).map(|run| snapshot::blank(run, containment));
    let repo = snapshot::repo_view(&file, None);
    let (status, seen) = watch::channel(Arc::new(StatusView { repo, run, isolated: Vec::new() }));
    let wires = Wires {
        own: sender.downgrade(),
        mailbox,
        status,
        events: means.events.clone(),
        hidden: means.hidden.clone(),
        shutdown: means.shutdown.clone(),
        drain: means.drain.clone(),
        containment,
        inhibitor: means.inhibitor.clone(),
        slots: means.slots.clone(),
        upstream: means.upstream.clone(),
    };
    let mut queue = RepoQueue::new(store, file, wires);
    queue.frozen = frozen;
    let (drain, shutdown) = (means.drain.clone(), means.shutdown.clone());
    (
        Handle { id, source, mailbox: sender, status: seen, drain, shutdown },
        Worker { queue, means, recorded: None, tries: 0, bug: None, hook: None },
    )
}

async fn live(mut worker: Worker) {
    if let Some(bug) = worker.bug.take() {
        worker.queue.held = Some(bug.clone());
        worker.refresh();
        // Whoever waits for the run has heard of nothing yet.
        if let Some(run) = worker.queue.current().map(|run| run.id.clone()) {
            let held = EventKind::RunState { state: RunStatus::Held, reason: Some(bug), until: None };
            worker.queue.tell(&run, None, held);
        }
    } else {
        recover::recover(&mut worker);
        changes::commit_changes_at_rest(&mut worker.queue);
        publication::publish_at_rest(&mut worker.queue);
        hooks::give_up_begun_hooks(&mut worker);
    }
    loop {
        worker.queue.mind_sleep();
        hooks::start_hook(&mut worker);
        match worker.queue.turn(clock::now()) {
            None => return leave(worker).await,
            Some(Turn::Run(run)) => Box::pin(take_turn(&mut worker, &run, false)).await,
            Some(Turn::Step(run)) => Box::pin(take_turn(&mut worker, &run, true)).await,
            Some(Turn::Rest(until)) => mailbox::rest(&mut worker.queue, until).await,
        }
        if let Some(message) = worker.queue.recheck.take() {
            recover::recover(&mut worker);
            requests::answer_rechecked(&mut worker.queue, message);
        } else if worker.queue.look_again.is_some_and(|wait| wait.is_over(clock::now())) {
            recover::recover(&mut worker);
        } else if worker.queue.outlet.is_due() {
            publication::publish_again(&mut worker.queue);
        }
    }
}

/// Ends when the hook has: none of its processes outlives the daemon.
async fn leave(worker: Worker) {
    let Worker { queue, hook, .. } = worker;
    // Nobody reads its report any more, and it must not wait for that.
    drop(queue);
    if let Some(hook) = hook
        && let Err(error) = hook.await
    {
        tracing::error!(error = in_one_line(&error), "a hook met a bug");
    }
}

async fn take_turn(worker: &mut Worker, run: &str, is_step: bool) {
    let slots = worker.means.slots.clone();
    let slot = tokio::select! {
        biased;
        // What a person has cancelled begins nothing, and ends though all places are taken.
        () = std::future::ready(()), if worker.queue.is_cancelled(run) => None,
        slot = slots.acquire() => slot,
        () = mailbox::rest(&mut worker.queue, None) => return,
    };
    if !recover::read_again(worker) {
        return;
    }
    worker.queue.slot = slot;
    worker.queue.set_live(Some(run));
    let driven = Box::pin(drive_run(worker, run, is_step)).await;
    match driven {
        Ok(()) => worker.tries = 0,
        Err(error) if worker.queue.is_shutting_down() => {
            tracing::warn!(repo = worker.queue.file.id, run, error = in_one_line(&error), "left as it is");
            return;
        }
        Err(error) => stopped_by(worker, run, &error).await,
    }
    worker.queue.slot = None;
    worker.queue.set_live(None);
    worker.queue.last_load.clear();
    changes::commit_changes_at_rest(&mut worker.queue);
    publication::publish_at_rest(&mut worker.queue);
    worker.refresh();
    if !worker.is_running(run) {
        let iteration = worker.queue.view.as_ref().and_then(|view| view.recent.first().cloned());
        let iteration = iteration.filter(|iteration| Some(iteration.iter) == worker.queue.stepped_iter);
        worker.queue.stepped(run, iteration.as_ref());
    }
}

/// Waits if what has ended a turn passes by itself, else holds the run: what is journaled is gone through again. A run that
/// a person has cancelled ends.
async fn stopped_by(worker: &mut Worker, id: &str, error: &Failure) {
    worker.tries = worker.tries.saturating_add(1);
    let gone = publication::workspace_gone(&worker.queue.file);
    let mut obstruction = gone.unwrap_or_else(|| obstruction(error));
    if worker.queue.is_cancelled(id) {
        give_up::tidy(worker, id, &mut obstruction);
    }
    let what = &obstruction.what;
    match worker.happens(id, Event::Obstructed(obstruction.clone())).await {
        Ok(effects) if effects.contains(&Effect::RemoveJournal) => worker.close_journal(),
        Ok(effects) if effects.iter().any(|effect| matches!(effect, Effect::WaitOut(_))) => {
            worker.wait_for_obstacle(id, &obstruction, worker.tries).await;
        }
        Ok(_) => tracing::error!(repo = worker.queue.file.id, run = id, what, "run held"),
        Err(illegal) => {
            let bug = in_one_line(&illegal);
            tracing::error!(repo = worker.queue.file.id, run = id, what, bug, "the run has come to rest before");
        }
    }
    recover::recover(worker);
}

async fn drive_run(worker: &mut Worker, id: &str, is_step: bool) -> Result<(), Failure> {
    worker.queue.stepped_iter = None;
    worker.happens(id, Event::Turn { step: is_step }).await?;
    let Some(_claim) = claim(worker, id).await? else { return Ok(()) };
    let mut is_first = true;
    while prepare::prepare(worker, id, is_first).await? {
        is_first = false;
        hooks::start_hook(worker);
        worker.refresh();
        let Then::GoOn = Box::pin(iterate(worker, id)).await? else { return Ok(()) };
        if worker.queue.is_leaving() {
            return Ok(());
        }
    }
    Ok(())
}

/// Takes the repository, waiting until no other daemon drives it; nothing if the turn is to end before that.
async fn claim(worker: &mut Worker, id: &str) -> Result<Option<Claim>, Failure> {
    let folder = worker.queue.file.common_dir.clone();
    for tries in 1.. {
        // An iteration that a previous life has left is brought to its end before a run ends.
        if worker.queue.is_shutting_down() || worker.recorded.is_none() && worker.stopped_before_work(id).await? {
            break;
        }
        match Claim::take(folder.as_path()) {
            Ok(claim) => return Ok(Some(claim)),
            Err(taken) => {
                let taken = obstruction(&taken);
                if !worker.wait_for_obstacle(id, &taken, tries).await {
                    return Err(DriveError::Obstructed(taken).into());
                }
            }
        }
    }
    Ok(None)
}

/// Runs one iteration and writes down what follows from it.
async fn iterate(worker: &mut Worker, id: &str) -> Result<Then, Failure> {
    let Some(run) = worker.queue.run(id).cloned() else { return Ok(Then::Rest) };
    let context = worker.context(&run)?;
    let entries = Entries::default();
    let (phase, mut log) = match worker.recorded.clone().filter(|recorded| recorded.header.run == id) {
        Some(recorded) => recover::reopen(worker, &context, recorded, &entries).await?,
        None => (Phase::Open, JournalLog::new(&worker.queue.store, &context.run, entries.clone())),
    };
    let mut scene = Effects::new(context.clone(), log.header.mark.clone(), log.header.policy.clone(), entries);
    let mut pilot = IterationControl::new(&mut worker.queue, id);
    let drove = Drive { world: &mut scene, control: &mut pilot, log: &mut log, heard: None }.run(phase).await;
    match drove? {
        Drove::Left => Ok(Then::Rest),
        Drove::Over(Over::Untouched) => {
            let then = follow_up::untouched(worker, id, scene.found.take()).await?;
            worker.close_journal();
            Ok(then)
        }
        Drove::Over(Over::Settled { verdict, commit }) => {
            let task = log.task().ok_or(Failure::NotOpened)?;
            // Whoever sees that the run has stopped finds its branch where it is published.
            publication::publish_commit(&mut worker.queue);
            let seen = Notices { secrets: log.secrets_seen(), moved_refs: log.moved_refs() };
            let commit = commit.as_deref();
            let mark = log.header.mark.as_str();
            let facts = log.session_facts();
            let settled =
                Settled { context: &context, mark, task: &task, verdict: &verdict, facts: &facts, seen: &seen, commit };
            let then = follow_up::settled(worker, id, settled).await?;
            worker.sweep_live();
            worker.close_journal();
            keep_small(&worker.queue, &context);
            Ok(then)
        }
    }
}

/// Packs what the commits of many iterations have left one by one, also in the repository that they are published to; the run
/// goes on without where that fails.
fn keep_small(queue: &RepoQueue, context: &RunContext) {
    let pack = |repository: &Repository| -> Result<(), GitError> {
        match repository.loose_in_one_folder()? {
            found if run::is_to_be_packed(found) && !repository.is_left_unpacked()? => repository.pack_objects(),
            _ => Ok(()),
        }
    };
    let packed: Result<(), GitError> = block_in_place(|| {
        let repository = context.repository()?;
        pack(&repository)?;
        match &queue.file.source {
            Some(source) => {
                let store = queue.store.of(source.common_dir.as_path());
                pack(&Trusted::of(&store, source.path.as_path()).bound()?)
            }
            None => Ok(()),
        }
    });
    if let Err(error) = packed {
        tracing::warn!(run = context.run, error = in_one_line(&error), "git's objects are not packed");
    }
}
