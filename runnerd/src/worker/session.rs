//! Work and Guard: what runs a process, and what is looked at around them. The reviewer's session is `review`'s.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use protocol::answer::SessionUsage;
use protocol::words::{PhaseName, Role};
use runner_core::iteration::{GuardEnd, GuardHow, Worked};
use runner_core::policy::OnChange;
use runner_core::verdict::{SessionEnd, Task};
use serde::{Deserialize, Serialize};
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::load::Loaded;
use super::mischief::{self, After, Found};
use super::site::{Obstacle, Site};
use super::{brief, definition, inspect, record, relay, swap, tampering, tools};
use crate::config::{Executor, ExecutorKind};
use crate::git::{Change, GitError, Id};
use crate::process::Mark;
use crate::process::orphans;
use crate::repo::kept::Note;
use crate::{agent, guard};

/// Time in which processes of an earlier life must be gone.
const SWEEP_LIMIT: Duration = Duration::from_secs(10);

/// What the processes of an iteration have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surroundings<'a> {
    /// Where they run.
    pub(super) site: &'a Site,
    /// The state at From.
    pub(super) loaded: &'a Loaded,
    /// By which they are found.
    pub(super) mark: &'a str,
    /// Ends them.
    pub(super) stop: &'a CancellationToken,
}

/// Runs the agent's session.
pub(super) async fn work(around: Surroundings<'_>, task: &Task) -> Result<SessionEnd, Obstacle> {
    let Surroundings { site, loaded, mark, stop } = around;
    let folder = site.layout.iteration(&site.run, task.iter);
    let executor = block_in_place(|| narrowed(site, loaded, task))?;
    let session = agent::Session {
        executor: &executor,
        prompt: site.secrets.redact(&block_in_place(|| brief::prompt(site, loaded, task))?.text).into_owned(),
        folder: site.layout.root(),
        git_folder: block_in_place(|| site.repository())?.common_dir().to_owned(),
        env: agent::environment(&executor, &loaded.config.env.agent, &site.env),
        record: folder.clone(),
        output: folder.join("output.json"),
        log: folder.join("executor.log"),
        budget: Duration::from_millis(loaded.policy.budget_ms),
        live: Some(relay::begin(site, task.iter, PhaseName::Work)),
        activity: Some(relay::activity(site, task.iter)),
        secrets: site.secrets.clone(),
        mark: Mark::new(format!("{mark}-work")),
        lock: site.store.live().join("shim.lock"),
    };
    block_in_place(|| tampering::look_before(site, task.iter))?;
    site.forget_seen();
    let mut end: SessionEnd = agent::run(session, &site.launcher, stop).await?;
    price(loaded, &executor, &mut end.usage);
    Ok(end)
}

/// Fills in what a session cost, where its agent does not say and the configuration has a price.
pub(super) fn price(loaded: &Loaded, executor: &Executor, usage: &mut SessionUsage) {
    if usage.cost_micro_usd.is_none() {
        usage.cost_micro_usd = loaded.config.price_of(executor).and_then(|price| price.of(usage));
    }
}

/// Returns how the session of a task is run, less what its node does not allow.
fn narrowed(site: &Site, loaded: &Loaded, task: &Task) -> Result<Executor, Obstacle> {
    let mut executor = executor(loaded, task);
    // What cannot be read holds the run before a session is begun.
    for limits in tools::on_path(&site.repository()?, &loaded.commit, &task.path)?.unwrap_or_default() {
        limits.narrow(&mut executor);
    }
    Ok(executor)
}

/// Returns how the session of a task is run: as its role is configured, with the kind that was chosen for it.
pub(super) fn executor(loaded: &Loaded, task: &Task) -> Executor {
    let configured = match task.role {
        Role::Planner => &loaded.config.executor.plan,
        Role::Reviewer => &loaded.config.executor.review,
        Role::Worker | Role::Repair | Role::Human => &loaded.config.executor.work,
    };
    let chosen = task.kind.as_deref().and_then(ExecutorKind::from_spelling);
    configured.for_fallback(chosen.unwrap_or(configured.kind))
}

/// Ends what an earlier life has left of a phase, and returns how many processes there were.
pub(super) fn sweep(site: &Site, mark: &str, phase: PhaseName) -> Result<u32, Obstacle> {
    let mark = Mark::new(format!("{mark}-{phase}"));
    let swept = orphans::end_survivors(&mark, &site.store.live().join("shim.lock"), SWEEP_LIMIT)?;
    Ok(u32::try_from(swept.ended.len()).unwrap_or(u32::MAX))
}

/// One run of the guard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Check {
    /// How much of the budget is used up.
    pub(super) spent_ms: u64,
    /// Whether it runs with the accepted definition in the place of the one that the session has left.
    pub(super) with_accepted: bool,
}

