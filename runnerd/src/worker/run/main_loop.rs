//! The loop of a worker: recover, then prepare, iterate and follow up, one run at a time, until the daemon shuts down.

use std::sync::Arc;

use protocol::event::EventKind;
use protocol::view::{StatusView, StopReason};
use protocol::words::RunStatus;
use runner_core::iteration::{IterationEnd, Phase};
use runner_core::run::{self, QueueTurn, RunAction, RunEvent};
use runner_git::{GitError, Repository};
use runner_os::clock;
use runner_os::error_chain::display_chain;
use runner_os::retryable::describe_blocker;
use tokio::sync::{mpsc, watch};
use tokio::task::block_in_place;

use super::control::IterationControl;
use super::follow_up::{self, FollowUpInput, IterationNotices};
use super::worker::{RepoWorker, RunFlow, WorkerDeps};
use super::{cancel_cleanup, hooks, mailbox, prepare, recover};
use crate::store::{RepoFile, RepoStore};
use crate::worker::claim::RepoClaim;
use crate::worker::context::RunContext;
use crate::worker::goal_files;
use crate::worker::iteration::drive::{DriveError, DriveOutcome, IterationDriver};
use crate::worker::iteration::effects::LiveEffects;
use crate::worker::iteration::log::{JournalLog, SharedEntries};
use crate::worker::pinned_repo::PinnedRepo;
use crate::worker::publication;
use crate::worker::queue::{QueueIo, RepoQueue};
use crate::worker::requests::{self, changes};
use crate::worker::run_error::RunError;
use crate::worker::view::snapshot;
use crate::worker::{KnownRuns, WorkerHandle};

/// Capacity of a worker's mailbox.
const MAILBOX_CAPACITY: usize = 64;

/// Creates the worker of a repository; the future runs it to its end.
pub fn spawn(deps: WorkerDeps, store: RepoStore, file: RepoFile) -> (WorkerHandle, impl Future<Output = ()> + Send) {
    let (handle, worker) = create_worker(deps, store, Some(file));
    (handle, run_loop(worker))
}

/// Creates the worker of a repository whose record cannot be read: it is held, and its files are left as they are.
pub fn spawn_held(deps: WorkerDeps, store: RepoStore) -> (WorkerHandle, impl Future<Output = ()> + Send) {
    let (handle, worker) = create_worker(deps, store, None);
    (handle, run_loop(worker))
}

/// Creates the worker of a repository whose previous worker hit a bug: it is held until a person resumes it.
pub fn spawn_after_bug(
    deps: WorkerDeps,
    store: RepoStore,
    what: &str,
) -> (WorkerHandle, impl Future<Output = ()> + Send + use<>) {
    let file = store.take_over().ok().flatten();
    let (handle, mut worker) = create_worker(deps, store, file);
    let message = format!("a bug of the daemon ended the work on this repository: {what}");
    worker.bug = Some(StopReason::new(
        message,
        "the daemon's log has more; nothing is lost, and it continues with: runnerctl resume",
    ));
    (handle, run_loop(worker))
}

/// Creates a worker; without a record it must not write one.
fn create_worker(deps: WorkerDeps, store: RepoStore, file: Option<RepoFile>) -> (WorkerHandle, RepoWorker) {
    let frozen = file.is_none();
    let file = file.unwrap_or_else(|| RepoFile::placeholder(store.id().to_owned()));
    let (sender, mailbox) = mpsc::channel(MAILBOX_CAPACITY);
    let id = file.id.clone();
    let source = file.source.clone().map(Arc::new);
    let containment = deps.launcher.capabilities().level();
    let run = run::current_run(&file.runs).map(|run| snapshot::blank_view(run, containment));
    let repo = snapshot::repo_view(&file, None);
    let (status, status_receiver) =
        watch::channel(Arc::new(StatusView { repo, run, isolated: Vec::new(), on_run: None }));
    let known_runs = KnownRuns::default();
    let io = QueueIo {
        known_runs: Arc::clone(&known_runs),
        own_sender: sender.downgrade(),
        mailbox,
        status,
        events: deps.events.clone(),
        redactor: deps.redactor.clone(),
        shutdown: deps.shutdown.clone(),
        drain: deps.drain.clone(),
        containment,
        inhibitor: deps.inhibitor.clone(),
        slots: deps.slots.clone(),
        upstream: deps.upstream.clone(),
    };
    let mut queue = RepoQueue::new(store, file, io);
    queue.is_frozen = frozen;
    let drain = deps.drain.clone();
    let shutdown = deps.shutdown.clone();
    (
        WorkerHandle { id, source, mailbox: sender, status: status_receiver, known_runs, drain, shutdown },
        RepoWorker { queue, deps, unfinished_journal: None, failed_turns: 0, bug: None, hook: None },
    )
}

