//! Which run a start is about: an existing one that continues, or a new one with its own id. Whether it may begin is
//! decided by the rules; nothing is changed here.

use protocol::command::{Command, NextSteps};
use protocol::error::{ErrorData, ErrorKind};
use protocol::request::StartParams;
use runner_config::goal::Goal;
use runner_core::run::{RequestRefusal, RunScratch, check_restart};
use runner_core::tree::ids::check_id;
use runner_core::tree::select::{LeafSelection, select};
use runner_git::{GitError, Id, Repository};

use super::{choose_id_stem, find_head_commit, git_error, read_goal, used_run_ids};
use crate::repo::layout::Layout;
use crate::worker::{self, CommittedState, IdChoice, LoadError};

/// Maximum number of commits searched for the goal of a completed run.
const MAX_COMMITS: usize = 1_000;

/// The run that a start is about.
pub(super) struct StartTarget {
    /// The id of the run.
    pub id: IdChoice,
    /// Whether it already has a branch.
    pub has_branch: bool,
    /// Why it would end again at once, given what is committed.
    pub refusal: Option<RequestRefusal>,
}

/// Chooses the run that a start refers to.
///
/// It is the run that was named, or that the goal names, unless that run has reached its goal and this is a different
/// one.
pub(super) fn choose_run(
    repository: &Repository,
    layout: &Layout,
    params: &StartParams,
    new_goal: Option<&Goal>,
) -> Result<StartTarget, ErrorData> {
    let current_goal = if new_goal.is_none() { read_goal(layout)? } else { None };
    // The goal at another base is read when the run begins there.
    let goal = new_goal.or(current_goal.as_ref().filter(|_| params.base.is_none()));
    let written_id = new_goal.or(current_goal.as_ref()).and_then(Goal::id).map(str::to_owned);
    let Some(id) = params.id.clone().or(written_id) else { return derive_id(repository, goal) };
    refuse_other_case(repository, &id)?;
    check_id(&id).map_err(|error| {
        ErrorData::new(ErrorKind::InvalidRequest, error.to_string()).hint("choose another id with --id")
    })?;
    let tip = find_run_tip(repository, &id).map_err(|error| git_error(&error))?;
    let has_branch = tip.map_or(Ok(false), |tip| has_begun(repository, &id, tip, new_goal.is_some()))?;
    let commit = if has_branch { tip } else { Some(find_head_commit(repository)?) };
    if let Some(goal) = current_goal.as_ref().filter(|_| params.id.is_some() && params.base.is_none() && !has_branch) {
        refuse_goal_of_other(repository, &id, goal)?;
    }
    let loaded =
        commit.and_then(|at| worker::load_state(repository, at).ok()).filter(|loaded| belongs_to_run(loaded, &id));
    let Some(loaded) = loaded.filter(|_| has_branch || params.id.is_none()) else {
        return Ok(StartTarget { id: IdChoice::Given(id), has_branch, refusal: None });
    };
    if select(&loaded.tree) == LeafSelection::Complete {
        let is_new = params.id.is_none() && is_other_goal(repository, &loaded, current_goal.as_ref())?;
        return if is_new { derive_id(repository, goal) } else { Err(RequestRefusal::IsCompleted.to_error_data(&id)) };
    }
    let refusal = check_restart(&loaded.run_inputs(&RunScratch::default())).err().filter(|_| has_branch);
    Ok(StartTarget { id: IdChoice::Given(id), has_branch, refusal })
}

/// Refuses to begin a run with the goal of another one whose files are checked out: its id may be a mistake.
fn refuse_goal_of_other(repository: &Repository, id: &str, goal: &Goal) -> Result<(), ErrorData> {
    let Some(other) = goal.id().filter(|other| *other != id) else { return Ok(()) };
    let head = find_head_commit(repository)?;
    let Ok(loaded) = worker::load_state(repository, head) else { return Ok(()) };
    if !belongs_to_run(&loaded, other) || loaded.goal.body() != goal.body() {
        return Ok(());
    }
    let hint = format!(
        "runnerctl start --id {id} -m 'What is to be true'; or for the same goal: runnerctl start --id {id} --goal {}",
        Layout::GOAL
    );
    let message = format!("no run has the id {id}, and the goal in {} is that of run {other}", Layout::GOAL);
    Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint(hint))
}

/// Makes an id that no run has.
fn derive_id(repository: &Repository, goal: Option<&Goal>) -> Result<StartTarget, ErrorData> {
    let id = IdChoice::Derived { stem: choose_id_stem(repository, goal)?, taken: used_run_ids(repository)? };
    Ok(StartTarget { id, has_branch: false, refusal: None })
}

