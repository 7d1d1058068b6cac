//! Review: a fresh session examines what the guard has passed, and all its changes are discarded.
//!
//! The state before it is saved in `live/` and under a ref, so that after a crash its changes are undone before the
//! next reviewer starts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::answer::ReviewAnswer;
use protocol::words::{PhaseName, Role};
use runner_agents::{AgentSession, config_paths, run_session, session_environment};
use runner_core::iteration::{ReviewEnd, ReviewEndKind, WorkResult};
use runner_core::text::digest::Digest;
use runner_core::verdict::SessionTask;
use runner_git::SnapshotRequest;
use runner_process::Mark;
use tokio::task::block_in_place;

use crate::repo::sealed::SealedFile;
use crate::review;
use crate::worker::cleanup;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::guard_overlay;
use crate::worker::integrity::hold_back::hold_back_rule;
use crate::worker::integrity::ignored;
use crate::worker::integrity::restore::{self, RestoreReport, RestoreRequest, WorktreeBaseline};
use crate::worker::integrity::unreadable;
use crate::worker::iteration::brief;
use crate::worker::iteration::inspect;
use crate::worker::iteration::relay;
use crate::worker::iteration::session::{self, ProcessContext};
use crate::worker::load::CommittedState;
use crate::worker::record;

/// Files that each reviewer writes to a record: name and extension.
const REVIEW_FILES: [(&str, &str); 2] = [("review", "json"), ("reviewer", "log")];

/// Runs a reviewer, and undoes its changes. `spent_ms` of the budget are used up, and `failed` reviewers ran before.
pub(crate) async fn run_review(
    process: ProcessContext<'_>,
    work: &WorkResult,
    spent_ms: u64,
    failed: u32,
) -> Result<ReviewEnd, EffectError> {
    let ProcessContext { context, loaded, mark, stop } = process;
    let remaining_ms = loaded.policy.budget_ms.saturating_sub(spent_ms);
    if remaining_ms == 0 {
        return block_in_place(|| restore_after_review(context, loaded, work, ReviewEnd::new(ReviewEndKind::TimedOut)));
    }
    let task = SessionTask { role: Role::Reviewer, kind: work.task.reviewer.clone(), ..work.task.clone() };
    let executor = session::executor_for_task(loaded, &task);
    let (folder, prompt) = block_in_place(|| prepare_review(context, loaded, work, failed))?;
    let phase_mark = Mark::new(format!("{mark}-review"));
    let session = AgentSession {
        executor: &executor,
        prompt: context.secrets.redact(&prompt).into_owned(),
        folder: context.layout.root(),
        git_folder: block_in_place(|| context.repository())?.common_dir().to_owned(),
        env: session_environment(&executor, &loaded.config.env.agent, &context.env),
        record: folder.clone(),
        dirs: session::session_dirs(context, &phase_mark),
        output: folder.join("review.json"),
        log: folder.join("reviewer.log"),
        budget: Duration::from_millis(remaining_ms),
        output_sender: Some(relay::relay_output(context, task.iter, PhaseName::Review)),
        activity_sender: Some(relay::relay_activity(context, task.iter)),
        secrets: context.secrets.clone(),
        mark: phase_mark,
        lock: context.store.live_dir().join("shim.lock"),
    };
    let hidden = block_in_place(|| guard_overlay::hide(context, task.iter, config_paths(&executor)))?;
    context.last_scan.invalidate();
    let mut end = run_session::<ReviewAnswer>(session, &context.launcher, stop).await?;
    session::fill_in_cost(loaded, &executor, &mut end);
    let prompt = Some(Digest::compute(prompt.as_bytes()).to_string());
    let end = ReviewEnd { prompt, hidden, ..review::review_end(end) };
    block_in_place(|| restore_after_review(context, loaded, work, end))
}

/// Returns the end of a review that is not run again.
pub(crate) fn finish_interrupted(
    context: &RunContext,
    loaded: &CommittedState,
    work: &WorkResult,
) -> Result<ReviewEnd, EffectError> {
    restore_after_review(context, loaded, work, ReviewEnd::new(ReviewEndKind::Cut))
}

