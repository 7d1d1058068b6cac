//! What must hold before a fork is queued: an iteration that left a commit, and an unused id.

use protocol::command::{Command, NextSteps};
use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::request::ForkParams;
use runner_core::run::{StartRequest, StartSpec};
use runner_core::tree::ids::{check_id, fork_id_from_title};
use runner_git::{Id, Repository, WorktreeChange};

use super::{
    ProgramInputs, StartCommands, StartPreconditions, check_config, git_error, invalid_config_error, refuse_operation,
    refuse_other_case, refuse_paths, refuse_pipes, refuse_protected, refuse_ref_conflict_for, used_run_ids,
};
use crate::worker::{self, IdChoice, StartOrder};

/// Maximum number of commits searched for the iteration.
const MAX_COMMITS: usize = 100_000;

/// Checks everything that a fork of `run` needs of the repository.
///
/// While a run is at work in the work tree, its state is meaningless; it is checked when the fork has its turn.
pub fn check_fork(
    repository: &Repository,
    run: &str,
    params: &ForkParams,
    preconditions: StartPreconditions<'_>,
) -> Result<(StartOrder, StartCommands), ErrorData> {
    let from = find_iteration_commit(repository, run, params.iter)?;
    if !preconditions.is_session_active {
        refuse_pipes(repository)?;
        refuse_operation(repository)?;
        refuse_uncommitted(repository)?;
    }
    // The same goal as at the commit; if it cannot be read, the run reports that when it begins.
    let goal = worker::load_state(repository, from).ok().and_then(|loaded| loaded.goal.headline());
    let id = choose_fork_id(repository, params.id.as_deref(), from, goal.as_deref())?;
    refuse_ref_conflict_for(repository, &id)?;
    let config = worker::load_config(repository, from).map_err(|error| invalid_config_error(&error))?;
    if let IdChoice::Given(id) = &id {
        refuse_protected(&config, id)?;
    }
    let commands = check_config(
        repository,
        &config,
        ProgramInputs { env: &params.env.0, capabilities: preconditions.capabilities },
    )?;
    let start_spec = StartSpec {
        base: Some(from.to_string()),
        goal: None,
        keep_tree: true,
        fork: true,
        config: None,
        id_stem: id.stem(),
    };
    let path = WirePath::from(repository.work_dir());
    let start =
        StartRequest { path, goal, goal_file: None, start_spec, queue_only: params.queue_only, is_begun: false };
    Ok((StartOrder { id, start, refusal: None }, commands))
}

/// Finds the commit in which an iteration ended.
fn find_iteration_commit(repository: &Repository, run: &str, iter: u32) -> Result<Id, ErrorData> {
    let branch = format!("runner/{run}");
    let not_found = |message: String, ways: NextSteps| ErrorData::new(ErrorKind::NotFound, message).hint(ways);
    let tip = repository.find_branch_tip(&branch).map_err(|error| git_error(&error))?;
    let tip = tip.ok_or_else(|| {
        let message = format!("run {run} has no iterations: there is no branch {branch}");
        let ways = NextSteps::from(format!("runnerctl fork --from RUN/{iter}"))
            .join(", with a run of: ", "runnerctl queue --ended");
        not_found(message, ways)
    })?;
    let iterations = worker::list_iterations(repository, run, tip, MAX_COMMITS)
        .map_err(|error| error.to_error_data(Command::list_iterations(run)))?;
    let found = iterations.iter().find(|view| view.iter == iter).and_then(|view| view.commit.as_ref()?.parse().ok());
    found.ok_or_else(|| {
        let message = format!("no commit of branch {branch} is that of iteration {iter:04} of run {run}");
        not_found(message, Command::list_iterations(run).into())
    })
}

/// Refuses uncommitted changes: a fork is exactly its commit.
fn refuse_uncommitted(repository: &Repository) -> Result<(), ErrorData> {
    let changes = repository.list_changes().map_err(|error| git_error(&error))?;
    let paths: Vec<String> = changes.iter().map(WorktreeChange::display_path).collect();
    refuse_paths(repository, &paths)
}

fn choose_fork_id(
    repository: &Repository,
    requested: Option<&str>,
    from: Id,
    goal: Option<&str>,
) -> Result<IdChoice, ErrorData> {
    let taken = used_run_ids(repository)?;
    let Some(id) = requested else {
        let stem = goal.and_then(fork_id_from_title).unwrap_or_else(|| format!("run-{}", from.short(8)));
        return Ok(IdChoice::Derived { stem, taken });
    };
    let refuse = |kind, message: String| Err(ErrorData::new(kind, message).hint("choose another id with --id"));
    if let Err(error) = check_id(id) {
        return refuse(ErrorKind::InvalidRequest, error.to_string());
    }
    refuse_other_case(repository, id)?;
    let branch = format!("runner/{id}");
    let tips = [repository.find_branch_tip(&branch), repository.find_remote_branch("origin", &branch)];
    let [local_tip, elsewhere] = tips.map(|tip| tip.map_err(|error| git_error(&error)));
    if local_tip?.is_some() || elsewhere?.is_some() {
        return refuse(ErrorKind::WrongState, format!("run {id} already exists, and a fork is a new run"));
    }
    Ok(IdChoice::Given(id.to_owned()))
}
