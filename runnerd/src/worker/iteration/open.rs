//! Open: is the repository in the state that the run needs, and what is next?
//!
//! Only looks. What prevents an iteration from starting is a hold with the command that continues; what ends the run is
//! decided by `runner_core::run`.

use std::sync::Arc;

use protocol::command::{Command, NextSteps};
use protocol::view::StopReason;
use runner_core::message::RunnerCommit;
use runner_core::run::commit_advice;
use runner_core::run::{self, NextStep};
use runner_core::verdict::SessionTask;
use runner_git::{CommitInfo, GitError, Head, Id, Repository};

use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::definition;
use crate::worker::integrity::guard_overlay;
use crate::worker::iteration::node_limits;
use crate::worker::load::{CommittedState, LoadError, MAX_PERSON_COMMITS};
use crate::worker::person_commits::check_person_commits;

/// What Open found.
#[derive(Debug)]
pub(crate) enum OpenOutcome {
    /// A leaf to work on, with the state at From.
    Task(Arc<CommittedState>, SessionTask),
    /// The run waits or ends.
    Next(NextStep),
    /// A person must intervene first.
    Hold(StopReason),
}

/// Decides whether an iteration can start, and on what.
pub(crate) fn open_iteration(context: &RunContext) -> Result<OpenOutcome, EffectError> {
    guard_overlay::revert(context)?;
    let repository = context.repository()?;
    let commit = match check_branch(context, &repository)? {
        Ok(commit) => commit,
        Err(hold) => return Ok(OpenOutcome::Hold(hold)),
    };
    let loaded = match context.last_load.load(&repository, commit) {
        Ok(loaded) => loaded,
        Err(LoadError::Git(error)) => return Err(error.into()),
        Err(error) => return Ok(OpenOutcome::Hold(error.to_stop_reason())),
    };
    // A person's rule violations come first: they could make the tree look finished.
    if let Some(hold) = check_identity(context, &loaded)
        .map_or_else(|| check_person_commits(&repository, &loaded), |hold| Ok(Some(hold)))?
    {
        return Ok(OpenOutcome::Hold(hold));
    }
    let mut task = match run::decide_next(&loaded.run_inputs(&context.uncommitted), None, None) {
        NextStep::Continue(task) => task,
        next => return Ok(OpenOutcome::Next(next)),
    };
    let tools = node_limits::limits_on_path(&repository, &commit, &task.path)?.err();
    let tools =
        tools.map(|wrong| StopReason::new(wrong.to_string(), "fix the file, commit it, then: runnerctl resume"));
    let hold = check_supported(context, &loaded)
        .or_else(|| check_templates(&loaded))
        .or(tools)
        .or_else(|| check_no_operation(&repository));
    definition::watch_files(&repository, &loaded)?;
    if let Some(hold) = hold.map_or_else(|| check_clean(&repository), |hold| Ok(Some(hold)))? {
        return Ok(OpenOutcome::Hold(hold));
    }
    task.from = commit.to_string();
    task.recheck = task.decision.is_some() && has_changed_since(&repository, &task)?;
    Ok(OpenOutcome::Task(loaded, task))
}

/// Whether files outside `.runner/` differ from those that the guard passed in the last iteration.
fn has_changed_since(repository: &Repository, task: &SessionTask) -> Result<bool, EffectError> {
    let from: Id = task.from.parse().map_err(|_| EffectError::InvalidCommit(task.from.clone()))?;
    let commits = repository.first_parents(&from, MAX_PERSON_COMMITS)?;
    // A fork continues from an iteration of another run.
    let is_iteration = |commit: &&CommitInfo| {
        matches!(RunnerCommit::parse(&commit.message), Ok(RunnerCommit::Iteration(receipt))
            if receipt.iter.checked_add(1) == Some(task.iter))
    };
    let Some(guarded) = commits.iter().find(is_iteration) else { return Ok(true) };
    let changed = repository.changed_paths(&guarded.id, &from)?;
    Ok(changed.iter().any(|path| !path.starts_with(b".runner/")))
}

/// Returns HEAD's commit if HEAD is on the run's branch.
fn check_branch(context: &RunContext, repository: &Repository) -> Result<Result<Id, StopReason>, GitError> {
    let branch = context.branch();
    let found = match repository.head()? {
        Head::Branch { name, commit: Some(commit) } if name == branch => return Ok(Ok(commit)),
        Head::Branch { name, .. } => format!("branch {name} is checked out"),
        Head::Detached { commit } => format!("HEAD is detached at {}", commit.short(12)),
    };
    let message = format!("{found} in {}, but the run is on {branch}", repository.work_dir().display());
    Ok(Err(StopReason::new(message, NextSteps::from(Command::switch(&branch)).join(" && ", "runnerctl resume"))))
}

/// Returns a hold if the configuration, which may have been committed since the run was admitted, requires what this
/// version or this machine does not support, or a ceiling that cannot be enforced.
fn check_supported(context: &RunContext, loaded: &CommittedState) -> Option<StopReason> {
    let unkept_ceiling = loaded.config.check_cost_limit().err();
    crate::containment_check::check_containment(&loaded.config, context.launcher.capabilities())
        .map(|unbuilt| {
            StopReason::new(
                unbuilt.message,
                NextSteps::from(unbuilt.hint).join(", commit", "").then("runnerctl resume"),
            )
        })
        .or_else(|| {
            unkept_ceiling.map(|blind| {
                StopReason::new(blind.to_string(), "commit that in .runner/state/config.toml, then: runnerctl resume")
            })
        })
}

/// Reports faulty templates before a wrongly filled prompt is sent to an agent.
fn check_templates(loaded: &CommittedState) -> Option<StopReason> {
    let faults = &loaded.template_faults;
    let to_hold = || StopReason::new(faults.join("; "), "fix the template, commit it, then: runnerctl resume");
    (!faults.is_empty()).then(to_hold)
}

fn check_identity(context: &RunContext, loaded: &CommittedState) -> Option<StopReason> {
    let ids = [("GOAL.md", loaded.goal.id()), ("run_state.json", loaded.run_state.run_id.as_deref())];
    let mismatch = ids.into_iter().find(|(_, id)| *id != Some(context.run.as_str()));
    mismatch.map(|(file, id)| {
        let id = id.unwrap_or("none");
        let message = format!("{file} names run {id}, but the branch is {}", context.branch());
        let ways =
            NextSteps::from(format!("set the id in .runner to {}, commit", context.run)).then("runnerctl resume");
        StopReason::new(message, ways)
    })
}

fn check_no_operation(repository: &Repository) -> Option<StopReason> {
    repository.operation().map(|operation| {
        let message = format!("a {operation} is in progress in {}", repository.work_dir().display());
        StopReason::new(message, NextSteps::from(format!("finish or abort the {operation}")).then("runnerctl resume"))
    })
}

fn check_clean(repository: &Repository) -> Result<Option<StopReason>, GitError> {
    let changes = RunContext::changes_after_cleanup(repository)?;
    if changes.is_empty() {
        return Ok(None);
    }
    // Files that git cannot convert may be unchanged since their commit: the program that could tell must be installed
    // first.
    repository.check_storable(&changes)?;
    let names: Vec<String> = changes.iter().take(10).map(runner_git::WorktreeChange::display_path).collect();
    let more = changes.len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!("the working tree has changes that are not committed: {}{more}", names.join(", "));
    let paths: Vec<String> = changes.iter().map(runner_git::WorktreeChange::display_path).collect();
    Ok(Some(StopReason::new(message, commit_advice::commit_ways(&paths).join("; then: ", "runnerctl resume"))))
}
