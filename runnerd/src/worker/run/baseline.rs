//! The baseline: the guard on the base, once, before the first session.
//!
//! A red one does not stop the run; it is shown and told to the sessions.

use std::time::Duration;

use protocol::state::{Baseline, Feedback, RunState};
use protocol::view::StopReason;
use protocol::words::PhaseName;
use runner_core::iteration::{GuardEnd, GuardHow};
use runner_core::json;
use runner_core::message::{Milestone, NameList, RunnerCommit};
use runner_core::tree;
use tokio_util::sync::CancellationToken;

use crate::guard;
use crate::process::Mark;
use crate::repo::layout::Layout;
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::definition;
use crate::worker::integrity::restore::{self, After};
use crate::worker::integrity::tampering;
use crate::worker::iteration::relay;
use crate::worker::iteration::session::{Surroundings, sweep};
use crate::worker::load::{Loaded, load};
use crate::worker::record;
use crate::worker::run::begin;
use crate::worker::unready::Unready;

/// Returns the state at HEAD if the run still needs its baseline.
pub(crate) fn needed(context: &RunContext) -> Result<Option<Loaded>, Obstacle> {
    let repository = context.repository()?;
    let Some(head) = repository.head()?.commit() else { return Ok(None) };
    // What is wrong with the state is said when the iteration is opened.
    let Ok(loaded) = load(&repository, head) else { return Ok(None) };
    let is_new = loaded.run_state.next_iter == 1 && loaded.feedback.baseline.is_none();
    Ok((is_new && loaded.config.guard.baseline).then_some(loaded))
}

/// Runs the guard on the base and commits its result; false if it was stopped before its end.
pub(crate) async fn baseline(context: &RunContext, loaded: &Loaded, stop: &CancellationToken) -> Result<bool, Unready> {
    let mark = format!("{}-{}", context.store.id(), context.run);
    let around = Surroundings { context, loaded, mark: &mark, stop };
    let budget_ms = loaded.policy.budget_ms;
    let end = match run(around, budget_ms).await? {
        // As in an iteration it is asked once more: nobody knows what it would have said.
        lost if lost.how == GuardHow::Lost => run(around, budget_ms.saturating_sub(lost.elapsed_ms)).await?,
        end => end,
    };
    let output = match &end.how {
        GuardHow::Cut => return Ok(false),
        GuardHow::Missing { what } => return Err(Unready::Hold(StopReason::new(what.clone(), "runnerctl resume"))),
        GuardHow::TimedOut => Some("the guard did not finish within the time of an iteration".to_owned()),
        GuardHow::Lost => Some("the guard's supervisor was killed twice".to_owned()),
        GuardHow::Exited(0) => None,
        GuardHow::Exited(_) | GuardHow::Signaled(_) => Some(end.output.clone()),
    };
    tokio::task::block_in_place(|| {
        let reverted = look_after(context, loaded)?;
        let baseline = Baseline { guard: end.outcome(), output };
        let state = RunState {
            guard_definition: definition::at(&context.repository()?, loaded).map_err(Obstacle::from)?.accepted,
            elapsed_ms: loaded.run_state.elapsed_ms.saturating_add(end.elapsed_ms),
            ..loaded.run_state.clone()
        };
        let feedback = Feedback { baseline: Some(baseline), ..loaded.feedback.clone() };
        let files = [(Layout::RUN_STATE, json::canonical(&state)), (Layout::FEEDBACK, json::canonical(&feedback))];
        let milestone = Milestone {
            guard_run: crate::worker::receipt::guard_run(&end),
            reverted: NameList::new(&reverted),
            ..begin::milestone(context, Some(loaded.commit))
        };
        begin::commit(context, &RunnerCommit::Baseline(milestone, end.outcome()), &files)?;
        Ok::<_, Unready>(())
    })?;
    Ok(true)
}

/// Runs the guard on the base as it was committed.
async fn run(around: Surroundings<'_>, left_ms: u64) -> Result<GuardEnd, Unready> {
    let Surroundings { context, loaded, mark, stop } = around;
    tokio::task::block_in_place(|| clear(around))?;
    let guard = guard::Guard {
        called: guard::GUARD,
        config: &loaded.config.guard,
        folder: context.layout.root(),
        env: context.guard_env(&loaded.config.env.guard),
        log: context.layout.run_records(&context.run).join("baseline.log"),
        budget: Duration::from_millis(left_ms),
        live: Some(relay::begin(context, None, PhaseName::Guard)),
        secrets: context.secrets.clone(),
        mark: Mark::new(format!("{mark}-{}", PhaseName::Open)),
        lock: context.store.live().join("shim.lock"),
    };
    Ok(guard::run(guard, &context.launcher, stop).await.map_err(Obstacle::from)?)
}

/// Ends and puts back what a program of an earlier life has left, and looks at what the next one must not change.
pub(super) fn clear(Surroundings { context, loaded, mark, .. }: Surroundings<'_>) -> Result<(), Unready> {
    sweep(context, mark, PhaseName::Open)?;
    // What it has done is put back before it is forgotten.
    look_after(context, loaded)?;
    context.forget_kept(0)?;
    tampering::look_before(context, (loaded.commit, 0))?;
    Ok(record::make_folder(context, &context.layout.run_records(&context.run))?)
}

/// Puts back what a program must not have changed, and returns what that was.
pub(super) fn look_after(context: &RunContext, loaded: &Loaded) -> Result<Vec<String>, Obstacle> {
    let text = tree::canonical(&loaded.tree);
    let tree = Some(text.as_bytes());
    let after = After { from: loaded.commit, iter: 0, phase: PhaseName::Guard, tree, scenery: None };
    Ok(restore::undo(context, &context.repository()?, loaded, after)?.reverted)
}
