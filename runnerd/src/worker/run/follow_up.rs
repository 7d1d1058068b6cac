//! What follows from an iteration: reported to subscribers, decided by `runner_core::run`, and stored.

use protocol::event::EventKind;
use protocol::meta::SecretFinding;
use protocol::words::GuardOutcome;
use runner_core::run::fallback::ServiceOutage;
use runner_core::run::{self, IllegalRunEvent, NextStep, RunEvent};
use runner_core::tree;
use runner_core::verdict::{SessionTask, Verdict, verdict_row};
use runner_git::CommitInfo;
use runner_os::clock;
use tokio::task::block_in_place;

use super::hooks;
use crate::worker::context::RunContext;
use crate::worker::iteration::log::SessionFacts;
use crate::worker::iteration::open::OpenOutcome;
use crate::worker::load::CommittedState;
use crate::worker::run::worker::{RepoWorker, RunFlow};
use crate::worker::run_error::RunError;

/// Findings of an iteration that are reported to people and affect no decision.
#[derive(Debug, Clone)]
pub(crate) struct IterationNotices {
    /// Files of the session that contain secrets.
    pub(crate) secrets: Vec<SecretFinding>,
    /// References of others that its processes moved.
    pub(crate) moved_refs: Vec<String>,
}

/// An iteration that was settled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FollowUpInput<'a> {
    /// Where the iteration took place.
    pub(crate) context: &'a RunContext,
    /// Its mark, which is unique to the iteration.
    pub(crate) mark: &'a str,
    /// Its task.
    pub(crate) task: &'a SessionTask,
    /// How it ended.
    pub(crate) verdict: &'a Verdict,
    /// Facts about its session.
    pub(crate) facts: &'a SessionFacts,
    /// Its notices.
    pub(crate) notices: &'a IterationNotices,
    /// Its commit, if it has one.
    pub(crate) commit: Option<&'a str>,
}

/// Follows up an iteration that started nothing.
pub(crate) async fn follow_untouched(
    worker: &mut RepoWorker,
    id: &str,
    outcome: Option<OpenOutcome>,
) -> Result<RunFlow, IllegalRunEvent> {
    let event = match outcome {
        Some(OpenOutcome::Next(next)) => return apply_next_step(worker, id, next, RunEvent::Declined).await,
        Some(OpenOutcome::Hold(why)) => RunEvent::Hold(why),
        Some(OpenOutcome::Task(..)) | None => RunEvent::BetweenIterations,
    };
    worker.apply_event(id, event).await?;
    Ok(RunFlow::Pause)
}

/// Follows up an iteration that was settled.
pub(crate) async fn follow_settled(
    worker: &mut RepoWorker,
    id: &str,
    settled: FollowUpInput<'_>,
) -> Result<RunFlow, RunError> {
    let FollowUpInput { context, verdict, commit, .. } = settled;
    let (loaded, commit_info) = block_in_place(|| -> Result<_, RunError> {
        let repository = context.repository()?;
        let tip = repository.find_branch_tip(&context.branch())?.ok_or(RunError::MissingBranch)?;
        let commit_id = commit.map(str::parse).transpose()?;
        let commit = commit_id.map(|commit| repository.first_parents(&commit, 1)).transpose()?;
        Ok((context.last_load.load(&repository, tip)?, commit.and_then(|commit| commit.into_iter().next())))
    })?;
    publish_settled(worker, &loaded, settled, commit_info.as_ref());
    save_scratch(worker, id, settled).await?;
    hooks::publish_questions(worker, context, settled.task, &loaded);
    let Some(run) = worker.queue.find_run(id) else { return Ok(RunFlow::Pause) };
    let next = run::decide_next(&loaded.run_inputs(&run.uncommitted), Some(verdict), run.stop_request);
    if !matches!(next, NextStep::Continue(_)) {
        // A client that sees the run stopped also sees everything that led to it.
        worker.refresh_view();
    }
    Ok(apply_next_step(worker, id, next, RunEvent::IterationSettled).await?)
}

/// Stores what no commit holds of an iteration.
async fn save_scratch(worker: &mut RepoWorker, id: &str, settled: FollowUpInput<'_>) -> Result<(), IllegalRunEvent> {
    let FollowUpInput { mark, task, verdict, facts, commit, .. } = settled;
    let Some(run) = worker.queue.find_run(id) else { return Ok(()) };
    let is_committed = commit.is_some();
    let settled_run = run::SettledIteration {
        mark,
        task,
        verdict,
        is_reviewed: facts.is_reviewed,
        usage: &facts.consumed,
        is_committed,
    };
    let Some(scratch) = run.uncommitted.after_iteration(settled_run, clock::now()) else { return Ok(()) };
    if let (Verdict::Unavailable { .. }, Some(ServiceOutage { kind, why, wait, .. })) =
        (verdict, scratch.outages.last().cloned())
    {
        worker.queue.publish_event(id, Some(task.iter), EventKind::Outage { agent: kind, why, until: wait.until });
    }
    worker.apply_event(id, RunEvent::ScratchChanged(scratch)).await.map(drop)
}

fn publish_settled(
    worker: &mut RepoWorker,
    loaded: &CommittedState,
    settled: FollowUpInput<'_>,
    commit: Option<&CommitInfo>,
) {
    let FollowUpInput { task, verdict, facts, .. } = settled;
    worker.queue.stepped_iter = Some(task.iter);
    let tell = |kind| worker.queue.publish_event(&task.run, Some(task.iter), kind);
    if let Some(commit) = commit {
        let subject = commit.message.lines().next().unwrap_or_default().to_owned();
        tell(EventKind::Commit { commit: commit.id.to_string(), subject });
    }
    if !loaded.run_state.reverted.is_empty() && commit.is_some() {
        tell(EventKind::Reverted { paths: loaded.run_state.reverted.clone() });
    }
    let IterationNotices { secrets, moved_refs } = settled.notices.clone();
    if !secrets.is_empty() {
        tell(EventKind::Secrets { files: secrets });
    }
    if !moved_refs.is_empty() {
        tell(EventKind::Refs { moved: moved_refs });
    }
    let (leaves_passed, leaves_total) = loaded.tree.root.leaves();
    tell(EventKind::Tree { leaves_passed, leaves_total });
    let row = verdict_row(verdict.name());
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

/// Stores what a run does next.
async fn apply_next_step(
    worker: &mut RepoWorker,
    id: &str,
    next: NextStep,
    event: fn(NextStep) -> RunEvent,
) -> Result<RunFlow, IllegalRunEvent> {
    let flow = if matches!(next, NextStep::Continue(_)) { RunFlow::Continue } else { RunFlow::Pause };
    worker.apply_event(id, event(next)).await?;
    Ok(flow)
}
