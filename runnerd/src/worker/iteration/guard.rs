//! Runs the project's own checks after a claim, restores what they must not change, and compares the work tree before
//! and after.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use protocol::request::LogStream;
use protocol::words::{GuardOutcome, PhaseName};
use runner_config::ChangePolicy;
use runner_core::guard::definition::DefinitionDiff;
use runner_core::guard::flakes;
use runner_core::guard::test_results::{self, first_record};
use runner_core::iteration::{DiscardedChange, GuardEnd, GuardEndKind, IterationOutcome, WorkResult};
use runner_core::publish;
use runner_core::scope;
use runner_core::text::fence::one_line;
use runner_git::{CommitEntry, EntryKind, GitError, Id, Repository, SnapshotRequest, WorktreeChange};
use runner_process::Mark;
use serde::{Deserialize, Serialize};
use tokio::task::block_in_place;

use crate::guard;
use crate::repo::sealed::Sealable;
use crate::worker::cleanup::remove_path;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::definition;
use crate::worker::integrity::git_dir;
use crate::worker::integrity::guard_overlay;
use crate::worker::integrity::hold_back::hold_back_rule;
use crate::worker::integrity::ignored;
use crate::worker::integrity::restore::{self, RestoreReport, RestoreRequest};
use crate::worker::integrity::scope::{ScopeRequest, restore_outside};
use crate::worker::integrity::unreadable;
use crate::worker::iteration::inspect;
use crate::worker::iteration::relay;
use crate::worker::iteration::session::ProcessContext;
use crate::worker::load::CommittedState;
use crate::worker::record;
use crate::worker::tool_folders;

/// Size limit in bytes of a path in messages.
const MAX_PATH: usize = 200;
/// Folder in which Python keeps what it has compiled of the modules beside it.
const PYTHON_CACHE: &str = "__pycache__";

/// One run of the guard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuardCheck {
    /// How much of the budget is used up, in milliseconds.
    pub(crate) spent_ms: u64,
    /// Whether it runs with the accepted definition in place of the session's.
    pub(crate) with_accepted: bool,
    /// Whether it runs once more because it was red.
    pub(crate) is_rerun: bool,
}

impl GuardCheck {
    /// Returns the file for its output.
    fn log_name(self) -> &'static str {
        let stream = match (self.is_rerun, self.with_accepted) {
            (true, _) => LogStream::GuardRerun,
            (false, true) => LogStream::GuardAccepted,
            (false, false) => LogStream::Guard,
        };
        stream.file_name()
    }
}

/// Runs the guard, and checks what it changed.
pub(crate) async fn run_check(
    process: ProcessContext<'_>,
    work: &WorkResult,
    check: GuardCheck,
) -> Result<GuardEnd, EffectError> {
    let ProcessContext { context, loaded, mark, stop } = process;
    let folder = context.layout.iteration(&context.run, work.task.iter);
    let log = folder.join(check.log_name());
    let prepared = block_in_place(|| {
        // The session could have redirected the folder.
        record::create_record_dir(context, &folder)?;
        prepare_definition(context, loaded, work.task.iter, check)
    })?;
    let before = match prepared {
        Ok(before) => before,
        Err(reason) => {
            return block_in_place(|| {
                record::write_file(context, &log, reason.as_bytes())?;
                let end = if check.is_rerun {
                    GuardEnd::new(GuardEndKind::Missing { what: reason })
                } else {
                    GuardEnd::not_run(reason)
                };
                restore_after_guard(context, loaded, work, end)
            });
        }
    };
    let remaining_ms = loaded.policy.budget_ms.saturating_sub(check.spent_ms);
    let guard = guard::GuardCall {
        display_name: guard::GUARD_NAME,
        config: &loaded.config.guard,
        reports: Some(&loaded.config.guard.reports),
        folder: context.layout.root(),
        env: context.guard_env(&loaded.config.env.guard),
        log: log.clone(),
        budget: Duration::from_millis(remaining_ms),
        output: Some(relay::relay_output(context, work.task.iter, PhaseName::Guard)),
        secrets: context.secrets.clone(),
        mark: Mark::new(format!("{mark}-guard")),
        lock: context.store.live_dir().join("shim.lock"),
    };
    let folders = block_in_place(|| tool_folders::list_before_program(context))?;
    context.last_scan.invalidate();
    let timed_out = || Ok(GuardEnd::new(GuardEndKind::TimedOut));
    let end = if remaining_ms == 0 { timed_out() } else { guard::run_guard(guard, &context.launcher, stop).await };
    block_in_place(|| {
        clear_after_guard(context, loaded, work.task.iter)?;
        guard_overlay::revert(context)?;
        let end = end?;
        tool_folders::record_after_program(context, folders.as_ref())?;
        let discarded = restore_discarded_paths(context, loaded, work.task.iter, &before)?;
        if let Some(reason) = discarded.describe() {
            record::append_file(context, &log, format!("\n{reason}\n").as_bytes())?;
        }
        let written = paths_written_since(context, &before)?;
        let end = GuardEnd { wrote: written, ..end }.with_discarded(&discarded);
        let suspects = find_suspects(context, loaded, &before, &end)?;
        let end = restore_after_guard(context, loaded, work, GuardEnd { suspects, ..end })?;
        if let Some(reason) = scope::describe_guard_writes(&end.outside) {
            record::append_file(context, &log, format!("\n{reason}\n").as_bytes())?;
        }
        Ok(end)
    })
}