/// Runs the guard, and looks at what it did.
pub(super) async fn check(around: Surroundings<'_>, work: &Worked, check: Check) -> Result<GuardEnd, Obstacle> {
    let Surroundings { site, loaded, mark, stop } = around;
    let folder = site.layout.iteration(&site.run, work.task.iter);
    let before = block_in_place(|| {
        // The session could lead the folder elsewhere.
        record::make_folder(site, &folder)?;
        lay_out(site, loaded, work.task.iter, check.with_accepted)
    })?;
    let left = loaded.policy.budget_ms.saturating_sub(check.spent_ms);
    let guard = guard::Guard {
        config: &loaded.config.guard,
        folder: site.layout.root(),
        env: site.guard_env(&loaded.config.env.guard),
        log: folder.join(if check.with_accepted { "guard-accepted.log" } else { "guard.log" }),
        budget: Duration::from_millis(left),
        live: Some(relay::begin(site, work.task.iter, PhaseName::Guard)),
        secrets: site.secrets.clone(),
        mark: Mark::new(format!("{mark}-guard")),
        lock: site.store.live().join("shim.lock"),
    };
    site.forget_seen();
    let timed_out = || Ok(GuardEnd::new(GuardHow::TimedOut));
    let end = if left == 0 { timed_out() } else { guard::run(guard, &site.launcher, stop).await };
    block_in_place(|| {
        swap::back(site)?;
        let end = end?;
        let wrote = written_since(site, &before)?;
        look_after(site, loaded, work, GuardEnd { wrote, ..end })
    })
}

/// Makes the definition what the guard is to run with, and returns how things stood before the first guard.
fn lay_out(site: &Site, loaded: &Loaded, iter: u32, with_accepted: bool) -> Result<Before, Obstacle> {
    // A life that was killed may have left the accepted one there.
    swap::back(site)?;
    let departure = definition::look(site, loaded, iter)?;
    let accepted = || Ok::<_, Obstacle>(definition::at(&site.repository()?, loaded)?.accepted);
    if departure.answer(loaded.policy.on_change) == OnChange::Revert {
        swap::revert(site, iter, &accepted()?, &departure)?;
        site.forget_seen();
    }
    let before = before_guard(site, iter)?;
    if with_accepted {
        swap::lay(site, iter, &accepted()?, &departure)?;
    }
    Ok(before)
}

/// Returns the end of a guard that nobody runs any more.
pub(super) fn cut(site: &Site, loaded: &Loaded, work: &Worked) -> Result<GuardEnd, Obstacle> {
    swap::back(site)?;
    let wrote = written_since(site, &before_guard(site, work.task.iter)?)?;
    look_after(site, loaded, work, GuardEnd { wrote, ..GuardEnd::new(GuardHow::Cut) })
}

fn look_after(site: &Site, loaded: &Loaded, work: &Worked, end: GuardEnd) -> Result<GuardEnd, Obstacle> {
    let repository = site.repository()?;
    let text = inspect::tree_to_stand(site, loaded, &work.task, &work.session)?;
    let after = After {
        from: loaded.commit,
        iter: work.task.iter,
        phase: PhaseName::Guard,
        tree: Some(text.as_bytes()),
        scenery: None,
    };
    let undone = mischief::undo(site, &repository, loaded, after)?;
    let Found { history, mut reverted, moved_refs, .. } = undone;
    let departure = definition::noted(site, work.task.iter)?;
    if departure.answer(loaded.policy.on_change) == OnChange::Revert {
        reverted.extend_from_slice(&departure.paths);
    }
    Ok(GuardEnd { history, reverted, moved_refs, departure, ..end })
}

/// How the work tree stood before the first guard of an iteration.
#[derive(Debug, Serialize, Deserialize)]
struct Before {
    head: Option<String>,
    stamps: Stamps,
}

impl Note for Before {
    const KIND: &'static str = "before-guard";
    const VERSION: u32 = 1;
}

/// Every path that differs from HEAD, with what tells whether it was written.
type Stamps = BTreeMap<String, (u64, i64, i64)>;

/// Returns how things stood before the first guard of an iteration, kept when it began: what a guard has written is the
/// guard's, although the daemon died while it ran.
fn before_guard(site: &Site, iter: u32) -> Result<Before, Obstacle> {
    let kept = site.note::<Before>(iter, "before-guard");
    if let Some(before) = kept.read()? {
        return Ok(before);
    }
    let head = site.repository()?.head()?.commit().map(|head| head.to_string());
    let before = Before { head, stamps: stamps(site, &site.seen()?) };
    kept.write(&before)?;
    Ok(before)
}

/// Returns the paths outside `.runner/` that were written since, in commits of a guard's own too.
fn written_since(site: &Site, before: &Before) -> Result<Vec<String>, Obstacle> {
    let mut now = stamps(site, &site.look()?);
    let repository = site.repository()?;
    let as_id = |head: &String| head.parse::<Id>().map_err(|_| Obstacle::NoCommit(head.clone()));
    let old = before.head.as_ref().map(as_id).transpose()?;
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
        let stamp = stamp(site, &path);
        now.insert(path, stamp);
    }
    let wrote = now.into_iter().filter(|(path, stamp)| before.stamps.get(path) != Some(stamp));
    Ok(wrote.map(|(path, _)| path).filter(|path| !path.starts_with(".runner/")).collect())
}

fn stamps(site: &Site, changes: &[Change]) -> Stamps {
    let paths = changes.iter().map(Change::display_path);
    paths.map(|path| (path.clone(), stamp(site, &path))).collect()
}

fn stamp(site: &Site, path: &str) -> (u64, i64, i64) {
    let found = std::fs::symlink_metadata(site.layout.path(path));
    found.map_or((0, 0, 0), |found| (found.len(), found.mtime(), found.mtime_nsec()))
}
