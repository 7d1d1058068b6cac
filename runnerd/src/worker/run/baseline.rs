//! The baseline: runs the guard once on the base, before the first session.
//!
//! A failing baseline does not stop the run; it is shown, and sessions read about it.

use std::collections::BTreeSet;
use std::time::Duration;

use protocol::command::NextSteps;
use protocol::shell;
use protocol::state::{Baseline, Feedback, RunState};
use protocol::view::StopReason;
use protocol::words::PhaseName;
use runner_core::guard::test_results;
use runner_core::iteration::{GuardEnd, GuardEndKind};
use runner_core::message::{MarkerCommit, NameList, RunnerCommit};
use runner_core::publish;
use runner_core::text::json;
use runner_core::tree;
use runner_git::{Id, SnapshotRequest};
use runner_process::Mark;
use tokio_util::sync::CancellationToken;

use crate::guard;
use crate::repo::layout::Layout;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::definition;
use crate::worker::integrity::git_dir;
use crate::worker::integrity::hold_back::hold_back_rule;
use crate::worker::integrity::restore::{self, RestoreReport, RestoreRequest};
use crate::worker::integrity::unreadable;
use crate::worker::iteration::relay;
use crate::worker::iteration::session::{ProcessContext, end_leftovers};
use crate::worker::load::{CommittedState, load_state};
use crate::worker::prepare_error::PrepareError;
use crate::worker::record;
use crate::worker::run::start_run;
use crate::worker::tool_folders;

/// Returns the state at HEAD if the run still needs its baseline.
pub(crate) fn find_missing_baseline(context: &RunContext) -> Result<Option<CommittedState>, EffectError> {
    Ok(load_own_state(context)?.filter(|loaded| loaded.is_baseline_due()))
}

/// Returns the state at HEAD. `None` if it is faulty, or if a person has checked out another branch while the run waited:
/// both are reported when the iteration is opened.
pub(super) fn load_own_state(context: &RunContext) -> Result<Option<CommittedState>, EffectError> {
    let repository = context.repository()?;
    let head = repository.head()?;
    let commit = head.commit().filter(|_| head.branch() == Some(context.branch().as_str()));
    Ok(commit.and_then(|commit| load_state(&repository, commit).ok()))
}

/// Runs the guard on the base and commits the result; false if it was stopped before its end.
pub(crate) async fn run_baseline(
    context: &RunContext,
    loaded: &CommittedState,
    stop: &CancellationToken,
) -> Result<bool, PrepareError> {
    let mark = format!("{}-{}", context.store.id(), context.run);
    let process = ProcessContext { context, loaded, mark: &mark, stop };
    let budget_ms = loaded.policy.budget_ms;
    let end = match run_guard(process, budget_ms).await? {
        // As in an iteration, it runs again: the result is unknown.
        first if first.how == GuardEndKind::Lost => {
            run_guard(process, budget_ms.saturating_sub(first.elapsed_ms)).await?
        }
        end => end,
    };
    let output = match &end.how {
        GuardEndKind::Cut => return Ok(false),
        GuardEndKind::Missing { what } => {
            return Err(PrepareError::Hold(StopReason::new(what.clone(), "runnerctl resume")));
        }
        GuardEndKind::TimedOut => Some("the guard did not finish within the time of an iteration".to_owned()),
        GuardEndKind::Lost => Some("the guard's supervisor was killed twice".to_owned()),
        GuardEndKind::Exited(0) => None,
        GuardEndKind::Exited(_) | GuardEndKind::Signaled(_) => Some(end.output.clone()),
    };
    tokio::task::block_in_place(|| {
        let report = restore_after_program(context, loaded)?;
        refuse_moved_submodules(context, loaded)?;
        let guard_wrote = paths_written_since(context, loaded.commit)?;
        let baseline = Baseline { guard: end.outcome(), output, green_at: None };
        let state = RunState {
            guard_definition: definition::definition_at(&context.repository()?, loaded)
                .map_err(EffectError::from)?
                .accepted,
            elapsed_ms: loaded.run_state.elapsed_ms.saturating_add(end.elapsed_ms),
            ..(*loaded.run_state).clone()
        };
        let feedback = Feedback { baseline: Some(baseline), ..(*loaded.feedback).clone() };
        let tests = end.tests.as_ref().map(test_results::first_record).unwrap_or_default();
        let files = [
            (Layout::RUN_STATE, json::to_canonical_json(&state)),
            (Layout::FEEDBACK, json::to_canonical_json(&feedback)),
            (Layout::TESTS, json::to_canonical_json(&tests)),
        ];
        let marker = MarkerCommit {
            summary: describe_moved_history(context, &report),
            guard_run: crate::worker::receipt::guard_run(&end),
            reverted: NameList::new(&report.reverted),
            guard_wrote: NameList::new(&guard_wrote),
            ..start_run::marker_commit(context, Some(loaded.commit))
        };
        start_run::commit_files(context, &RunnerCommit::Baseline(marker, end.outcome()), &files)?;
        Ok::<_, PrepareError>(())
    })?;
    Ok(true)
}

