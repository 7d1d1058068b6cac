//! Selects a run's branch: the one that is named, the one checked out, or the only one.

use std::collections::BTreeMap;

use protocol::command::{Command, NextSteps};
use protocol::error::{ErrorData, ErrorKind};
use protocol::state::RunState;
use runner_git::{GitError, Head, Id, Repository};

use super::branch_audit::skip_unreadable;
use crate::admit::{git_error, no_run_error};
use crate::repo::layout::Layout;

/// A run's branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyTarget {
    /// Id of the run.
    pub run: String,
    /// Its last commit.
    pub tip: Id,
}

/// Finds the branch of a run, named by its id or a prefix of it; `command` is the one to suggest if there are several.
pub fn resolve_target(
    repository: &Repository,
    run_prefix: Option<&str>,
    command: &str,
) -> Result<VerifyTarget, ErrorData> {
    if run_prefix.is_none()
        && let Some(target) = find_checked_out(repository).map_err(|error| git_error(&error))?
    {
        return Ok(target);
    }
    let runs = list_runs(repository).map_err(|error| git_error(&error))?;
    let matching: Vec<VerifyTarget> = runs
        .iter()
        .filter(|(run, _)| run_prefix.is_none_or(|prefix| run.starts_with(prefix)))
        .map(|(run, tip)| VerifyTarget { run: run.clone(), tip: *tip })
        .collect();
    let exact = matching.iter().find(|target| Some(target.run.as_str()) == run_prefix);
    match (exact, &matching[..]) {
        (Some(one), _) | (None, [one]) => Ok(one.clone()),
        (None, []) => Err(not_found_error(repository, run_prefix)),
        (None, several) => Err(ambiguous_error(run_prefix, several, command)),
    }
}

/// Returns the run whose branch, or whose commit, is checked out.
fn find_checked_out(repository: &Repository) -> Result<Option<VerifyTarget>, GitError> {
    Ok(match repository.head()? {
        Head::Branch { name, commit: Some(tip) } => {
            name.strip_prefix("runner/").map(|run| VerifyTarget { run: run.to_owned(), tip })
        }
        Head::Branch { .. } => None,
        Head::Detached { commit } => {
            // Whatever is at that path: a commit in which it cannot be read belongs to no run.
            let state =
                skip_unreadable(repository.read_file(&commit, Layout::RUN_STATE))?.flatten().unwrap_or_default();
            let run = serde_json::from_slice::<RunState>(&state).ok().and_then(|state| state.run_id);
            run.map(|run| VerifyTarget { run, tip: commit })
        }
    })
}

/// Returns the tips of all branches of a run: the local one first, followed by fetched ones.
pub fn list_run_tips(repository: &Repository, run: &str) -> Result<Vec<Id>, GitError> {
    Ok(list_run_branches(repository)?.into_iter().filter(|(of, _)| of == run).map(|(_, tip)| tip).collect())
}

/// Returns the runs that have a branch here or in a fetched repository; a local branch takes precedence.
fn list_runs(repository: &Repository) -> Result<BTreeMap<String, Id>, GitError> {
    let mut runs = BTreeMap::new();
    for (run, tip) in list_run_branches(repository)? {
        runs.entry(run).or_insert(tip);
    }
    Ok(runs)
}

/// Returns all branches of runs with their tips, local ones first.
fn list_run_branches(repository: &Repository) -> Result<Vec<(String, Id)>, GitError> {
    let refs = repository.list_refs()?;
    let own = refs.iter().filter_map(|(name, id)| Some((name.strip_prefix("refs/heads/runner/")?, id)));
    let fetched = refs.iter().filter_map(|(name, id)| {
        let (_, branch) = name.strip_prefix("refs/remotes/")?.split_once('/')?;
        Some((branch.strip_prefix("runner/")?, id))
    });
    Ok(own.chain(fetched).filter_map(|(run, id)| Some((run.to_owned(), id.parse().ok()?))).collect())
}

fn not_found_error(repository: &Repository, run_prefix: Option<&str>) -> ErrorData {
    let place = repository.work_dir().display();
    let is_cloned =
        repository.list_refs().is_ok_and(|refs| refs.keys().any(|name| name.starts_with("refs/remotes/origin/")));
    let missing = |message: String| ErrorData::new(ErrorKind::NotFound, message);
    match run_prefix {
        None if !is_cloned => no_run_error(repository.work_dir()),
        None => missing(format!("{place} has no branch of a run"))
            .hint(Command::fetch("refs/heads/runner/*:refs/heads/runner/*")),
        Some(run) if !is_cloned => {
            missing(format!("{place} has no branch runner/{run}")).hint("runnerctl queue --ended")
        }
        Some(run) => {
            missing(format!("{place} has no branch runner/{run}")).hint(Command::fetch(&format!("runner/{run}")))
        }
    }
}

fn ambiguous_error(run_prefix: Option<&str>, several: &[VerifyTarget], command: &str) -> ErrorData {
    let ids: Vec<&str> = several.iter().map(|target| target.run.as_str()).collect();
    let message = match run_prefix {
        Some(prefix) => format!("`{prefix}` matches more than one run: {}", ids.join(", ")),
        None => format!("there is more than one run: {}", ids.join(", ")),
    };
    let way = match command {
        "verify" => Command::verify(ids[0]).into(),
        "bisect" => NextSteps::from(format!("runnerctl bisect --run {} -- COMMAND", ids[0])),
        other => NextSteps::from(format!("runnerctl {other} {}", ids[0])),
    };
    ErrorData::new(ErrorKind::InvalidRequest, message).hint(way).choice(run_prefix, ids)
}
