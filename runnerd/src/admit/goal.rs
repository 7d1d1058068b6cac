//! The goal of a new run: given with the request, or written in `.runner/GOAL.md`.

use std::path::Path;

use protocol::error::{ErrorData, ErrorKind};
use protocol::request::StartParams;
use runner_config::goal::Goal;
use runner_git::{ChangeKind, Id, Repository, WorktreeChange};

use super::git_error;
use crate::repo::durable;
use crate::repo::layout::Layout;
use crate::worker;

/// Returns the path, relative to the work tree, of the file that a goal was read from, if it exists and is not
/// committed. While a session is at work on top of `session_base`, git's index is not asked.
pub(super) fn find_goal_file(
    repository: &Repository,
    params: &StartParams,
    session_base: Option<&Id>,
) -> Result<Option<String>, ErrorData> {
    let file = params.goal_file.as_ref().and_then(|file| file.as_path().canonicalize().ok());
    let Some(path) = file.as_ref().and_then(|file| file.strip_prefix(repository.work_dir()).ok()?.to_str()) else {
        return Ok(None);
    };
    if let Some(commit) = session_base {
        let committed = repository.read_file(commit, path).map_err(|error| git_error(&error))?;
        return Ok(committed.is_none().then(|| path.to_owned()));
    }
    let is_new = |change: &WorktreeChange| change.kind == ChangeKind::Untracked && change.display_path() == path;
    let changes = repository.list_changes().map_err(|error| git_error(&error))?;
    Ok(changes.iter().any(is_new).then(|| path.to_owned()))
}

/// Returns the title of a new run's goal, for display only; at another base it is read when the run begins there.
pub(super) fn goal_headline(new: Option<&Goal>, params: &StartParams, layout: &Layout) -> Option<String> {
    let from_work_tree = || read_goal(layout).ok().flatten().filter(|_| params.base.is_none())?.headline();
    new.map_or_else(from_work_tree, Goal::headline)
}

/// Returns the title of the goal on a run's branch, for display only.
pub(super) fn branch_headline(repository: &Repository, run: &str) -> Option<String> {
    let tip = repository.find_branch_tip(&format!("runner/{run}")).ok()??;
    worker::load_state(repository, tip).ok()?.goal.headline()
}

/// Returns the title of the goal of a new run in a work tree; the goal was checked before.
pub fn new_goal_headline(params: &StartParams, work_tree: &Path) -> Option<String> {
    let layout = Layout::new(work_tree);
    let new = params.goal.as_deref().and_then(|text| parse_goal(text.as_bytes(), &layout).ok());
    goal_headline(new.as_ref(), params, &layout)
}

pub(super) fn parse_goal(bytes: &[u8], layout: &Layout) -> Result<Goal, ErrorData> {
    Goal::parse(bytes, &layout.goal()).map_err(|error| {
        ErrorData::new(ErrorKind::InvalidFile, error.to_string())
            .caused_by(&error)
            .hint("correct the goal and start again")
    })
}

/// Refuses a goal that has not been written yet: a session would be paid to reach nothing.
pub(super) fn refuse_unwritten(new: Option<&Goal>, layout: &Layout) -> Result<(), ErrorData> {
    let (is_unwritten, message) = match new {
        Some(goal) => (goal.is_template(), "the goal is empty: there is nothing to reach"),
        None => (
            read_goal(layout)?.is_none_or(|goal| goal.is_template()),
            "no goal is written in .runner/GOAL.md: there is nothing to reach",
        ),
    };
    if is_unwritten { Err(missing_goal_error(message)) } else { Ok(()) }
}

pub(super) fn missing_goal_error(message: &str) -> ErrorData {
    let hint = "write it there and: runnerctl start; or: runnerctl start -m 'What is to be true'";
    ErrorData::new(ErrorKind::InvalidRequest, message).hint(hint)
}

/// Reads `GOAL.md` in the work tree, if it exists.
pub(super) fn read_goal(layout: &Layout) -> Result<Option<Goal>, ErrorData> {
    let bytes = durable::read(&layout.goal())
        .map_err(|error| ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(&error))?;
    bytes.map(|bytes| parse_goal(&bytes, layout)).transpose()
}