/// Returns the files for which the session is charged even if a red guard is green the second time.
fn find_suspects(
    context: &RunContext,
    loaded: &CommittedState,
    before: &PreGuardState,
    end: &GuardEnd,
) -> Result<Vec<String>, EffectError> {
    if !loaded.policy.flakes || end.outcome() != GuardOutcome::Fail {
        return Ok(Vec::new());
    }
    let changed = context.repository()?.changed_paths(&loaded.commit, &parse_id(&before.files)?)?;
    let changed: Vec<_> = changed.iter().map(|path| String::from_utf8_lossy(path)).collect();
    let code = changed.iter().map(AsRef::as_ref).filter(|path: &&str| !path.starts_with(".runner/"));
    Ok(flakes::find_suspects(&end.failing, code))
}

/// Puts the guard's definition in place, and returns the state before the first guard, or why the guard cannot run with
/// the accepted definition, or not on the same files as before.
fn prepare_definition(
    context: &RunContext,
    loaded: &CommittedState,
    iter: u32,
    GuardCheck { with_accepted, is_rerun, .. }: GuardCheck,
) -> Result<Result<PreGuardState, String>, EffectError> {
    // A killed daemon process may have left the accepted definition there.
    guard_overlay::revert(context)?;
    let diff = definition::compare_before_guard(context, loaded, iter)?;
    let accepted = || Ok::<_, EffectError>(definition::definition_at(&context.repository()?, loaded)?.accepted);
    let hidden = definition::hidden_changes(&context.repository()?, loaded, &diff)?;
    if !hidden.paths.is_empty() {
        guard_overlay::restore_accepted(context, iter, &accepted()?, &hidden)?;
        context.last_scan.invalidate();
    }
    let is_reverting = diff.effective_policy(loaded.policy.on_change) == ChangePolicy::Revert;
    if (is_reverting || with_accepted)
        && let Some(path) = ignored::find_uncopied(context, &diff)?
    {
        let path = one_line(&path, MAX_PATH);
        return Ok(Err(format!(
            "The guard was not run: {path}, which git ignores, was changed by the session, and the file as it was before is too \
             large to be put back. Restore it, or take it out of [guard] definition.\n"
        )));
    }
    if is_reverting {
        guard_overlay::restore_accepted(context, iter, &accepted()?, &diff)?;
        context.last_scan.invalidate();
    }
    remove_compiled_files(context, loaded)?;
    let before = load_pre_guard_state(context, loaded, iter)?;
    if is_rerun && let Some(path) = paths_written_since(context, &before)?.first() {
        let path = one_line(path, MAX_PATH);
        return Ok(Err(format!("The guard was not run again: {path} has changed since it failed.\n")));
    }
    if with_accepted {
        guard_overlay::apply(context, iter, &accepted()?, &diff)?;
    }
    Ok(Ok(before))
}

