//! The baseline: the guard on the base, once, before the first session.
//!
//! A red one does not stop the run; it is shown and told to the sessions.

use protocol::state::{Baseline, Feedback, RunState};
use protocol::words::PhaseName;
use runner_core::iteration::{GuardEnd, GuardHow};
use runner_core::json;
use runner_core::message::{Milestone, NameList, RunnerCommit};
use runner_core::tree;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use super::begin::{self, BeginError};
use super::definition;
use super::desk::reason;
use super::load::{Loaded, load};
use super::mischief::{self, After};
use super::record;
use super::relay;
use super::session::{Surroundings, sweep};
use super::site::{Obstacle, Site};
use super::tampering;
use crate::guard;
use crate::process::Mark;
use crate::repo::durable::{self, Access};

/// Returns the state at HEAD if the run still needs its baseline.
pub(super) fn needed(site: &Site) -> Result<Option<Loaded>, Obstacle> {
    let repository = site.repository()?;
    let Some(head) = repository.head()?.commit() else { return Ok(None) };
    // What is wrong with the state is said when the iteration is opened.
    let Ok(loaded) = load(&repository, head) else { return Ok(None) };
    let is_new = loaded.run_state.next_iter == 1 && loaded.feedback.baseline.is_none();
    Ok((is_new && loaded.config.guard.baseline).then_some(loaded))
}

/// Runs the guard on the base and commits its result; false if it was stopped before its end.
pub(super) async fn baseline(site: &Site, loaded: &Loaded, stop: &CancellationToken) -> Result<bool, BeginError> {
    let mark = format!("{}-{}", site.store.id(), site.run);
    let around = Surroundings { site, loaded, mark: &mark, stop };
    let budget_ms = loaded.policy.budget_ms;
    let end = match run(around, budget_ms).await? {
        // As in an iteration it is asked once more: nobody knows what it would have said.
        lost if lost.how == GuardHow::Lost => run(around, budget_ms.saturating_sub(lost.elapsed_ms)).await?,
        end => end,
    };
    let output = match &end.how {
        GuardHow::Cut => return Ok(false),
        GuardHow::Missing { what } => return Err(BeginError::Hold(reason(what.clone(), "runnerctl resume"))),
        GuardHow::TimedOut => Some("the guard did not end within the budget of an iteration".to_owned()),
        GuardHow::Lost => Some("the guard's supervisor was killed twice".to_owned()),
        GuardHow::Exited(0) => None,
        GuardHow::Exited(_) | GuardHow::Signaled(_) => Some(end.output.clone()),
    };
    tokio::task::block_in_place(|| {
        let reverted = look_after(site, loaded)?;
        let baseline = Baseline { guard: end.outcome(), output };
        let state = RunState {
            guard_definition: definition::at(&site.repository()?, loaded).map_err(Obstacle::from)?.accepted,
            elapsed_ms: loaded.run_state.elapsed_ms.saturating_add(end.elapsed_ms),
            ..loaded.run_state.clone()
        };
        let feedback = Feedback { baseline: Some(baseline), ..loaded.feedback.clone() };
        let files =
            [(site.layout.run_state(), json::canonical(&state)), (site.layout.feedback(), json::canonical(&feedback))];
        for (path, text) in files {
            durable::replace(&path, text.as_bytes(), Access::Repository)?;
        }
        let milestone = Milestone {
            guard_run: super::settle::guard_run(&end),
            reverted: NameList::new(&reverted),
            ..begin::milestone(site, Some(loaded.commit))
        };
        begin::commit(site, &site.repository()?, &RunnerCommit::Baseline(milestone, end.outcome()))?;
        Ok::<_, BeginError>(())
    })?;
    Ok(true)
}

/// Runs the guard on the base as it was committed.
async fn run(around: Surroundings<'_>, left_ms: u64) -> Result<GuardEnd, BeginError> {
    let Surroundings { site, loaded, mark, stop } = around;
    let folder = site.layout.run_records(&site.run);
    tokio::task::block_in_place(|| -> Result<(), BeginError> {
        sweep(site, mark, PhaseName::Open)?;
        // What a guard of an earlier life has done is put back before it is forgotten.
        look_after(site, loaded)?;
        site.forget_kept(0)?;
        tampering::look_before(site, 0)?;
        Ok(record::make_folder(site, &folder)?)
    })?;
    let guard = guard::Guard {
        config: &loaded.config.guard,
        folder: site.layout.root(),
        env: site.guard_env(&loaded.config.env.guard),
        log: folder.join("baseline.log"),
        budget: Duration::from_millis(left_ms),
        live: Some(relay::begin(site, None, PhaseName::Guard)),
        secrets: site.secrets.clone(),
        mark: Mark::new(format!("{mark}-{}", PhaseName::Open)),
        lock: site.store.live().join("shim.lock"),
    };
    Ok(guard::run(guard, &site.launcher, stop).await.map_err(Obstacle::from)?)
}

/// Puts back what the guard must not have changed, and returns what that was.
fn look_after(site: &Site, loaded: &Loaded) -> Result<Vec<String>, Obstacle> {
    let text = tree::canonical(&loaded.tree);
    let tree = Some(text.as_bytes());
    let after = After { from: loaded.commit, iter: 0, phase: PhaseName::Guard, tree, scenery: None };
    Ok(mischief::undo(site, &site.repository()?, loaded, after)?.reverted)
}