/// Returns the paths outside `.runner/` in which the work tree differs from a commit. The guard wrote them, since a run
/// begins with a clean work tree.
fn paths_written_since(context: &RunContext, from: Id) -> Result<BTreeSet<Vec<u8>>, EffectError> {
    let repository = context.repository()?;
    let committed = repository.head()?.commit().map(|head| repository.changed_paths(&from, &head)).transpose()?;
    let standing = context.scan_changes()?.into_iter().map(|change| change.path);
    let paths = standing.chain(committed.into_iter().flatten());
    Ok(paths.filter(|path| !path.starts_with(b".runner/")).collect())
}

/// Describes what the guard did to the run's branch, if it moved it or left it.
fn describe_moved_history(context: &RunContext, report: &RestoreReport) -> String {
    let Some(how) = report.history.as_ref().or(report.elsewhere.as_ref()) else { return String::new() };
    let rescue = publish::rescue_ref(&context.run, 0);
    format!(
        "The guard must not rewrite history: {how}. What it left is kept under {rescue}, and the branch is as before."
    )
}

/// Refuses submodules that are no longer at the commits that the base names: the run would begin with other code than its
/// base, and git does not put their files back.
fn refuse_moved_submodules(context: &RunContext, loaded: &CommittedState) -> Result<(), PrepareError> {
    let repository = context.repository()?;
    let from = loaded.commit;
    if repository.head()?.commit() == Some(from) && context.scan_changes()?.is_empty() {
        return Ok(());
    }
    let after = repository.create_snapshot(&SnapshotRequest {
        name: &publish::guard_ref(&context.run),
        message: &format!("guard: run {} on the base", context.run),
        author: RunContext::identity(&repository),
        hold_back: &hold_back_rule(context, &repository, loaded).map_err(EffectError::from)?,
        restore_target: None,
    })?;
    let moved = repository.find_moved_submodules(&from, &after.commit)?;
    if moved.is_empty() {
        return Ok(());
    }
    let message = format!(
        "after the guard ran on the base, these submodules are not at the commits that the base names: {}",
        moved.join(", ")
    );
    let words = ["git", "submodule", "update", "--init", "--"].into_iter();
    let update = shell::join_args(words.chain(moved.iter().map(String::as_str)));
    let ways =
        NextSteps::from("let the guard leave submodules as they are").join("; then: ", format!("git reset {from}"));
    Err(PrepareError::Hold(StopReason::new(message, ways.then(update).then("runnerctl resume"))))
}

/// Runs the guard on the base as committed.
async fn run_guard(process: ProcessContext<'_>, left_ms: u64) -> Result<GuardEnd, PrepareError> {
    let ProcessContext { context, loaded, mark, stop } = process;
    let folders = tokio::task::block_in_place(|| {
        prepare_program(process)?;
        Ok::<_, PrepareError>(tool_folders::list_before_program(context)?)
    })?;
    let guard = guard::GuardCall {
        display_name: guard::GUARD_NAME,
        config: &loaded.config.guard,
        reports: Some(&loaded.config.guard.reports),
        folder: context.layout.root(),
        env: context.guard_env(&loaded.config.env.guard),
        log: context.layout.run_records(&context.run).join("baseline.log"),
        budget: Duration::from_millis(left_ms),
        output: Some(relay::relay_output(context, None, PhaseName::Guard)),
        secrets: context.secrets.clone(),
        mark: Mark::new(format!("{mark}-{}", PhaseName::Open)),
        lock: context.store.live_dir().join("shim.lock"),
    };
    let end = guard::run_guard(guard, &context.launcher, stop).await.map_err(EffectError::from)?;
    tokio::task::block_in_place(|| {
        unreadable::clear_unreadable(context, 0, PhaseName::Guard)?;
        tool_folders::record_after_program(context, folders.as_ref())
    })?;
    Ok(end)
}

/// Ends and reverts what a program of an earlier daemon process has left, and takes the snapshot for the next one.
pub(super) fn prepare_program(
    ProcessContext { context, loaded, mark, .. }: ProcessContext<'_>,
) -> Result<(), PrepareError> {
    end_leftovers(context, mark, PhaseName::Open)?;
    // Its changes are reverted before its notes are removed.
    restore_after_program(context, loaded)?;
    context.remove_iteration_notes(0)?;
    git_dir::save_snapshot(context, loaded.commit, 0)?;
    Ok(record::create_record_dir(context, &context.layout.run_records(&context.run))?)
}

/// Restores what a program must not have changed.
pub(super) fn restore_after_program(
    context: &RunContext,
    loaded: &CommittedState,
) -> Result<RestoreReport, EffectError> {
    unreadable::clear_unreadable(context, 0, PhaseName::Guard)?;
    let text = tree::canonical(&loaded.tree);
    let tree = Some(text.as_bytes());
    let request = RestoreRequest { from: loaded.commit, iter: 0, phase: PhaseName::Guard, tree, baseline: None };
    restore::restore_after_process(context, &context.repository()?, loaded, request)
}