/// Removes what Python has compiled of the definition's files and no commit has: Python may run that instead, and only
/// the files are compared.
fn remove_compiled_files(context: &RunContext, loaded: &CommittedState) -> Result<(), EffectError> {
    let repository = context.repository()?;
    for path in loaded.run_state.guard_definition.keys() {
        let Some(module) = path.strip_suffix(".py") else { continue };
        let (folder, module) = module.rfind('/').map_or(("", module), |end| module.split_at(end + 1));
        let cache = format!("{folder}{PYTHON_CACHE}");
        if definition::crosses_non_directory(context, &cache) {
            continue;
        }
        let is_of_module = |file: &str| {
            let tag = file.strip_prefix(module).and_then(|rest| rest.strip_suffix(".pyc"));
            tag.is_some_and(|tag| tag.starts_with('.'))
        };
        let files = match std::fs::symlink_metadata(context.layout.path(&cache)) {
            Ok(found) if found.is_dir() => list_names(&context.layout.path(&cache))?,
            Ok(_) => {
                remove_path(&context.layout.path(&cache))?;
                context.last_scan.invalidate();
                continue;
            }
            Err(_) => continue,
        };
        for file in files.iter().filter(|file| is_of_module(file)).map(|file| format!("{cache}/{file}")) {
            if repository.find_entry(&loaded.commit, &file)?.is_none() {
                remove_path(&context.layout.path(&file))?;
                context.last_scan.invalidate();
            }
        }
    }
    Ok(())
}

