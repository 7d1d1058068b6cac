//! What follows from an iteration: told to subscribers, decided by `runner_core::run`, and written down.

use protocol::event::EventKind;
use protocol::meta::SecretSeen;
use protocol::words::GuardOutcome;
use runner_core::fallback::Outage;
use runner_core::run::{self, Event, IllegalEvent, Next};
use runner_core::tree;
use runner_core::verdict::{Task, Verdict, row};
use tokio::task::block_in_place;

use super::hooks;
use crate::clock;
use crate::git::CommitInfo;
use crate::worker::context::RunContext;
use crate::worker::failure::Failure;
use crate::worker::iteration::log::SessionFacts;
use crate::worker::iteration::open::Found;
use crate::worker::load::Loaded;
use crate::worker::run::worker::{Then, Worker};

/// What people are told of an iteration, and what decides nothing.
#[derive(Debug, Clone)]
pub(crate) struct Notices {
    /// Files of the session that hold secrets.
    pub(crate) secrets: Vec<SecretSeen>,
    /// References of others that its processes moved.
    pub(crate) moved_refs: Vec<String>,
}

/// An iteration that was settled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settled<'a> {
    /// Where it took place.
    pub(crate) context: &'a RunContext,
    /// Its mark, which no other iteration has.
    pub(crate) mark: &'a str,
    /// What it was about.
    pub(crate) task: &'a Task,
    /// How it ended.
    pub(crate) verdict: &'a Verdict,
    /// Its session.
    pub(crate) facts: &'a SessionFacts,
    /// What was found in passing.
    pub(crate) seen: &'a Notices,
    /// Its commit, where it has one.
    pub(crate) commit: Option<&'a str>,
}

/// Follows an iteration that began nothing.
pub(crate) async fn untouched(worker: &mut Worker, id: &str, found: Option<Found>) -> Result<Then, IllegalEvent> {
    let event = match found {
        Some(Found::Next(next)) => return follow(worker, id, next, Event::Declined).await,
        Some(Found::Hold(why)) => Event::Hold(why),
        Some(Found::Task(..)) | None => Event::Between,
    };
    worker.happens(id, event).await?;
    Ok(Then::Rest)
}

/// Follows an iteration that was settled.
pub(crate) async fn settled(worker: &mut Worker, id: &str, settled: Settled<'_>) -> Result<Then, Failure> {
    let Settled { context, verdict, commit, .. } = settled;
    let (loaded, made) = block_in_place(|| -> Result<_, Failure> {
        let repository = context.repository()?;
        let tip = repository.branch(&context.branch())?.ok_or(Failure::NoBranch)?;
        let made = commit.map(str::parse).transpose()?;
        let made = made.map(|made| repository.first_parents(&made, 1)).transpose()?;
        Ok((context.last_load.load(&repository, tip)?, made.and_then(|made| made.into_iter().next())))
    })?;
    tell_settled(worker, &loaded, settled, made.as_ref());
    learn(worker, id, settled).await?;
    hooks::tell_questions(worker, context, settled.task, &loaded);
    let Some(run) = worker.queue.run(id) else { return Ok(Then::Rest) };
    let next = run::next(&loaded.standing(&run.uncommitted), Some(verdict), run.asked);
    if !matches!(next, Next::GoOn(_)) {
        // Whoever sees that the run has stopped sees all that led to it.
        worker.refresh();
    }
    Ok(follow(worker, id, next, Event::Followed).await?)
}

/// Keeps what no commit holds of an iteration.
async fn learn(worker: &mut Worker, id: &str, settled: Settled<'_>) -> Result<(), IllegalEvent> {
    let Settled { mark, task, verdict, facts, commit, .. } = settled;
    let Some(run) = worker.queue.run(id) else { return Ok(()) };
    let is_committed = commit.is_some();
    let seen = run::Settled { mark, task, verdict, is_reviewed: facts.is_reviewed, spent: &facts.spent, is_committed };
    let Some(after) = run.uncommitted.after(seen, clock::now()) else { return Ok(()) };
    if let (Verdict::Unavailable { .. }, Some(Outage { kind, why, wait, .. })) =
        (verdict, after.outages.last().cloned())
    {
        worker.queue.tell(id, Some(task.iter), EventKind::Outage { agent: kind, why, until: wait.until });
    }
    worker.happens(id, Event::Learned(after)).await.map(drop)
}

fn tell_settled(worker: &mut Worker, loaded: &Loaded, settled: Settled<'_>, commit: Option<&CommitInfo>) {
    let Settled { task, verdict, facts, .. } = settled;
    worker.queue.stepped_iter = Some(task.iter);
    let tell = |kind| worker.queue.tell(&task.run, Some(task.iter), kind);
    if let Some(commit) = commit {
        let subject = commit.message.lines().next().unwrap_or_default().to_owned();
        tell(EventKind::Commit { commit: commit.id.to_string(), subject });
    }
    if !loaded.run_state.reverted.is_empty() && commit.is_some() {
        tell(EventKind::Reverted { paths: loaded.run_state.reverted.clone() });
    }
    let Notices { secrets, moved_refs } = settled.seen.clone();
    if !secrets.is_empty() {
        tell(EventKind::Secrets { seen: secrets });
    }
    if !moved_refs.is_empty() {
        tell(EventKind::Refs { moved: moved_refs });
    }
    let (leaves_passed, leaves_total) = loaded.tree.root.leaves();
    tell(EventKind::Tree { leaves_passed, leaves_total });
    let row = row(verdict.name());
    let guard = loaded.run_state.last_guard.filter(|_| commit.is_some()).or(row.guard);
    tell(EventKind::Iteration {
        node: task.node.clone(),
        verdict: verdict.name(),
        status: row.status,
        guard: guard.unwrap_or(GuardOutcome::Skipped),
        attempts: tree::find(&loaded.tree, &task.node).map_or(task.attempts, |node| node.attempts),
        max_attempts: task.max_attempts,
        agent: Some(facts.agent.clone()).filter(|agent| !agent.is_empty()),
        usage: facts.usage,
    });
}

/// Writes down what a run does next.
async fn follow(worker: &mut Worker, id: &str, next: Next, event: fn(Next) -> Event) -> Result<Then, IllegalEvent> {
    let then = if matches!(next, Next::GoOn(_)) { Then::GoOn } else { Then::Rest };
    worker.happens(id, event(next)).await?;
    Ok(then)
}