/// Returns the tip of a run's branch, local or as last fetched.
fn find_run_tip(repository: &Repository, id: &str) -> Result<Option<Id>, GitError> {
    let branch = format!("runner/{id}");
    match repository.find_branch_tip(&branch)? {
        Some(tip) => Ok(Some(tip)),
        None => repository.find_remote_branch("origin", &branch),
    }
}

fn belongs_to_run(loaded: &CommittedState, id: &str) -> bool {
    loaded.run_state.run_id.as_deref() == Some(id)
}

/// Whether the goal in the work tree differs from the one that the run with this committed state has reached.
///
/// The goal that was reached is in the commit with which the tree became complete: the user may have committed another
/// one since.
fn is_other_goal(
    repository: &Repository,
    end: &CommittedState,
    current_goal: Option<&Goal>,
) -> Result<bool, ErrorData> {
    let Some(goal) = current_goal else { return Ok(false) };
    let mut reached = end.goal.body().trim().to_owned();
    let commits = repository.first_parents(&end.commit, MAX_COMMITS).map_err(|error| git_error(&error))?;
    for commit in commits {
        let before = worker::load_state(repository, commit.id).ok();
        let is_end = |loaded: &CommittedState| {
            loaded.run_state.run_id == end.run_state.run_id && select(&loaded.tree) == LeafSelection::Complete
        };
        let Some(loaded) = before.filter(is_end) else { break };
        loaded.goal.body().trim().clone_into(&mut reached);
    }
    Ok(goal.body().trim() != reached)
}

/// Refuses an id that differs from another run's only in case: ids must be unique regardless of case.
pub(super) fn refuse_other_case(repository: &Repository, id: &str) -> Result<(), ErrorData> {
    let branches = repository.list_branches("runner/").map_err(|error| git_error(&error))?;
    let mut ids = branches.iter().filter_map(|(name, _)| name.strip_prefix("runner/"));
    match ids.find(|other| *other != id && other.eq_ignore_ascii_case(id)) {
        Some(other) => {
            Err(ErrorData::new(ErrorKind::InvalidRequest, format!("id {id} differs from run {other} only in case"))
                .hint(NextSteps::from(Command::start_again(other)).join(", or ", "choose another id with --id")))
        }
        None => Ok(()),
    }
}

/// Whether the run has begun at the tip of its branch; a branch of that name that belongs to another run is refused.
fn has_begun(repository: &Repository, id: &str, tip: Id, has_goal: bool) -> Result<bool, ErrorData> {
    let branch = format!("runner/{id}");
    let loaded = match worker::load_state(repository, tip) {
        Ok(loaded) => loaded,
        Err(error @ (LoadError::Rules { .. } | LoadError::Tampered { .. })) => {
            return Err(error.to_error_data("runnerctl validate"));
        }
        // A faulty state is reported when the run has its turn.
        Err(_) => return Ok(true),
    };
    let ids = [("GOAL.md", loaded.goal.id()), ("run_state.json", loaded.run_state.run_id.as_deref())];
    for (file, found) in ids {
        if found.is_some_and(|found| found != id) {
            let found = found.unwrap_or("none");
            let message = format!("branch {branch} exists, but its {file} names run {found}");
            return Err(ErrorData::new(ErrorKind::IdentityMismatch, message)
                .hint(NextSteps::from(Command::start_again(found)).join(", or ", "choose another id with --id")));
        }
    }
    if has_goal && loaded.run_state.run_id.is_some() {
        let message = format!("run {id} has begun, and its goal is not replaced");
        return Err(ErrorData::new(ErrorKind::WrongState, message)
            .hint(format!("runnerctl start --id {id} without a goal to continue it, or another --id")));
    }
    Ok(true)
}

/// Refuses a base or a branch to land on for a run that has begun: it has both already.
pub(super) fn refuse_other_base(id: &str, params: &StartParams) -> Result<(), ErrorData> {
    let named = [params.base.as_ref().map(|_| "--base"), params.onto.as_ref().map(|_| "--onto")];
    let Some(option) = named.into_iter().flatten().next() else { return Ok(()) };
    let message = format!("run {id} has begun and continues on its own branch: {option} is only for a new run");
    let hint = format!("to continue it: runnerctl start --id {id}; a new run: runnerctl start {option} NAME -m TEXT");
    Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint(hint))
}

/// Refuses a branch to land on that is not there.
pub(super) fn refuse_unknown_branch(repository: &Repository, onto: Option<&str>) -> Result<(), ErrorData> {
    let Some(branch) = onto else { return Ok(()) };
    if repository.find_branch_tip(branch).map_err(|error| git_error(&error))?.is_some() {
        return Ok(());
    }
    let message = format!("--onto: there is no branch {branch}");
    Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint("git branch --list"))
}