fn list_names(folder: &Path) -> Result<Vec<String>, EffectError> {
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(EffectError::io_error("listing", folder))?;
    Ok(entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// Returns the end of a guard that is not run again.
pub(crate) fn finish_interrupted(
    context: &RunContext,
    loaded: &CommittedState,
    work: &WorkResult,
) -> Result<GuardEnd, EffectError> {
    clear_after_guard(context, loaded, work.task.iter)?;
    guard_overlay::revert(context)?;
    let before = load_pre_guard_state(context, loaded, work.task.iter)?;
    restore_discarded_paths(context, loaded, work.task.iter, &before)?;
    let written = paths_written_since(context, &before)?;
    restore_after_guard(context, loaded, work, GuardEnd { wrote: written, ..GuardEnd::new(GuardEndKind::Cut) })
}

/// Clears what nothing can read, and makes HEAD name a commit and have an index: what the guard has written is compared with it. The check
/// of history finds that HEAD is elsewhere.
fn clear_after_guard(context: &RunContext, loaded: &CommittedState, iter: u32) -> Result<(), EffectError> {
    unreadable::clear_unreadable(context, iter, PhaseName::Guard)?;
    let repository = context.repository()?;
    let branch = context.branch();
    if repository.head().is_err() || repository.find_unreadable_ref(&branch)?.is_some() {
        let before = git_dir::read_snapshot(context, iter)?;
        repository.repair_refs(&branch, &loaded.commit, before.as_ref())?;
    }
    Ok(repository.restore_missing_index()?)
}

fn restore_after_guard(
    context: &RunContext,
    loaded: &CommittedState,
    work: &WorkResult,
    end: GuardEnd,
) -> Result<GuardEnd, EffectError> {
    let repository = context.repository()?;
    let text = inspect::final_tree_text(context, loaded, work)?;
    let request = RestoreRequest {
        from: loaded.commit,
        iter: work.task.iter,
        phase: PhaseName::Guard,
        tree: Some(text.as_bytes()),
        baseline: None,
    };
    let report = restore::restore_after_process(context, &repository, loaded, request)?;
    let diff = definition::noted_diff(context, work.task.iter)?;
    let is_reverting = diff.effective_policy(loaded.policy.on_change) == ChangePolicy::Revert;
    let request = ScopeRequest {
        exempt: if is_reverting { &diff.paths } else { &[] },
        ..ScopeRequest::new(work.task.iter, PhaseName::Guard)
    };
    let outside = restore_outside(context, &repository, loaded, request)?;
    let end = end.with_outside(&outside);
    inspect::scan_changes(context, &repository, loaded)?;
    let RestoreReport { history, elsewhere, mut reverted, moved_refs, .. } = report;
    if history.is_some() || elsewhere.is_some() {
        // The next guard takes its reference.
        let before = parse_id(&load_pre_guard_state(context, loaded, work.task.iter)?.files)?;
        let rescue_ref = format!("{}-work", publish::rescue_ref(&context.run, work.task.iter));
        repository.force_runner_ref(&rescue_ref, &before)?;
    }
    if is_reverting {
        reverted.extend_from_slice(&diff.paths);
    }
    reverted.extend_from_slice(&outside);
    let review_required = is_review_required(context, loaded, &end, &diff)?;
    Ok(GuardEnd { history, elsewhere, reverted, outside, moved_refs, departure: diff, review_required, ..end })
}

/// Whether a person has to review what the guard passed: tests are lost, and its definition differs, before it ran or
/// after it.
fn is_review_required(
    context: &RunContext,
    loaded: &CommittedState,
    end: &GuardEnd,
    before: &DefinitionDiff,
) -> Result<bool, EffectError> {
    let Some(record) = end.tests.as_ref().filter(|_| end.outcome() == GuardOutcome::Pass).map(first_record) else {
        return Ok(false);
    };
    let is_required =
        |has_changed| test_results::is_review_required(&loaded.tests, &record, loaded.policy.on_change, has_changed);
    if !is_required(true) {
        return Ok(false);
    }
    let now = definition::diff_work_tree(context, &context.repository()?, loaded)?;
    Ok(is_required(!before.merged_with(&now).paths.is_empty()))
}

/// The work tree before the first guard of an iteration.
#[derive(Debug, Serialize, Deserialize)]
struct PreGuardState {
    head: Option<String>,
    stamps: PathStamps,
    /// The commit that preserves the files.
    files: String,
}

impl Sealable for PreGuardState {
    const KIND: &'static str = "before-guard";
    const VERSION: u32 = 1;
}

/// Every path that differs from HEAD, with a stamp that changes when it is written.
type PathStamps = BTreeMap<String, (u64, i64, i64)>;

/// The stamp of a path at which nothing is.
const MISSING_STAMP: (u64, i64, i64) = (0, 0, 0);

/// Returns the state before the first guard of an iteration, saved at that time: what a guard writes is attributed to
/// the guard, even if the daemon died while it ran.
fn load_pre_guard_state(
    context: &RunContext,
    loaded: &CommittedState,
    iter: u32,
) -> Result<PreGuardState, EffectError> {
    let note = context.iteration_note::<PreGuardState>(iter, "before-guard");
    if let Some(before) = note.read()? {
        return Ok(before);
    }
    let repository = context.repository()?;
    let head = repository.head()?.commit();
    let stamps = path_stamps(context, &context.cached_changes()?);
    let pin = publish::guard_ref(&context.run);
    let files = if let Some(head) = head.filter(|_| stamps.is_empty()) {
        repository.force_runner_ref(&pin, &head)?;
        head
    } else {
        let request = SnapshotRequest {
            name: &pin,
            message: &format!("guard: run {} iteration {iter:04}", context.run),
            author: RunContext::identity(&repository),
            hold_back: &hold_back_rule(context, &repository, loaded)?,
            restore_target: None,
        };
        repository.create_snapshot(&request)?.commit
    };
    let before = PreGuardState { head: head.map(|head| head.to_string()), stamps, files: files.to_string() };
    note.write(&before)?;
    Ok(before)
}

/// Restores the paths of the session's change that a guard has removed or reset to From, and returns them, with those
/// that cannot be restored.
fn restore_discarded_paths(
    context: &RunContext,
    loaded: &CommittedState,
    iter: u32,
    before: &PreGuardState,
) -> Result<DiscardedChange, EffectError> {
    let repository = context.repository()?;
    let from = loaded.commit;
    let files = parse_id(&before.files)?;
    let changes: BTreeSet<String> = context.scan_changes()?.iter().map(WorktreeChange::display_path).collect();
    let is_there = |path: &String| std::fs::symlink_metadata(context.layout.path(path)).is_ok();
    let paths = repository.changed_paths(&from, &files)?;
    let mut candidates: Vec<String> = paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    // A pipe or a folder in its place is as if it were removed.
    let is_file_there = |path: &String| {
        let found = std::fs::symlink_metadata(context.layout.path(path));
        found.is_ok_and(|found| found.is_file() || found.is_symlink())
    };
    candidates.retain(|path| !path.starts_with(".runner/") && (!changes.contains(path) || !is_file_there(path)));
    let mut discarded = DiscardedChange::default();
    for (path, stamp) in &before.stamps {
        let was_removed = *stamp != MISSING_STAMP && !is_there(path) && !path.starts_with(".runner/");
        if was_removed && repository.find_entry(&files, path.trim_end_matches('/'))?.is_none() {
            discarded.held_back.push(path.clone());
        }
    }
    if candidates.is_empty() {
        return Ok(discarded);
    }
    // A guard may have garbled HEAD; the check of history comes next.
    let head = repository.head().ok().and_then(|head| head.commit()).unwrap_or(from);
    let is_file = |entry: &Option<CommitEntry>| entry.as_ref().is_none_or(|entry| entry.kind != EntryKind::Submodule);
    for path in candidates {
        let before_entry = repository.find_entry(&files, &path)?;
        let at_from = repository.find_entry(&from, &path)?;
        let is_gone = before_entry.as_ref().is_some_and(|entry| match entry.kind {
            EntryKind::Submodule => !is_there(&path),
            EntryKind::File | EntryKind::Executable | EntryKind::Symlink => !is_file_there(&path),
        });
        let is_reverted = !changes.contains(&path) && repository.find_entry(&head, &path)? == at_from;
        if before_entry != at_from && (is_gone || is_reverted) {
            let is_restored = is_file(&before_entry) && is_file(&at_from);
            if is_restored { &mut discarded.files } else { &mut discarded.submodules }.push(path);
        }
    }
    if !discarded.files.is_empty() {
        guard_overlay::restore_paths(context, iter, &files, &discarded.files)?;
        context.last_scan.invalidate();
    }
    Ok(discarded)
}

fn parse_id(id: &str) -> Result<Id, EffectError> {
    id.parse().map_err(|_| EffectError::InvalidCommit(id.to_owned()))
}

/// Returns the paths outside `.runner/` written since then, including those in a guard's own commits.
fn paths_written_since(context: &RunContext, before: &PreGuardState) -> Result<Vec<String>, EffectError> {
    let mut current = path_stamps(context, &context.scan_changes()?);
    let repository = context.repository()?;
    let old = before.head.as_deref().map(parse_id).transpose()?;
    // A guard may have garbled HEAD or lost the commit it names. The next check finds that and restores history, and
    // then nothing committed on top of it remains.
    let head = repository.head().ok().and_then(|head| head.commit());
    let committed = match (old, head) {
        (Some(old), Some(new)) if old != new => match repository.changed_paths(&old, &new) {
            Err(error @ GitError::HashMismatch { .. }) => return Err(error.into()),
            changed => changed.unwrap_or_default(),
        },
        _ => Vec::new(),
    };
    for path in committed {
        let path = String::from_utf8_lossy(&path).into_owned();
        let stamp = path_stamp(context, &path);
        current.insert(path, stamp);
    }
    let written = current.into_iter().filter(|(path, stamp)| before.stamps.get(path) != Some(stamp));
    Ok(written.map(|(path, _)| path).filter(|path| !path.starts_with(".runner/")).collect())
}

fn path_stamps(context: &RunContext, changes: &[WorktreeChange]) -> PathStamps {
    let paths = changes.iter().map(WorktreeChange::display_path);
    paths.map(|path| (path.clone(), path_stamp(context, &path))).collect()
}

fn path_stamp(context: &RunContext, path: &str) -> (u64, i64, i64) {
    let found = std::fs::symlink_metadata(context.layout.path(path));
    found.map_or(MISSING_STAMP, |found| (found.len(), found.mtime(), found.mtime_nsec()))
}

/// Returns the paths that the guard has written and that are about to be committed, or already are: what is held back, a
/// nested repository, and what a later guard has removed again, are in no commit.
pub(super) fn committed_paths(
    repository: &Repository,
    from: Id,
    outcome: &IterationOutcome,
    changes: &[WorktreeChange],
    held_back: &[String],
) -> Result<Vec<String>, GitError> {
    let Some(guard) = outcome.guard.as_ref().filter(|guard| !guard.wrote.is_empty()) else { return Ok(Vec::new()) };
    let is_committed = |change: &&WorktreeChange| !change.path.ends_with(b"/");
    let mut paths: BTreeSet<String> = changes.iter().filter(is_committed).map(WorktreeChange::display_path).collect();
    paths.retain(|path| !held_back.contains(path));
    if let Some(head) = repository.head()?.commit().filter(|head| *head != from) {
        let committed = repository.changed_paths(&from, &head)?;
        paths.extend(committed.iter().map(|path| String::from_utf8_lossy(path).into_owned()));
    }
    Ok(guard.wrote.iter().filter(|path| paths.contains(*path)).cloned().collect())
}
