//! The project's own checks after a claim: run, looked after, and compared with what stood before them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use protocol::words::PhaseName;
use runner_core::fence::one_line;
use runner_core::iteration::{GuardEnd, GuardHow, Worked, discarded as discarded_reason};
use runner_core::policy::OnChange;
use runner_core::publish;
use serde::{Deserialize, Serialize};
use tokio::task::block_in_place;

use crate::git::{Change, GitError, Id, SnapshotRequest};
use crate::guard;
use crate::process::Mark;
use crate::repo::kept::Note;
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::access;
use crate::worker::integrity::definition;
use crate::worker::integrity::ignored;
use crate::worker::integrity::restore::{self, After, Found};
use crate::worker::integrity::swap;
use crate::worker::iteration::inspect;
use crate::worker::iteration::relay;
use crate::worker::iteration::session::Surroundings;
use crate::worker::load::Loaded;
use crate::worker::record;

/// Most bytes of a path in what is said of it.
const MAX_PATH: usize = 200;

/// One run of the guard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    /// How much of the budget is used up.
    pub(crate) spent_ms: u64,
    /// Whether it runs with the accepted definition in the place of the one that the session has left.
    pub(crate) with_accepted: bool,
}

/// Runs the guard, and looks at what it did.
pub(crate) async fn check(around: Surroundings<'_>, work: &Worked, check: Check) -> Result<GuardEnd, Obstacle> {
    let Surroundings { context, loaded, mark, stop } = around;
    let folder = context.layout.iteration(&context.run, work.task.iter);
    let log = folder.join(if check.with_accepted { "guard-accepted.log" } else { "guard.log" });
    let laid_out = block_in_place(|| {
        // The session could lead the folder elsewhere.
        record::make_folder(context, &folder)?;
        lay_out(context, loaded, work.task.iter, check.with_accepted)
    })?;
    let before = match laid_out {
        Ok(before) => before,
        Err(reason) => {
            return block_in_place(|| {
                record::write(context, &log, reason.as_bytes())?;
                look_after(context, loaded, work, GuardEnd::not_run(reason))
            });
        }
    };
    let left = loaded.policy.budget_ms.saturating_sub(check.spent_ms);
    let guard = guard::Guard {
        called: guard::GUARD,
        config: &loaded.config.guard,
        folder: context.layout.root(),
        env: context.guard_env(&loaded.config.env.guard),
        log: log.clone(),
        budget: Duration::from_millis(left),
        live: Some(relay::begin(context, work.task.iter, PhaseName::Guard)),
        secrets: context.secrets.clone(),
        mark: Mark::new(format!("{mark}-guard")),
        lock: context.store.live().join("shim.lock"),
    };
    context.last_scan.forget();
    let timed_out = || Ok(GuardEnd::new(GuardHow::TimedOut));
    let end = if left == 0 { timed_out() } else { guard::run(guard, &context.launcher, stop).await };
    block_in_place(|| {
        access::regain(context, (work.task.iter, PhaseName::Guard))?;
        swap::back(context)?;
        let end = end?;
        let discarded = restore_discarded(context, loaded, &before)?;
        if let Some(reason) = discarded_reason(&discarded) {
            record::append(context, &log, format!("\n{reason}\n").as_bytes())?;
        }
        let wrote = written_since(context, &before)?;
        look_after(context, loaded, work, GuardEnd { wrote, ..end }.with_discarded(&discarded))
    })
}

/// Makes the definition what the guard is to run with, and returns how things stood before the first guard, or why the guard
/// cannot run with what is accepted.
fn lay_out(
    context: &RunContext,
    loaded: &Loaded,
    iter: u32,
    with_accepted: bool,
) -> Result<Result<Before, String>, Obstacle> {
    // A life that was killed may have left the accepted one there.
    swap::back(context)?;
    let departure = definition::look(context, loaded, iter)?;
    let accepted = || Ok::<_, Obstacle>(definition::at(&context.repository()?, loaded)?.accepted);
    let hidden = definition::hidden(&context.repository()?, loaded, &departure)?;
    if !hidden.paths.is_empty() {
        swap::revert(context, iter, &accepted()?, &hidden)?;
        context.last_scan.forget();
    }
    let is_reverted = departure.answer(loaded.policy.on_change) == OnChange::Revert;
    if (is_reverted || with_accepted)
        && let Some(path) = ignored::without_copy(context, &departure)?
    {
        let path = one_line(&path, MAX_PATH);
        return Ok(Err(format!(
            "The guard was not run: {path}, which git ignores, was changed by the session, and the file as it was before is too \
             large to be put back. Restore it, or take it out of [guard] definition.\n"
        )));
    }
    if is_reverted {
        swap::revert(context, iter, &accepted()?, &departure)?;
        context.last_scan.forget();
    }
    let before = before_guard(context, loaded, iter)?;
    if with_accepted {
        swap::lay(context, iter, &accepted()?, &departure)?;
    }
    Ok(Ok(before))
}

/// Returns the end of a guard that nobody runs any more.
pub(crate) fn cut(context: &RunContext, loaded: &Loaded, work: &Worked) -> Result<GuardEnd, Obstacle> {
    swap::back(context)?;
    let before = before_guard(context, loaded, work.task.iter)?;
    restore_discarded(context, loaded, &before)?;
    let wrote = written_since(context, &before)?;
    look_after(context, loaded, work, GuardEnd { wrote, ..GuardEnd::new(GuardHow::Cut) })
}

