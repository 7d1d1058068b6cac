//! Review: a fresh session looks at what the guard has passed, and nothing that it writes stays.
//!
//! How things stood is kept in `live/` and under a ref before a reviewer begins, so that one whose daemon died is cleaned
//! up after before the next begins.

use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::answer::ReviewAnswer;
use protocol::words::{PhaseName, Role};
use runner_core::digest::Digest;
use runner_core::iteration::{ReviewEnd, ReviewHow, Worked};
use runner_core::verdict::Task;
use tokio::task::block_in_place;

use crate::git::SnapshotRequest;
use crate::process::Mark;
use crate::repo::kept::Kept;
use crate::worker::clear;
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::ignored;
use crate::worker::integrity::restore::{self, After, Found, Scenery};
use crate::worker::iteration::brief;
use crate::worker::iteration::inspect;
use crate::worker::iteration::relay;
use crate::worker::iteration::session::{self, Surroundings};
use crate::worker::load::Loaded;
use crate::worker::record;
use crate::{agent, review};

/// Files of a record that one reviewer writes: name and ending.
const FILES: [(&str, &str); 2] = [("review", "json"), ("reviewer", "log")];

/// Asks a reviewer, and undoes what it did. `spent_ms` of the budget are used up, and `failed` reviewers went before.
pub(crate) async fn review(
    around: Surroundings<'_>,
    work: &Worked,
    (spent_ms, failed): (u64, u32),
) -> Result<ReviewEnd, Obstacle> {
    let Surroundings { context, loaded, mark, stop } = around;
    let left = loaded.policy.budget_ms.saturating_sub(spent_ms);
    if left == 0 {
        return block_in_place(|| look_after(context, loaded, work, ReviewEnd::new(ReviewHow::TimedOut)));
    }
    let task = Task { role: Role::Reviewer, kind: work.task.reviewer.clone(), ..work.task.clone() };
    let executor = session::executor(loaded, &task);
    let (folder, prompt) = block_in_place(|| prepare(context, loaded, work, failed))?;
    let session = agent::Session {
        executor: &executor,
        prompt: context.secrets.redact(&prompt).into_owned(),
        folder: context.layout.root(),
        git_folder: block_in_place(|| context.repository())?.common_dir().to_owned(),
        env: agent::environment(&executor, &loaded.config.env.agent, &context.env),
        record: folder.clone(),
        output: folder.join("review.json"),
        log: folder.join("reviewer.log"),
        budget: Duration::from_millis(left),
        live: Some(relay::begin(context, task.iter, PhaseName::Review)),
        activity: Some(relay::activity(context, task.iter)),
        secrets: context.secrets.clone(),
        mark: Mark::new(format!("{mark}-review")),
        lock: context.store.live().join("shim.lock"),
    };
    context.last_scan.forget();
    let mut end = agent::run::<ReviewAnswer>(session, &context.launcher, stop).await?;
    session::price(loaded, &executor, &mut end);
    let prompt = Some(Digest::of(prompt.as_bytes()).to_string());
    block_in_place(|| look_after(context, loaded, work, ReviewEnd { prompt, ..review::ended(end) }))
}

/// Returns the end of a review that nobody gives any more.
pub(crate) fn cut(context: &RunContext, loaded: &Loaded, work: &Worked) -> Result<ReviewEnd, Obstacle> {
    look_after(context, loaded, work, ReviewEnd::new(ReviewHow::Cut))
}

/// Undoes what a reviewer of an earlier life has written, and makes ready for the next; returns its record and its prompt.
fn prepare(context: &RunContext, loaded: &Loaded, work: &Worked, failed: u32) -> Result<(PathBuf, String), Obstacle> {
    let iter = work.task.iter;
    if scenery(context, iter)?.is_some() {
        undo(context, loaded, work)?;
    }
    let Scenery { files, .. } = keep_scenery(context, loaded, iter)?;
    let prompt = brief::review_prompt(&context.repository()?, loaded, &work.task, &files)?;
    let folder = context.layout.iteration(&context.run, iter);
    // The session could lead the folder elsewhere.
    record::make_folder(context, &folder)?;
    for file in FILES {
        set_aside(&folder, file, failed)?;
    }
    record::write(context, &folder.join("review.prompt.md"), prompt.as_bytes())?;
    Ok((folder, prompt))
}

/// Keeps what the reviewer before this one has written as `<name>.<number>.<end>`.
fn set_aside(folder: &Path, (name, end): (&str, &str), failed: u32) -> Result<(), Obstacle> {
    let file = folder.join(format!("{name}.{end}"));
    let aside = folder.join(format!("{name}.{failed}.{end}"));
    if failed > 0 && !aside.exists() {
        // For people: what cannot be moved, or was never written, is not missed.
        let _ = std::fs::rename(&file, &aside);
    }
    clear::remove(&file)
}

/// Returns how things stood before the first reviewer of an iteration, where one was begun.
fn scenery(context: &RunContext, iter: u32) -> Result<Option<Scenery>, Obstacle> {
    Ok(kept_in(context, iter).read()?)
}

fn kept_in(context: &RunContext, iter: u32) -> Kept<Scenery> {
    context.note(iter, "scenery")
}

/// Keeps how things stand, unless that was done.
fn keep_scenery(context: &RunContext, loaded: &Loaded, iter: u32) -> Result<Scenery, Obstacle> {
    if let Some(scenery) = scenery(context, iter)? {
        return Ok(scenery);
    }
    let repository = context.repository()?;
    let snapshot = repository.snapshot(&SnapshotRequest {
        name: &format!("refs/runner/review/{}/{iter:04}", context.run),
        message: &format!("review: run {} iteration {iter:04}", context.run),
        author: RunContext::identity(&repository),
        hold_back: &restore::hold_back(loaded),
        restoring: None,
    })?;
    ignored::look_before(context, loaded)?;
    let tip = repository.head()?.commit().unwrap_or(loaded.commit);
    let scenery = Scenery { tip, files: snapshot.commit };
    kept_in(context, iter).write(&scenery)?;
    Ok(scenery)
}

fn look_after(context: &RunContext, loaded: &Loaded, work: &Worked, end: ReviewEnd) -> Result<ReviewEnd, Obstacle> {
    let Found { reverted, moved_refs, wrote, .. } = undo(context, loaded, work)?;
    Ok(ReviewEnd { reverted, moved_refs, wrote, ..end })
}

/// Puts back what a reviewer has written, if one was begun.
fn undo(context: &RunContext, loaded: &Loaded, work: &Worked) -> Result<Found, Obstacle> {
    let Some(scenery) = scenery(context, work.task.iter)? else { return Ok(Found::default()) };
    let text = inspect::tree_to_stand(context, loaded, work)?;
    let after = After {
        from: loaded.commit,
        iter: work.task.iter,
        phase: PhaseName::Review,
        tree: Some(text.as_bytes()),
        scenery: Some(scenery),
    };
    let repository = context.repository()?;
    let found = restore::undo(context, &repository, loaded, after)?;
    ignored::look_after(context, &repository, loaded)?;
    Ok(found)
}