async fn run_loop(mut worker: RepoWorker) {
    if let Some(bug) = worker.bug.take() {
        worker.queue.held = Some(bug.clone());
        worker.refresh_view();
        // Clients waiting for the run have not been notified yet.
        if let Some(run) = worker.queue.current_run().map(|run| run.id.clone()) {
            let held = EventKind::RunState { state: RunStatus::Held, reason: Some(bug), until: None };
            worker.queue.publish_event(&run, None, held);
        }
    } else {
        recover::recover_state(&mut worker);
        changes::commit_changes_when_idle(&mut worker.queue);
        publication::publish_when_idle(&mut worker.queue);
        hooks::fail_interrupted_hooks(&mut worker);
    }
    loop {
        worker.queue.update_inhibitor();
        goal_files::hide_goal_files(&worker.queue);
        hooks::start_hook(&mut worker);
        match worker.queue.next_turn(clock::now()) {
            None => return shut_down(worker).await,
            Some(QueueTurn::Run(run)) => Box::pin(take_turn(&mut worker, &run, false)).await,
            Some(QueueTurn::Step(run)) => Box::pin(take_turn(&mut worker, &run, true)).await,
            Some(QueueTurn::Idle(until)) => mailbox::wait_for_request(&mut worker.queue, until).await,
        }
        if let Some(message) = worker.queue.recheck_request.take() {
            recover::recover_state(&mut worker);
            requests::answer_rechecked_request(&mut worker.queue, message);
        } else if worker.queue.recheck_wait.is_some_and(|wait| wait.is_over(clock::now())) {
            recover::recover_state(&mut worker);
        } else if worker.queue.publish_state.is_due() {
            publication::retry_publish(&mut worker.queue);
        }
    }
}

/// Waits for the hook to end: none of its processes outlives the daemon.
async fn shut_down(worker: RepoWorker) {
    let RepoWorker { queue, hook, .. } = worker;
    // Its report is no longer read, and it must not block on sending it.
    drop(queue);
    if let Some(hook) = hook
        && let Err(error) = hook.await
    {
        tracing::error!(error = display_chain(&error), "a hook task panicked");
    }
}

async fn take_turn(worker: &mut RepoWorker, run: &str, is_step: bool) {
    let slots = worker.deps.slots.clone();
    let slot = tokio::select! {
        biased;
        // A cancelled run starts nothing, and ends even if all slots are taken.
        () = std::future::ready(()), if worker.queue.is_cancelled(run) => None,
        slot = slots.acquire() => slot,
        () = mailbox::wait_for_request(&mut worker.queue, None) => return,
    };
    if !recover::reread_journal(worker) {
        return;
    }
    worker.queue.slot = slot;
    worker.queue.set_live_run(Some(run));
    let result = Box::pin(drive_run(worker, run, is_step)).await;
    match result {
        Ok(()) => worker.failed_turns = 0,
        Err(error) if worker.queue.is_shutting_down() => {
            tracing::warn!(repo = worker.queue.file.id, run, error = display_chain(&error), "left as it is");
            return;
        }
        Err(error) => handle_error(worker, run, &error).await,
    }
    worker.queue.slot = None;
    worker.queue.set_live_run(None);
    worker.queue.last_load.clear();
    changes::commit_changes_when_idle(&mut worker.queue);
    publication::publish_when_idle(&mut worker.queue);
    worker.refresh_view();
    if !worker.is_running(run) {
        let iteration = worker.queue.view.as_ref().and_then(|view| view.recent.first().cloned());
        let iteration = iteration.filter(|iteration| Some(iteration.iter) == worker.queue.stepped_iter);
        worker.queue.answer_steps(run, iteration.as_ref());
    }
}

/// Waits if the error that ended a turn is transient, else holds the run; the journal is replayed later. A cancelled
/// run ends.
async fn handle_error(worker: &mut RepoWorker, id: &str, error: &RunError) {
    worker.failed_turns = worker.failed_turns.saturating_add(1);
    let missing_workspace = publication::missing_workspace_blocker(&worker.queue.file);
    let mut blocker = missing_workspace.unwrap_or_else(|| describe_blocker(error));
    if worker.queue.is_cancelled(id) {
        cancel_cleanup::clean_up_run(worker, id, &mut blocker);
    }
    let what = &blocker.what;
    match worker.apply_event(id, RunEvent::Blocked(blocker.clone())).await {
        Ok(effects) if effects.contains(&RunAction::RemoveJournal) => worker.remove_journal(),
        Ok(effects) if effects.iter().any(|effect| matches!(effect, RunAction::RetryLater(_))) => {
            worker.wait_for_blocker(id, &blocker, worker.failed_turns).await;
        }
        Ok(_) => tracing::error!(repo = worker.queue.file.id, run = id, what, "run held"),
        Err(illegal) => {
            let bug = display_chain(&illegal);
            tracing::error!(repo = worker.queue.file.id, run = id, what, bug, "the run had already stopped");
        }
    }
    recover::recover_state(worker);
}

