//! What must hold before a workspace is made for a run, and what the run begins with there.
//!
//! The caller's work tree may have changes. Those of the configuration, the prompts and the goal are taken along, as
//! they are in place; the others are reported. While a session is at work in that work tree, nothing is taken from it.

use std::collections::BTreeSet;

use protocol::error::{ErrorData, ErrorKind};
use protocol::request::StartParams;
use runner_config::RepoConfig;
use runner_config::goal::Goal;
use runner_core::prompt;
use runner_core::tree::ids::check_id;
use runner_git::{Id, Repository, WorktreeChange};

use super::{
    ProgramInputs, StartCommands, StartConfig, StartPreconditions, check_config, choose_id_stem, find_goal_file,
    find_head_commit, git_error, invalid_config_error, missing_goal_error, parse_goal, refuse_base, refuse_old_git,
    refuse_pipes, refuse_protected, refuse_ref_conflict, refuse_runner_attributes, refuse_template_faults,
    resolve_base,
};
use crate::repo::durable;
use crate::repo::layout::Layout;

/// A file that is taken from the work tree: its path, and its bytes; `None` if it was removed there.
pub type CarriedFile = (String, Option<Vec<u8>>);

/// What an isolated run begins with.
#[derive(Debug)]
pub struct IsolatedStart {
    /// The commit from which it begins.
    pub base: Id,
    /// The stem of its id.
    pub stem: String,
    /// Files that differ from HEAD and are taken along.
    pub carried_files: Vec<CarriedFile>,
    /// Uncommitted paths that are not taken along.
    pub not_taken: Vec<String>,
}

/// Reads the files that the run begins with: from the work tree if they are taken along, else from the base.
struct BaseReader<'a> {
    repository: &'a Repository,
    base: Id,
    carried_files: &'a [CarriedFile],
}

/// Checks everything that an isolated start needs of its source. The branches of `active_runs` still grow.
pub fn check_isolated(
    repository: &Repository,
    params: &StartParams,
    preconditions: StartPreconditions<'_>,
    active_runs: &BTreeSet<String>,
    start_config: Option<&StartConfig>,
) -> Result<(IsolatedStart, StartCommands), ErrorData> {
    refuse_old_git(repository)?;
    if !preconditions.is_session_active {
        refuse_pipes(repository)?;
        refuse_runner_attributes(repository)?;
    }
    let base = choose_isolated_base(repository, params, active_runs)?;
    refuse_base(repository, &base)?;
    let carried_files = if preconditions.is_session_active { Vec::new() } else { find_carried_files(repository)? };
    let reader = BaseReader { repository, base, carried_files: &carried_files };
    let layout = Layout::new(repository.work_dir());
    let config = match start_config {
        Some(taken) => taken.config.clone(),
        None => reader.parse_config(&layout)?,
    };
    let new_goal = params.goal.as_deref().map(|text| parse_goal(text.as_bytes(), &layout)).transpose()?;
    let goal = match new_goal {
        Some(goal) => Some(goal),
        None => reader.read_file(Layout::GOAL)?.map(|bytes| parse_goal(&bytes, &layout)).transpose()?,
    };
    if goal.as_ref().is_none_or(Goal::is_template) {
        return Err(missing_goal_error("no goal is written in .runner/GOAL.md: there is nothing to reach"));
    }
    let stem = choose_stem(repository, params, goal.as_ref())?;
    refuse_protected(&config, &stem)?;
    refuse_ref_conflict(repository, &stem)?;
    let inputs = ProgramInputs { env: &params.env.0, capabilities: preconditions.capabilities };
    let commands = check_config(repository, &config, inputs)?;
    let written_here = start_config.is_none_or(StartConfig::is_own)
        && commands.written_here
        && !preconditions.is_session_active
        && reader.matches_head(Layout::CONFIG)?;
    refuse_template_faults(&prompt::find_template_faults(|path| reader.read_file(path)))?;
    let not_taken = if preconditions.is_session_active {
        Vec::new()
    } else {
        find_not_carried(repository, params, &carried_files)?
    };
    Ok((IsolatedStart { base, stem, carried_files, not_taken }, StartCommands { written_here, ..commands }))
}