/// Undoes the changes of a reviewer of an earlier daemon process and prepares the next one; returns its record and its
/// prompt.
fn prepare_review(
    context: &RunContext,
    loaded: &CommittedState,
    work: &WorkResult,
    failed: u32,
) -> Result<(PathBuf, String), EffectError> {
    let iter = work.task.iter;
    if read_baseline(context, iter)?.is_some() {
        restore_baseline(context, loaded, work)?;
    }
    let WorktreeBaseline { files, .. } = save_baseline(context, loaded, iter)?;
    let prompt = brief::build_review_prompt(&context.repository()?, loaded, &work.task, &files)?;
    let folder = context.layout.iteration(&context.run, iter);
    // The session could have redirected the folder.
    record::create_record_dir(context, &folder)?;
    for (name, end) in REVIEW_FILES {
        move_review_file(&folder, name, end, failed)?;
    }
    record::write_file(context, &folder.join("review.prompt.md"), prompt.as_bytes())?;
    Ok((folder, prompt))
}

/// Renames the file of the previous reviewer to `<name>.<number>.<end>`.
fn move_review_file(folder: &Path, name: &str, end: &str, failed: u32) -> Result<(), EffectError> {
    let file = folder.join(format!("{name}.{end}"));
    let aside = folder.join(format!("{name}.{failed}.{end}"));
    if failed > 0 && !aside.exists() {
        // For people: a file that cannot be moved, or was never written, is not needed.
        let _ = std::fs::rename(&file, &aside);
    }
    cleanup::remove_path(&file)
}

/// Returns the snapshot taken before the first reviewer of an iteration; `None` if no reviewer was started.
fn read_baseline(context: &RunContext, iter: u32) -> Result<Option<WorktreeBaseline>, EffectError> {
    Ok(baseline_note(context, iter).read()?)
}

fn baseline_note(context: &RunContext, iter: u32) -> SealedFile<WorktreeBaseline> {
    context.iteration_note(iter, "scenery")
}

/// Takes the snapshot, unless it exists.
fn save_baseline(context: &RunContext, loaded: &CommittedState, iter: u32) -> Result<WorktreeBaseline, EffectError> {
    if let Some(baseline) = read_baseline(context, iter)? {
        return Ok(baseline);
    }
    let repository = context.repository()?;
    let snapshot = repository.create_snapshot(&SnapshotRequest {
        name: &format!("refs/runner/review/{}/{iter:04}", context.run),
        message: &format!("review: run {} iteration {iter:04}", context.run),
        author: RunContext::identity(&repository),
        hold_back: &hold_back_rule(context, &repository, loaded)?,
        restore_target: None,
    })?;
    ignored::save_before_session(context, loaded)?;
    let tip = repository.head()?.commit().unwrap_or(loaded.commit);
    let baseline = WorktreeBaseline { tip, files: snapshot.commit };
    baseline_note(context, iter).write(&baseline)?;
    Ok(baseline)
}

fn restore_after_review(
    context: &RunContext,
    loaded: &CommittedState,
    work: &WorkResult,
    end: ReviewEnd,
) -> Result<ReviewEnd, EffectError> {
    let RestoreReport { reverted, moved_refs, wrote, .. } = restore_baseline(context, loaded, work)?;
    Ok(ReviewEnd { reverted, moved_refs, wrote, ..end })
}

/// Undoes a reviewer's changes, if one was started.
fn restore_baseline(
    context: &RunContext,
    loaded: &CommittedState,
    work: &WorkResult,
) -> Result<RestoreReport, EffectError> {
    let Some(baseline) = read_baseline(context, work.task.iter)? else { return Ok(RestoreReport::default()) };
    unreadable::clear_unreadable(context, work.task.iter, PhaseName::Review)?;
    guard_overlay::revert(context)?;
    let text = inspect::final_tree_text(context, loaded, work)?;
    let request = RestoreRequest {
        from: loaded.commit,
        iter: work.task.iter,
        phase: PhaseName::Review,
        tree: Some(text.as_bytes()),
        baseline: Some(baseline),
    };
    let repository = context.repository()?;
    let report = restore::restore_after_process(context, &repository, loaded, request)?;
    ignored::compare_after_session(context, &repository, loaded)?;
    Ok(report)
}