async fn drive_run(worker: &mut RepoWorker, id: &str, is_step: bool) -> Result<(), RunError> {
    worker.queue.stepped_iter = None;
    worker.apply_event(id, RunEvent::Turn { step: is_step }).await?;
    let Some(_claim) = acquire_claim(worker, id).await? else { return Ok(()) };
    let mut is_first = true;
    while prepare::prepare_iteration(worker, id, is_first).await? {
        is_first = false;
        hooks::start_hook(worker);
        worker.refresh_view();
        let RunFlow::Continue = Box::pin(run_iteration(worker, id)).await? else { return Ok(()) };
        if worker.queue.is_draining() {
            return Ok(());
        }
    }
    Ok(())
}

/// Claims the repository, waiting until no other daemon drives it; `None` if the turn must end before that.
async fn acquire_claim(worker: &mut RepoWorker, id: &str) -> Result<Option<RepoClaim>, RunError> {
    let folder = worker.queue.file.common_dir.clone();
    for tries in 1.. {
        // An iteration left by an earlier daemon process is finished before a run ends.
        if worker.queue.is_shutting_down()
            || worker.unfinished_journal.is_none() && worker.apply_pending_stop(id).await?
        {
            break;
        }
        match RepoClaim::acquire(folder.as_path()) {
            Ok(claim) => return Ok(Some(claim)),
            Err(taken) => {
                let blocker = describe_blocker(&taken);
                if !worker.wait_for_blocker(id, &blocker, tries).await {
                    return Err(DriveError::Blocked(blocker).into());
                }
            }
        }
    }
    Ok(None)
}

/// Runs one iteration and writes down what follows from it.
async fn run_iteration(worker: &mut RepoWorker, id: &str) -> Result<RunFlow, RunError> {
    let Some(run) = worker.queue.find_run(id).cloned() else { return Ok(RunFlow::Pause) };
    let context = worker.run_context(&run)?;
    let entries = SharedEntries::default();
    let (phase, mut log) = match worker.unfinished_journal.clone().filter(|recorded| recorded.header.run == id) {
        Some(recorded) => recover::reopen_journal(worker, &context, recorded, &entries).await?,
        None => (Phase::Open, JournalLog::new(&worker.queue.store, &context.run, entries.clone())),
    };
    let mut world = LiveEffects::new(context.clone(), log.header.mark.clone(), log.header.policy.clone(), entries);
    let mut control = IterationControl::new(&mut worker.queue, id);
    let mut driver = IterationDriver { world: &mut world, control: &mut control, log: &mut log, pending_stop: None };
    let outcome = Box::pin(driver.drive_iteration(phase)).await;
    match outcome? {
        DriveOutcome::Suspended => Ok(RunFlow::Pause),
        DriveOutcome::Finished(IterationEnd::Untouched) => {
            let flow = follow_up::follow_untouched(worker, id, world.open_outcome.take()).await?;
            worker.remove_journal();
            Ok(flow)
        }
        DriveOutcome::Finished(IterationEnd::Settled { verdict, commit }) => {
            let task = log.task().ok_or(RunError::IterationNotOpened)?;
            // A client that sees the run stopped finds its branch published.
            publication::publish_commit(&mut worker.queue);
            let notices = IterationNotices { secrets: log.found_secrets(), moved_refs: log.moved_refs() };
            let commit = commit.as_deref();
            let mark = log.header.mark.as_str();
            let facts = log.session_facts();
            let settled = FollowUpInput {
                context: &context,
                mark,
                task: &task,
                verdict: &verdict,
                facts: &facts,
                notices: &notices,
                commit,
            };
            let flow = follow_up::follow_settled(worker, id, settled).await?;
            worker.remove_live_files();
            worker.remove_journal();
            pack_objects(&worker.queue, &context);
            Ok(flow)
        }
    }
}

/// Packs the loose objects of many iterations, also in the repository that they are published to; a failure does not
/// stop the run.
fn pack_objects(queue: &RepoQueue, context: &RunContext) {
    let pack = |repository: &Repository| -> Result<(), GitError> {
        match repository.count_loose_sample()? {
            count if run::needs_packing(count) && !repository.is_auto_gc_disabled()? => repository.pack_objects(),
            _ => Ok(()),
        }
    };
    let result: Result<(), GitError> = block_in_place(|| {
        let repository = context.repository()?;
        pack(&repository)?;
        match &queue.file.source {
            Some(source) => {
                let store = queue.store.for_repository(source.common_dir.as_path());
                pack(&PinnedRepo::for_work_tree(&store, source.path.as_path()).open()?)
            }
            None => Ok(()),
        }
    });
    if let Err(error) = result {
        tracing::warn!(run = context.run, error = display_chain(&error), "failed to pack git's objects");
    }
}
