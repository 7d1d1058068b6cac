//! Open: is the repository as the run needs it, and what is next?
//!
//! Looks only. What stops a run from being begun is a hold with the command that goes on; what ends it
//! is decided by `runner_core::run`.

use std::sync::Arc;

use protocol::view::StopReason;
use runner_core::message::RunnerCommit;
use runner_core::person;
use runner_core::run::{self, Next};
use runner_core::verdict::Task;

use super::definition;
use super::desk::reason;
use super::load::{LoadError, Loaded, load};
use super::site::{Obstacle, Site};
use super::swap;
use super::tools;
use crate::causes::in_one_line;
use crate::git::{CommitInfo, GitError, Head, Id, Repository};

/// Commits that are looked through for the runner's last one.
pub(super) const MAX_PERSON_COMMITS: usize = 10_000;

/// What Open found.
#[derive(Debug)]
pub(super) enum Found {
    /// A leaf to work on.
    Task(Arc<Loaded>, Task),
    /// The run waits or ends.
    Next(Next),
    /// A person must look first.
    Hold(StopReason),
}

/// Looks whether an iteration can begin, and on what.
pub(super) fn open(site: &Site) -> Result<Found, Obstacle> {
    swap::back(site)?;
    let repository = site.repository()?;
    let commit = match on_branch(site, &repository)? {
        Ok(commit) => commit,
        Err(hold) => return Ok(Found::Hold(hold)),
    };
    let loaded = match site.shelf.load(&repository, commit) {
        Ok(loaded) => loaded,
        Err(LoadError::Git(error)) => return Err(error.into()),
        Err(error) => return Ok(Found::Hold(unreadable(&error))),
    };
    // What a person may not do comes first: it could make the tree look finished.
    if let Some(hold) =
        identity(site, &loaded).map_or_else(|| persons_commits(&repository, &loaded), |hold| Ok(Some(hold)))?
    {
        return Ok(Found::Hold(hold));
    }
    let mut task = match run::next(&loaded.standing(&site.uncommitted), None, None) {
        Next::GoOn(task) => task,
        next => return Ok(Found::Next(next)),
    };
    let tools = tools::on_path(&repository, &commit, &task.path)?.err();
    let tools = tools.map(|wrong| reason(wrong.to_string(), "correct the file, commit it, and: runnerctl resume"));
    let hold = unbuilt(site, &loaded).or_else(|| templates(&loaded)).or(tools).or_else(|| unfinished(&repository));
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
fn on_branch(site: &Site, repository: &Repository) -> Result<Result<Id, StopReason>, GitError> {
    let branch = site.branch();
    let seen = match repository.head()? {
        Head::Branch { name, commit: Some(commit) } if name == branch => return Ok(Ok(commit)),
        Head::Branch { name, .. } => format!("branch {name} is checked out"),
        Head::Detached { commit } => format!("HEAD is detached at {}", commit.short(12)),
    };
    let message = format!("{seen} in {}, but the run is on {branch}", repository.work_dir().display());
    Ok(Err(reason(message, &format!("git switch {branch} && runnerctl resume"))))
}

fn unreadable(error: &LoadError) -> StopReason {
    reason(
        format!("the committed state is not valid: {}", in_one_line(error)),
        "correct the file, commit it, and: runnerctl resume",
    )
}

/// A configuration that was committed since the run was admitted may ask for what this version or this machine does not
/// do, or for a ceiling that cannot be kept.
fn unbuilt(site: &Site, loaded: &Loaded) -> Option<StopReason> {
    let blind = loaded.config.check_ceilings().err();
    crate::containment_check::loose(&loaded.config, site.launcher.offer())
        .map(|unbuilt| reason(unbuilt.message, &format!("{}, commit, and: runnerctl resume", unbuilt.hint)))
        .or_else(|| {
            blind.map(|blind| {
                reason(blind.to_string(), "commit that in .runner/state/config.toml, and: runnerctl resume")
            })
        })
}

/// A template that would be filled wrongly is told before it is sent to an agent.
fn templates(loaded: &Loaded) -> Option<StopReason> {
    let faults = &loaded.template_faults;
    let told = || reason(faults.join("; "), "correct the template, commit it, and: runnerctl resume");
    (!faults.is_empty()).then(told)
}

fn identity(site: &Site, loaded: &Loaded) -> Option<StopReason> {
    let ids = [("GOAL.md", loaded.goal.id()), ("run_state.json", loaded.run_state.run_id.as_deref())];
    let wrong = ids.into_iter().find(|(_, id)| *id != Some(site.run.as_str()));
    wrong.map(|(file, id)| {
        let id = id.unwrap_or("none");
        let message = format!("{file} names run {id}, but the branch is {}", site.branch());
        reason(message, &format!("set the id in .runner to {}, commit, and: runnerctl resume", site.run))
    })
}

fn unfinished(repository: &Repository) -> Option<StopReason> {
    repository.operation().map(|operation| {
        let message = format!("a {operation} is under way in {}", repository.work_dir().display());
        reason(message, &format!("finish or abort the {operation}, and: runnerctl resume"))
    })
}

fn clean(repository: &Repository) -> Result<Option<StopReason>, GitError> {
    let changes = Site::changes(repository)?;
    if changes.is_empty() {
        return Ok(None);
    }
    let shown: Vec<String> = changes.iter().take(10).map(crate::git::Change::display_path).collect();
    let more = changes.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!("the work tree has changes that are not committed: {}{more}", shown.join(", "));
    Ok(Some(reason(message, "git add -A && git commit, or git restore; then: runnerctl resume")))
}

/// Checks what a person has committed since the runner's last commit.
pub(super) fn persons_commits(repository: &Repository, loaded: &Loaded) -> Result<Option<StopReason>, GitError> {
    let is_runners = |commit: &CommitInfo| RunnerCommit::parse(&commit.message).is_ok();
    if repository.first_parents(&loaded.commit, 1)?.first().is_some_and(is_runners) {
        return Ok(None);
    }
    let commits = repository.first_parents(&loaded.commit, MAX_PERSON_COMMITS)?;
    let last = commits.iter().find(|commit| is_runners(commit));
    let Some(last) = last else { return Ok(None) };
    let before = match load(repository, last.id) {
        Ok(before) => before,
        Err(LoadError::Git(error)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let breach = person::check(&before.tree, &loaded.tree).err();
    Ok(breach.map(|breach| {
        let message = format!("a commit since {} breaks a rule: {breach}", last.id.short(12));
        reason(message, "take that change back in a commit of your own, and: runnerctl resume")
    }))
}
