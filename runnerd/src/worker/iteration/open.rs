//! Open: is the repository as the run needs it, and what is next?
//!
//! Looks only. What stops a run from being begun is a hold with the command that goes on; what ends it
//! is decided by `runner_core::run`.

use std::sync::Arc;

use protocol::command::{Command, Ways};
use protocol::view::StopReason;
use runner_core::message::RunnerCommit;
use runner_core::run::{self, Next};
use runner_core::uncommitted;
use runner_core::verdict::Task;

use crate::git::{CommitInfo, GitError, Head, Id, Repository};
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::definition;
use crate::worker::integrity::swap;
use crate::worker::iteration::tools;
use crate::worker::load::{LoadError, Loaded, MAX_PERSON_COMMITS};
use crate::worker::people::persons_commits;

/// What Open found.
#[derive(Debug)]
pub(crate) enum Found {
    /// A leaf to work on.
    Task(Arc<Loaded>, Task),
    /// The run waits or ends.
    Next(Next),
    /// It needs the attention of a person first.
    Hold(StopReason),
}

/// Looks whether an iteration can begin, and on what.
pub(crate) fn open(context: &RunContext) -> Result<Found, Obstacle> {
    swap::back(context)?;
    let repository = context.repository()?;
    let commit = match on_branch(context, &repository)? {
        Ok(commit) => commit,
        Err(hold) => return Ok(Found::Hold(hold)),
    };
    let loaded = match context.last_load.load(&repository, commit) {
        Ok(loaded) => loaded,
        Err(LoadError::Git(error)) => return Err(error.into()),
        Err(error) => return Ok(Found::Hold(error.hold())),
    };
    // What a person may not do comes first: it could make the tree look finished.
    if let Some(hold) =
        identity(context, &loaded).map_or_else(|| persons_commits(&repository, &loaded), |hold| Ok(Some(hold)))?
    {
        return Ok(Found::Hold(hold));
    }
    let mut task = match run::next(&loaded.standing(&context.uncommitted), None, None) {
        Next::GoOn(task) => task,
        next => return Ok(Found::Next(next)),
    };
    let tools = tools::on_path(&repository, &commit, &task.path)?.err();
    let tools =
        tools.map(|wrong| StopReason::new(wrong.to_string(), "fix the file, commit it, then: runnerctl resume"));
    let hold = unbuilt(context, &loaded).or_else(|| templates(&loaded)).or(tools).or_else(|| unfinished(&repository));
    definition::watch(&repository, &loaded)?;
    if let Some(hold) = hold.map_or_else(|| clean(&repository), |hold| Ok(Some(hold)))? {
        return Ok(Found::Hold(hold));
    }
    task.from = commit.to_string();
    task.recheck = task.decision.is_some() && has_changed_since(&repository, &task)?;
    Ok(Found::Task(loaded, task))
}

/// Whether files outside of `.runner/` are others than those that the guard has passed in the last iteration.
fn has_changed_since(repository: &Repository, task: &Task) -> Result<bool, Obstacle> {
    let from: Id = task.from.parse().map_err(|_| Obstacle::NoCommit(task.from.clone()))?;
    let commits = repository.first_parents(&from, MAX_PERSON_COMMITS)?;
    // A fork goes on from an iteration of another run.
    let is_iteration = |commit: &&CommitInfo| {
        matches!(RunnerCommit::parse(&commit.message), Ok(RunnerCommit::Iteration(receipt))
            if receipt.iter.checked_add(1) == Some(task.iter))
    };
    let Some(guarded) = commits.iter().find(is_iteration) else { return Ok(true) };
    let changed = repository.changed_paths(&guarded.id, &from)?;
    Ok(changed.iter().any(|path| !path.starts_with(b".runner/")))
}

/// Returns HEAD's commit if HEAD is on the run's branch.
fn on_branch(context: &RunContext, repository: &Repository) -> Result<Result<Id, StopReason>, GitError> {
    let branch = context.branch();
    let seen = match repository.head()? {
        Head::Branch { name, commit: Some(commit) } if name == branch => return Ok(Ok(commit)),
        Head::Branch { name, .. } => format!("branch {name} is checked out"),
        Head::Detached { commit } => format!("HEAD is detached at {}", commit.short(12)),
    };
    let message = format!("{seen} in {}, but the run is on {branch}", repository.work_dir().display());
    Ok(Err(StopReason::new(message, Ways::from(Command::switch(&branch)).join(" && ", "runnerctl resume"))))
}

/// A configuration that was committed since the run was admitted may ask for what this version or this machine does not
/// do, or for a ceiling that cannot be kept.
fn unbuilt(context: &RunContext, loaded: &Loaded) -> Option<StopReason> {
    let blind = loaded.config.check_ceilings().err();
    crate::containment_check::loose(&loaded.config, context.launcher.offer())
        .map(|unbuilt| {
            StopReason::new(unbuilt.message, Ways::from(unbuilt.hint).join(", commit", "").then("runnerctl resume"))
        })
        .or_else(|| {
            blind.map(|blind| {
                StopReason::new(blind.to_string(), "commit that in .runner/state/config.toml, then: runnerctl resume")
            })
        })
}

/// A template that would be filled wrongly is told before it is sent to an agent.
fn templates(loaded: &Loaded) -> Option<StopReason> {
    let faults = &loaded.template_faults;
    let told = || StopReason::new(faults.join("; "), "fix the template, commit it, then: runnerctl resume");
    (!faults.is_empty()).then(told)
}

fn identity(context: &RunContext, loaded: &Loaded) -> Option<StopReason> {
    let ids = [("GOAL.md", loaded.goal.id()), ("run_state.json", loaded.run_state.run_id.as_deref())];
    let wrong = ids.into_iter().find(|(_, id)| *id != Some(context.run.as_str()));
    wrong.map(|(file, id)| {
        let id = id.unwrap_or("none");
        let message = format!("{file} names run {id}, but the branch is {}", context.branch());
        let ways = Ways::from(format!("set the id in .runner to {}, commit", context.run)).then("runnerctl resume");
        StopReason::new(message, ways)
    })
}

fn unfinished(repository: &Repository) -> Option<StopReason> {
    repository.operation().map(|operation| {
        let message = format!("a {operation} is in progress in {}", repository.work_dir().display());
        StopReason::new(message, Ways::from(format!("finish or abort the {operation}")).then("runnerctl resume"))
    })
}

fn clean(repository: &Repository) -> Result<Option<StopReason>, GitError> {
    let changes = RunContext::changes(repository)?;
    if changes.is_empty() {
        return Ok(None);
    }
    // What git cannot convert may be as it was committed: whoever can tell has to be there first.
    repository.refuse_unstorable(&changes)?;
    let shown: Vec<String> = changes.iter().take(10).map(crate::git::Change::display_path).collect();
    let more = changes.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!("the work tree has changes that are not committed: {}{more}", shown.join(", "));
    let paths: Vec<String> = changes.iter().map(crate::git::Change::display_path).collect();
    Ok(Some(StopReason::new(message, uncommitted::ways(&paths).join("; then: ", "runnerctl resume"))))
}