fn look_after(context: &RunContext, loaded: &Loaded, work: &Worked, end: GuardEnd) -> Result<GuardEnd, Obstacle> {
    let repository = context.repository()?;
    let text = inspect::tree_to_stand(context, loaded, work)?;
    let after = After {
        from: loaded.commit,
        iter: work.task.iter,
        phase: PhaseName::Guard,
        tree: Some(text.as_bytes()),
        scenery: None,
    };
    let undone = restore::undo(context, &repository, loaded, after)?;
    inspect::look(context, &repository)?;
    let Found { history, elsewhere, mut reverted, moved_refs, .. } = undone;
    let departure = definition::noted(context, work.task.iter)?;
    if departure.answer(loaded.policy.on_change) == OnChange::Revert {
        reverted.extend_from_slice(&departure.paths);
    }
    Ok(GuardEnd { history, elsewhere, reverted, moved_refs, departure, ..end })
}

/// How the work tree stood before the first guard of an iteration.
#[derive(Debug, Serialize, Deserialize)]
struct Before {
    head: Option<String>,
    stamps: Stamps,
    /// The commit that keeps the files.
    files: String,
}

impl Note for Before {
    const KIND: &'static str = "before-guard";
    const VERSION: u32 = 1;
}

/// Every path that differs from HEAD, with what tells whether it was written.
type Stamps = BTreeMap<String, (u64, i64, i64)>;

/// Returns how things stood before the first guard of an iteration, kept when it began: what a guard has written is the
/// guard's, although the daemon died while it ran.
fn before_guard(context: &RunContext, loaded: &Loaded, iter: u32) -> Result<Before, Obstacle> {
    let kept = context.note::<Before>(iter, "before-guard");
    if let Some(before) = kept.read()? {
        return Ok(before);
    }
    let repository = context.repository()?;
    let head = repository.head()?.commit();
    let stamps = stamps(context, &context.seen()?);
    let files = if let Some(head) = head.filter(|_| stamps.is_empty()) {
        head
    } else {
        let request = SnapshotRequest {
            name: &publish::guarded(&context.run),
            message: &format!("guard: run {} iteration {iter:04}", context.run),
            author: RunContext::identity(&repository),
            hold_back: &restore::hold_back(loaded),
            restoring: None,
        };
        repository.snapshot(&request)?.commit
    };
    let before = Before { head: head.map(|head| head.to_string()), stamps, files: files.to_string() };
    kept.write(&before)?;
    Ok(before)
}

/// Restores the paths of the session's change that a guard has removed or made again what they were at From, and returns them.
fn restore_discarded(context: &RunContext, loaded: &Loaded, before: &Before) -> Result<Vec<String>, Obstacle> {
    let repository = context.repository()?;
    let (from, files) = (loaded.commit, as_id(&before.files)?);
    let changes: BTreeSet<String> = context.look()?.iter().map(Change::display_path).collect();
    let is_there = |path: &String| std::fs::symlink_metadata(context.layout.path(path)).is_ok();
    let vanished = before.stamps.keys().filter(|path| !changes.contains(*path));
    let removed = changes.iter().filter(|path| !is_there(path));
    let candidates: BTreeSet<&String> = vanished.chain(removed).filter(|path| !path.starts_with(".runner/")).collect();
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    // A guard may have garbled HEAD; history is looked at next.
    let head = repository.head().ok().and_then(|head| head.commit()).unwrap_or(from);
    let mut discarded = Vec::new();
    for path in candidates {
        let (made, at_from) = (repository.entry(&files, path)?, repository.entry(&from, path)?);
        let is_gone = made.is_some() && !is_there(path);
        let is_reverted = !changes.contains(path) && repository.entry(&head, path)? == at_from;
        if made != at_from && (is_gone || is_reverted) {
            discarded.push(path.clone());
        }
    }
    if !discarded.is_empty() {
        swap::restore(context, &files, &discarded)?;
        context.last_scan.forget();
    }
    Ok(discarded)
}

fn as_id(id: &str) -> Result<Id, Obstacle> {
    id.parse().map_err(|_| Obstacle::NoCommit(id.to_owned()))
}

/// Returns the paths outside `.runner/` that were written since, in commits of a guard's own too.
fn written_since(context: &RunContext, before: &Before) -> Result<Vec<String>, Obstacle> {
    let mut now = stamps(context, &context.look()?);
    let repository = context.repository()?;
    let old = before.head.as_deref().map(as_id).transpose()?;
    // A guard may have garbled HEAD or lost the commit that it names. What is looked at next finds that and puts history
    // back, and then nothing of what was committed upon it stays.
    let head = repository.head().ok().and_then(|head| head.commit());
    let committed = match (old, head) {
        (Some(old), Some(new)) if old != new => match repository.changed_paths(&old, &new) {
            Err(error @ GitError::FalseObject { .. }) => return Err(error.into()),
            changed => changed.unwrap_or_default(),
        },
        _ => Vec::new(),
    };
    for path in committed {
        let path = String::from_utf8_lossy(&path).into_owned();
        let stamp = stamp(context, &path);
        now.insert(path, stamp);
    }
    let wrote = now.into_iter().filter(|(path, stamp)| before.stamps.get(path) != Some(stamp));
    Ok(wrote.map(|(path, _)| path).filter(|path| !path.starts_with(".runner/")).collect())
}

fn stamps(context: &RunContext, changes: &[Change]) -> Stamps {
    let paths = changes.iter().map(Change::display_path);
    paths.map(|path| (path.clone(), stamp(context, &path))).collect()
}

fn stamp(context: &RunContext, path: &str) -> (u64, i64, i64) {
    let found = std::fs::symlink_metadata(context.layout.path(path));
    found.map_or((0, 0, 0), |found| (found.len(), found.mtime(), found.mtime_nsec()))
}