/// Returns the files to take along for a run that was admitted before, and its configuration; `taken` is the one that it
/// takes over.
pub fn read_carried_files(
    repository: &Repository,
    base: Id,
    is_session_active: bool,
    taken: Option<String>,
) -> Result<(Vec<CarriedFile>, RepoConfig), ErrorData> {
    let mut carried_files = if is_session_active { Vec::new() } else { find_carried_files(repository)? };
    let reader = BaseReader { repository, base, carried_files: &carried_files };
    if let Some(text) = taken.filter(|_| matches!(reader.read_file(Layout::CONFIG), Ok(None))) {
        carried_files.push((Layout::CONFIG.to_owned(), Some(text.into_bytes())));
    }
    let config = BaseReader { repository, base, carried_files: &carried_files }
        .parse_config(&Layout::new(repository.work_dir()))?;
    Ok((carried_files, config))
}

/// Returns the commit that was named, else the commit of HEAD, unless it is on the branch of an active run.
fn choose_isolated_base(
    repository: &Repository,
    params: &StartParams,
    active_runs: &BTreeSet<String>,
) -> Result<Id, ErrorData> {
    if let Some(revision) = &params.base {
        return resolve_base(repository, revision);
    }
    let head = repository.head().map_err(|error| git_error(&error))?;
    let run = head.branch().and_then(|branch| branch.strip_prefix("runner/"));
    if let Some(run) = run.filter(|run| active_runs.contains(*run)) {
        let message = format!("HEAD is on runner/{run}, whose run is not over: what it is to begin from is not known");
        let hint = format!("name it: runnerctl start --isolated --base runner/{run}, or another branch");
        return Err(ErrorData::new(ErrorKind::WrongState, message).hint(hint));
    }
    find_head_commit(repository)
}

/// Returns the files of the configuration, the prompts and the goal that differ from HEAD.
fn find_carried_files(repository: &Repository) -> Result<Vec<CarriedFile>, ErrorData> {
    let head = find_head_commit(repository)?;
    let templates = prompt::OVERRIDE_TEMPLATES.map(|(_, path)| path);
    let mut carried_files = Vec::new();
    for path in [Layout::GOAL, Layout::CONFIG].into_iter().chain(templates) {
        let bytes = durable::read(&repository.work_dir().join(path))
            .map_err(|error| ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(&error))?;
        // A file that is not there, because the checkout is sparse or it was removed, is HEAD's.
        if bytes.is_some() && bytes != repository.read_file(&head, path).map_err(|error| git_error(&error))? {
            carried_files.push((path.to_owned(), bytes));
        }
    }
    Ok(carried_files)
}

fn find_not_carried(
    repository: &Repository,
    params: &StartParams,
    taken: &[CarriedFile],
) -> Result<Vec<String>, ErrorData> {
    let goal_file = find_goal_file(repository, params, None)?;
    let changes = repository.list_changes().map_err(|error| git_error(&error))?;
    let paths = changes.iter().map(WorktreeChange::display_path);
    let is_taken = |path: &String| goal_file.as_ref() == Some(path) || taken.iter().any(|(taken, _)| taken == path);
    Ok(paths.filter(|path| !is_taken(path)).collect())
}

/// Returns the stem of the id: as named, as the goal says, or made from the goal.
fn choose_stem(repository: &Repository, params: &StartParams, goal: Option<&Goal>) -> Result<String, ErrorData> {
    let requested = params.id.clone().or_else(|| goal.and_then(Goal::id).map(str::to_owned));
    let Some(id) = requested else { return choose_id_stem(repository, goal) };
    check_id(&id).map_err(|error| {
        ErrorData::new(ErrorKind::InvalidRequest, error.to_string()).hint("choose another id with --id")
    })?;
    Ok(id)
}

impl BaseReader<'_> {
    fn read_file(&self, path: &str) -> Result<Option<Vec<u8>>, ErrorData> {
        match self.carried_files.iter().find(|(taken, _)| taken == path) {
            Some((_, bytes)) => Ok(bytes.clone()),
            None => self.repository.read_file(&self.base, path).map_err(|error| git_error(&error)),
        }
    }

    fn parse_config(&self, layout: &Layout) -> Result<RepoConfig, ErrorData> {
        let text = self.read_file(Layout::CONFIG)?.unwrap_or_default();
        let path = layout.config();
        let config = runner_config::decode_text(&text, &path).and_then(|text| runner_config::parse(text, &path));
        config.map_err(|error| invalid_config_error(&error))
    }

    /// Whether a file has the version of HEAD or of the work tree, so that what is known of that applies to it.
    fn matches_head(&self, path: &str) -> Result<bool, ErrorData> {
        if self.carried_files.iter().any(|(taken, _)| taken == path) {
            return Ok(true);
        }
        let read_at = |commit: &Id| self.repository.read_file(commit, path).map_err(|error| git_error(&error));
        Ok(read_at(&find_head_commit(self.repository)?)? == read_at(&self.base)?)
    }
}
