//! Work: runs the session of an agent, with the checks before and after. The guard is in `guard`, the reviewer's
//! session in `review`.

use std::time::Duration;

use protocol::words::PhaseName;
use runner_config::{Executor, ExecutorKind};
use runner_core::text::digest::Digest;
use runner_core::verdict::{FaultKind, SessionEnd, SessionEndKind, SessionTask};
use runner_process::Mark;
use runner_process::orphans;
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::git_dir;
use crate::worker::integrity::guard_overlay;
use crate::worker::integrity::ignored;
use crate::worker::integrity::permissions;
use crate::worker::iteration::brief;
use crate::worker::iteration::node_limits;
use crate::worker::iteration::relay;
use crate::worker::load::CommittedState;

/// Time limit for processes of an earlier daemon process to be gone.
const SWEEP_LIMIT: Duration = Duration::from_secs(10);

/// What the processes of an iteration have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessContext<'a> {
    /// Where they run.
    pub(crate) context: &'a RunContext,
    /// The state at From.
    pub(crate) loaded: &'a CommittedState,
    /// The mark by which they are found.
    pub(crate) mark: &'a str,
    /// Cancelled to end them.
    pub(crate) stop: &'a CancellationToken,
}

/// Runs the agent's session.
pub(crate) async fn run_session(process: ProcessContext<'_>, task: &SessionTask) -> Result<SessionEnd, EffectError> {
    let ProcessContext { context, loaded, mark, stop } = process;
    let folder = context.layout.iteration(&context.run, task.iter);
    let executor = block_in_place(|| narrow_executor(context, loaded, task))?;
    let phase_mark = Mark::new(format!("{mark}-work"));
    let session = runner_agents::AgentSession {
        executor: &executor,
        prompt: context
            .secrets
            .redact(&block_in_place(|| brief::build_prompt(context, loaded, task))?.text)
            .into_owned(),
        folder: context.layout.root(),
        git_folder: block_in_place(|| context.repository())?.common_dir().to_owned(),
        env: runner_agents::session_environment(&executor, &loaded.config.env.agent, &context.env),
        record: folder.clone(),
        dirs: session_dirs(context, &phase_mark),
        output: folder.join("output.json"),
        log: folder.join("executor.log"),
        budget: Duration::from_millis(loaded.policy.budget_ms),
        output_sender: Some(relay::relay_output(context, task.iter, PhaseName::Work)),
        activity_sender: Some(relay::relay_activity(context, task.iter)),
        secrets: context.secrets.clone(),
        mark: phase_mark,
        lock: context.store.live_dir().join("shim.lock"),
    };
    let hidden = block_in_place(|| {
        permissions::open_before_session(context)?;
        if git_dir::read_snapshot(context, task.iter)?.is_none() {
            ignored::save_before_session(context, loaded)?;
        }
        git_dir::save_snapshot(context, loaded.commit, task.iter)?;
        guard_overlay::hide(context, task.iter, runner_agents::config_paths(&executor))
    })?;
    context.last_scan.invalidate();
    let mut end: SessionEnd = runner_agents::run_session(session, &context.launcher, stop).await?;
    fill_in_cost(loaded, &executor, &mut end);
    if let SessionEndKind::Faulty { kind: FaultKind::Exit | FaultKind::NoAnswer, what } = &mut end.how
        && !folder.join("prompt.md").exists()
    {
        what.push_str("; it removed .runner/iterations, where its answer belongs");
    }
    Ok(SessionEnd { hidden, ..end })
}

/// Returns where the folders of a session are, which can be found again by its mark.
pub(crate) fn session_dirs(context: &RunContext, mark: &Mark) -> runner_agents::SessionDirs {
    let digest = Digest::compute(mark.as_str().as_bytes());
    runner_agents::SessionDirs::new(&context.store.sessions_dir(), &context.env, &digest.hex()[..12])
}

/// Computes the cost of a session if its agent does not report one and its model has a price.
pub(crate) fn fill_in_cost<A>(loaded: &CommittedState, executor: &Executor, end: &mut SessionEnd<A>) {
    if end.usage.cost_micro_usd.is_none() {
        let quote = loaded.config.price_of(executor, end.model.as_deref());
        end.usage.cost_micro_usd = quote.and_then(|quote| quote.price().cost_of(&end.usage));
    }
}

/// Returns how the session of a task is run, restricted by the limits of its node.
fn narrow_executor(context: &RunContext, loaded: &CommittedState, task: &SessionTask) -> Result<Executor, EffectError> {
    let mut executor = executor_for_task(loaded, task);
    // An unreadable limits file holds the run before a session starts.
    for limits in node_limits::limits_on_path(&context.repository()?, &loaded.commit, &task.path)?.unwrap_or_default() {
        limits.narrow(&mut executor);
    }
    Ok(executor)
}

/// Returns how the session of a task is run: by its role's configuration, with the agent kind chosen for it.
pub(crate) fn executor_for_task(loaded: &CommittedState, task: &SessionTask) -> Executor {
    let config = loaded.config.executor.for_role(task.role);
    let chosen = task.kind.as_deref().and_then(ExecutorKind::from_spelling);
    config.for_fallback(chosen.unwrap_or(config.kind))
}

/// Kills what an earlier daemon process has left of a phase, and returns how many processes there were.
pub(crate) fn end_leftovers(context: &RunContext, mark: &str, phase: PhaseName) -> Result<u32, EffectError> {
    let mark = Mark::new(format!("{mark}-{phase}"));
    let report = orphans::end_survivors(&mark, &context.store.live_dir().join("shim.lock"), SWEEP_LIMIT)?;
    session_dirs(context, &mark).remove();
    Ok(u32::try_from(report.ended.len()).unwrap_or(u32::MAX))
}
