//! What must hold before a run is queued: checked when the request arrives, so that the answer is a refusal with the
//! next command and not a run that is held during the night.

mod base;
mod fork;
mod goal;
mod identity;
mod isolated;
mod programs;
mod start_config;
mod user_config;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use protocol::command::{Command, NextSteps};
use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::request::StartParams;
use runner_agents::AgentCandidates;
use runner_config::RepoConfig;
use runner_config::goal::Goal;
use runner_core::git_version;
use runner_core::prompt;
use runner_core::run::blocker::Transience;
use runner_core::run::commit_advice;
use runner_core::run::{StartRequest, StartSpec};
use runner_core::tree::ids::id_from_title;
use runner_git::{GitError, RUNNER_ATTRIBUTES_LINE, Repository, RunnerAttribute, WorktreeChange, refuse_user_pipes};
use runner_os::error_chain::display_chain;
use runner_os::retryable::Retryable as _;
use runner_process::{HostCapabilities, Launcher};

use crate::containment_check;
use crate::repo::durable;
use crate::repo::layout::Layout;
use crate::worker::{self, IdChoice, PinnedRepo, StartOrder};

use self::base::{choose_base, find_head_commit, refuse_base, resolve_base};
pub use self::fork::check_fork;
pub use self::goal::new_goal_headline;
use self::goal::{
    branch_headline, find_goal_file, goal_headline, missing_goal_error, parse_goal, read_goal, refuse_unwritten,
};
use self::identity::{StartTarget, choose_run, refuse_other_base, refuse_other_case, refuse_unknown_branch};
pub use self::isolated::{CarriedFile, IsolatedStart, check_isolated, read_carried_files};
pub use self::programs::find as find_programs;
pub use self::start_config::{
    StartConfig, choose_start_config, default_config_text, has_config_at_head, read_config, read_config_text,
};
use self::start_config::{has_same_config, read_base_config, read_uncommitted_config};
pub use self::user_config::{check_user_config, check_user_push};
pub use crate::worker::no_run_error;

/// Maximum number of paths shown of a dirty work tree.
const MAX_SHOWN_PATHS: usize = 10;

/// Finds the repository that contains a path: a known one even if its git folder is gone, else what git finds there.
///
/// If the note of a known one cannot be trusted, that is left to the worker to report: a repository can be found
/// without it.
///
/// `known` returns the known work trees among these folders.
pub fn find_repository(
    path: &Path,
    known: impl FnOnce(&BTreeSet<&Path>) -> Vec<PinnedRepo>,
) -> Result<Repository, ErrorData> {
    let canonical = path.canonicalize().ok();
    // What does not exist is below no work tree; a work tree that is gone is still named by its own path.
    let folders = canonical.as_deref().map_or_else(|| BTreeSet::from([path]), |path| path.ancestors().collect());
    let canonical = canonical.as_deref().unwrap_or(path);
    let candidates = known(&folders).into_iter().filter(|known| !is_nested(canonical, known.work_tree()));
    let pinned = candidates
        .max_by_key(|known| known.work_tree().as_os_str().len())
        .and_then(|known| known.try_open().ok().flatten());
    match pinned {
        Some(repository) => Ok(repository),
        None => open_current(path),
    }
}

/// Whether a separate repository is between a path and the work tree that contains it.
fn is_nested(path: &Path, work_tree: &Path) -> bool {
    let between = path.ancestors().take_while(|folder| *folder != work_tree);
    between.into_iter().any(|folder| folder.join(".git").symlink_metadata().is_ok())
}

/// Finds the repository that contains a path, with the user's current configuration.
pub fn open_current(path: &Path) -> Result<Repository, ErrorData> {
    Repository::discover(path).map_err(|error| {
        if matches!(error, GitError::Pipe { .. } | GitError::FileTooLarge { .. }) {
            return git_error(&error);
        }
        let message = format!("no usable git working tree at {}", path.display());
        let data = ErrorData::new(ErrorKind::NotARepository, message);
        let causes = vec![display_chain(&error)];
        let hint = match &error {
            _ if !path.exists() => NextSteps::from("name an existing path"),
            GitError::BareRepository { .. } => NextSteps::from("git worktree add FOLDER, and name that"),
            GitError::ForeignOwner { path } => match path.to_str() {
                Some(path) => Command::trust(path).into(),
                None => NextSteps::from("name its directory in git config --global safe.directory"),
            },
            _ => NextSteps::from("git init, or name a path inside a git working tree"),
        };
        ErrorData { causes, ..data.hint(hint) }
    })
}

/// Converts an error of git to one for the client.
pub fn git_error(error: &GitError) -> ErrorData {
    if error.transience() == Transience::Lost {
        let lost = ErrorData::new(ErrorKind::Held, error.to_string()).caused_by(error);
        let remedy = error.remedy().unwrap_or_default();
        return lost.hint(format!("{remedy}, then: runnerctl resume; or: runnerctl cancel"));
    }
    if let (GitError::Pipe { .. } | GitError::FileTooLarge { .. }, Some(remedy)) = (error, error.remedy()) {
        return ErrorData::new(ErrorKind::DirtyTree, error.to_string()).hint(remedy);
    }
    if let (GitError::RefConflict { .. } | GitError::ObjectsAtRemote { .. }, Some(remedy)) = (error, error.remedy()) {
        return ErrorData::new(ErrorKind::WrongState, error.to_string()).hint(remedy);
    }
    if matches!(error, GitError::PinnedConfigLost { .. }) {
        let held = ErrorData::new(ErrorKind::Held, display_chain(error));
        let remedy = error.remedy().unwrap_or_default();
        return held.hint(format!("{remedy}, then: runnerctl resume; or: runnerctl cancel"));
    }
    ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error)
}

/// What a configuration would run, and whether this user must confirm it first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartCommands {
    /// Digest of the commands.
    pub digest: String,
    /// The commands, formatted for display.
    pub listing: String,
    /// Whether the configuration was written here, as opposed to brought by a clone or a pull.
    pub written_here: bool,
    /// The configuration.
    pub config: RepoConfig,
}

/// Circumstances of a start.
#[derive(Debug, Clone, Copy)]
pub struct StartPreconditions<'a> {
    /// Whether a run is at work in the work tree.
    pub is_session_active: bool,
    /// How this machine contains programs; `None` if the run begins here and continues elsewhere.
    pub capabilities: Option<&'a HostCapabilities>,
    /// The files in the work tree that the goals of earlier runs were read from.
    pub goal_files: &'a [String],
}

/// What programs would be run with.
#[derive(Debug, Clone, Copy)]
pub struct ProgramInputs<'a> {
    /// The caller's environment.
    pub env: &'a BTreeMap<String, String>,
    /// How this machine contains programs; `None` if they are to run on another one.
    pub capabilities: Option<&'a HostCapabilities>,
}

/// Checks everything that a start needs of the repository.
///
/// While a run is at work in the work tree, its state is meaningless; it is checked when the new run has its turn.
pub fn check_start(
    repository: &Repository,
    params: &StartParams,
    preconditions: StartPreconditions<'_>,
    start_config: Option<&StartConfig>,
) -> Result<(StartOrder, StartCommands), ErrorData> {
    refuse_old_git(repository)?;
    let head = find_head_commit(repository)?;
    refuse_base(repository, &head)?;
    let new_file = find_goal_file(repository, params, preconditions.is_session_active.then_some(&head))?;
    let goal_files: Vec<String> = preconditions.goal_files.iter().chain(&new_file).cloned().collect();
    if !preconditions.is_session_active {
        refuse_pipes(repository)?;
        refuse_runner_attributes(repository)?;
        refuse_operation(repository)?;
        refuse_dirty(repository, &goal_files)?;
    }
    let layout = Layout::new(repository.work_dir());
    let new_goal = params.goal.as_deref().map(|text| parse_goal(text.as_bytes(), &layout)).transpose()?;
    let StartTarget { id, has_branch, refusal } = choose_run(repository, &layout, params, new_goal.as_ref())?;
    if let IdChoice::Given(id) = &id
        && has_branch
    {
        refuse_other_base(id, params)?;
    }
    refuse_unknown_branch(repository, params.onto.as_deref())?;
    let start_config = start_config.filter(|_| !has_branch);
    let config = match (&id, start_config) {
        (_, Some(taken)) => taken.config.clone(),
        (IdChoice::Given(id), None) if has_branch => read_branch_config(repository, id)?,
        (_, None) => read_base_config(repository, params.base.as_deref(), &head)?,
    };
    if let IdChoice::Given(id) = &id {
        refuse_protected(&config, id)?;
    }
    let commands = check_config(
        repository,
        &config,
        ProgramInputs { env: &params.env.0, capabilities: preconditions.capabilities },
    )?;
    if !has_branch {
        // A file that an earlier run held back may not be held back by this one: then it is an uncommitted change.
        let rule = worker::hold_back_from(&config, head, goal_files.clone());
        if !preconditions.is_session_active && repository.reveal_held_back(&rule).map_err(|error| git_error(&error))? {
            refuse_dirty(repository, &goal_files)?;
        }
        refuse_ref_conflict_for(repository, &id)?;
        refuse_templates(&layout)?;
        // The goal at another base is read when the run begins there.
        if new_goal.is_some() || params.base.is_none() {
            refuse_unwritten(new_goal.as_ref(), &layout)?;
        }
    }
    let start_spec = StartSpec {
        base: choose_base(repository, params.base.as_deref())?,
        goal: params.goal.clone(),
        keep_tree: params.keep_tree,
        fork: false,
        config: match start_config {
            Some(taken) => Some(taken.text.clone()),
            None if has_branch || preconditions.is_session_active => None,
            None => read_uncommitted_config(repository, params.base.as_deref(), &head)?,
        },
        id_stem: id.stem(),
    };
    let path = WirePath::from(repository.work_dir());
    let goal = match &id {
        IdChoice::Given(id) if has_branch && new_goal.is_none() => branch_headline(repository, id),
        IdChoice::Given(_) | IdChoice::Derived { .. } => goal_headline(new_goal.as_ref(), params, &layout),
    };
    let goal_file = new_file.map(|file| WirePath(repository.work_dir().join(file)));
    let start = StartRequest { path, goal, goal_file, start_spec, queue_only: params.queue_only, is_begun: has_branch };
    let is_same = match params.base.as_deref().filter(|_| !has_branch && start_config.is_none()) {
        Some(base) => has_same_config(repository, &resolve_base(repository, base)?, &head)?,
        None => true,
    };
    let written_here = commands.written_here && is_same && start_config.is_none_or(StartConfig::is_own);
    Ok((StartOrder { id, start, refusal }, StartCommands { written_here, ..commands }))
}

/// Checks what a step or a resume needs: nothing blocks git, and the commands of the run's branch can be found and are
/// confirmed.
pub fn check_resume(
    repository: &Repository,
    run: &str,
    env: &BTreeMap<String, String>,
    preconditions: StartPreconditions<'_>,
) -> Result<StartCommands, ErrorData> {
    if !preconditions.is_session_active {
        refuse_pipes(repository)?;
    }
    let config = match repository.find_branch_tip(&format!("runner/{run}")).map_err(|error| git_error(&error))? {
        Some(_) => read_branch_config(repository, run)?,
        None => read_config(repository)?,
    };
    check_config(repository, &config, ProgramInputs { env, capabilities: preconditions.capabilities })
}

/// Refuses to start with a git version that lacks what the runner relies on.
fn refuse_old_git(repository: &Repository) -> Result<(), ErrorData> {
    let version = repository.git_version().map_err(|error| git_error(&error))?;
    git_version::refuse_too_old(&version)
        .map_err(|error| ErrorData::new(ErrorKind::MissingCommand, error.to_string()).hint("runnerctl doctor"))
}

/// Refuses pipes in the place of files that git reads: git would block forever, and so would a run.
pub fn refuse_pipes(repository: &Repository) -> Result<(), ErrorData> {
    refuse_user_pipes().map_err(|error| git_error(&error))?;
    let Some(pipe) = repository.find_pipes().into_iter().next() else { return Ok(()) };
    Err(git_error(&GitError::Pipe { path: pipe }))
}

/// Describes the rule by which git would change the runner's files, if there is one, and says what helps.
pub fn find_runner_attribute(repository: &Repository) -> Result<Option<[String; 2]>, GitError> {
    let Some(rule) = repository.find_runner_attribute()? else { return Ok(None) };
    let RunnerAttribute { file, line, attribute, path } = rule;
    let file = file.display();
    let message = format!("{file}:{line} gives {path} the attribute {attribute}, and git has to leave its bytes alone");
    Ok(Some([message, format!("add this as the last line of {file}: {RUNNER_ATTRIBUTES_LINE}")]))
}

fn refuse_runner_attributes(repository: &Repository) -> Result<(), ErrorData> {
    let Some([message, hint]) = find_runner_attribute(repository).map_err(|error| git_error(&error))? else {
        return Ok(());
    };
    Err(ErrorData::new(ErrorKind::InvalidFile, message).hint(hint))
}

fn refuse_dirty(repository: &Repository, goal_files: &[String]) -> Result<(), ErrorData> {
    let changes = repository.list_changes().map_err(|error| git_error(&error))?;
    let foreign = changes.iter().map(WorktreeChange::display_path).filter(|path| !path.starts_with(".runner/"));
    let foreign: Vec<String> = foreign.filter(|path| !goal_files.contains(path)).collect();
    refuse_paths(repository, &foreign)
}

/// Refuses a work tree in which these paths are not committed; accepts an empty list.
fn refuse_paths(repository: &Repository, foreign: &[String]) -> Result<(), ErrorData> {
    if foreign.is_empty() {
        return Ok(());
    }
    let paths = if foreign.len() == 1 { "path that is" } else { "paths that are" };
    let mut message = format!("{} has {} {paths} not committed:", repository.work_dir().display(), foreign.len());
    for path in foreign.iter().take(MAX_SHOWN_PATHS) {
        let _ = write!(message, "\n  {path}");
    }
    if foreign.len() > MAX_SHOWN_PATHS {
        let _ = write!(message, "\n  and {} more", foreign.len() - MAX_SHOWN_PATHS);
    }
    Err(ErrorData::new(ErrorKind::DirtyTree, message).hint(commit_advice::commit_ways(foreign)))
}

fn refuse_operation(repository: &Repository) -> Result<(), ErrorData> {
    let Some(operation) = repository.operation() else { return Ok(()) };
    let message = format!("a {operation} is in progress in {}", repository.work_dir().display());
    Err(ErrorData::new(ErrorKind::DirtyTree, message).hint(format!("finish or abort the {operation}")))
}

fn refuse_protected(config: &RepoConfig, id: &str) -> Result<(), ErrorData> {
    let branch = format!("runner/{id}");
    if !config.git.protects(&branch) {
        return Ok(());
    }
    let message = format!("branch {branch} is protected by git.protected_branches");
    Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint("choose another id with --id"))
}

/// Refuses an id if an existing branch leaves no room for that of the new run.
fn refuse_ref_conflict_for(repository: &Repository, id: &IdChoice) -> Result<(), ErrorData> {
    match id {
        IdChoice::Given(id) => refuse_ref_conflict(repository, id),
        // Then the run gets another id.
        IdChoice::Derived { stem, taken } if taken.contains(stem) => Ok(()),
        IdChoice::Derived { stem, .. } => refuse_ref_conflict(repository, stem),
    }
}

fn refuse_ref_conflict(repository: &Repository, id: &str) -> Result<(), ErrorData> {
    repository.check_ref_conflict(&format!("refs/heads/runner/{id}")).map_err(|error| git_error(&error))
}

fn used_run_ids(repository: &Repository) -> Result<BTreeSet<String>, ErrorData> {
    worker::used_run_ids(repository).map_err(|error| git_error(&error))
}

/// Returns the stem of a new run's id: the first words of its goal, else what the commit that is checked out is called.
fn choose_id_stem(repository: &Repository, goal: Option<&Goal>) -> Result<String, ErrorData> {
    let id = goal.and_then(Goal::headline).and_then(|title| id_from_title(&title));
    id.map_or_else(|| Ok(format!("run-{}", find_head_commit(repository)?.short(8))), Ok)
}

fn read_branch_config(repository: &Repository, run: &str) -> Result<RepoConfig, ErrorData> {
    let branch = format!("runner/{run}");
    let local = repository.find_branch_tip(&branch).map_err(|error| git_error(&error))?;
    let tip = match local {
        Some(tip) => Some(tip),
        None => repository.find_remote_branch("origin", &branch).map_err(|error| git_error(&error))?,
    };
    match tip {
        Some(tip) => worker::load_config(repository, tip).map_err(|error| invalid_config_error(&error)),
        None => read_config(repository),
    }
}

fn invalid_config_error(error: &dyn std::error::Error) -> ErrorData {
    ErrorData::new(ErrorKind::InvalidFile, display_chain(error)).hint("correct .runner/state/config.toml")
}

/// Reads the configuration, and checks that this version on this machine supports it.
pub fn read_usable_config(
    repository: &Repository,
    capabilities: Option<&HostCapabilities>,
) -> Result<RepoConfig, ErrorData> {
    let config = read_config(repository)?;
    check_usable(&config, capabilities).map(|()| config)
}

/// Refuses templates of the work tree that would be filled wrongly.
fn refuse_templates(layout: &Layout) -> Result<(), ErrorData> {
    refuse_template_faults(&prompt::find_template_faults(|path| durable::read(&layout.path(path))))
}

fn refuse_template_faults(faults: &[String]) -> Result<(), ErrorData> {
    if faults.is_empty() {
        return Ok(());
    }
    Err(ErrorData::new(ErrorKind::InvalidFile, faults.join("\n")).hint("fix it, then: runnerctl validate"))
}

/// Checks that this version on this machine supports a configuration.
pub fn check_usable(config: &RepoConfig, capabilities: Option<&HostCapabilities>) -> Result<(), ErrorData> {
    let unusable =
        |message: String, hint: &'static str| Err(ErrorData::new(ErrorKind::InvalidFile, message).hint(hint));
    if let Err(error) = config.check_cost_limit() {
        return unusable(error.to_string(), "set a price for the model under [prices], or remove max_cost_usd");
    }
    if let Err(error) = config.check_named_models() {
        return unusable(error.to_string(), "or state a price under [prices.codex], or remove max_cost_usd");
    }
    if let Some(unsupported) = capabilities.and_then(|offer| containment_check::check_containment(config, offer)) {
        return Err(ErrorData::new(ErrorKind::LooseContainment, unsupported.message).hint(unsupported.hint));
    }
    Ok(())
}

/// Checks that the programs of the configuration can be run, and returns its commands.
fn check_config(
    repository: &Repository,
    config: &RepoConfig,
    inputs: ProgramInputs<'_>,
) -> Result<StartCommands, ErrorData> {
    check_usable(config, inputs.capabilities)?;
    if inputs.capabilities.is_some() {
        find_programs(repository, config, inputs.env)?;
    }
    Ok(StartCommands {
        digest: config.commands_digest(),
        listing: format_commands(config),
        written_here: repository.was_written_here(Layout::CONFIG).map_err(|error| git_error(&error))?,
        config: config.clone(),
    })
}

fn format_commands(config: &RepoConfig) -> String {
    let mut text = String::new();
    for (label, argv) in config.commands() {
        let words: Vec<String> = argv.iter().map(|word| format!("{word:?}")).collect();
        let _ = write!(text, "\n  {label}: {}", words.join(" "));
    }
    let executors = config.executor.by_section().map(|(_, executor)| executor);
    let inherited: BTreeSet<&String> = executors.iter().flat_map(|executor| executor.inherit.items()).collect();
    for item in inherited {
        let _ = write!(text, "\n  of your own set-up of the agent: {item:?}");
    }
    text
}

/// Checks that the agents can work: logins, folders, versions. This starts their programs, so the commands are already
/// confirmed. Without an environment from the caller, nothing is checked.
pub async fn check_agents(candidates: AgentCandidates<'_>, launcher: &Launcher) -> Result<(), ErrorData> {
    if candidates.env.is_empty() {
        return Ok(());
    }
    let refused =
        |error: runner_agents::AgentUnavailable| ErrorData::new(ErrorKind::MissingCommand, error.what).hint(error.fix);
    runner_agents::check_agents(candidates, launcher).await.map_err(refused)
}

/// Returns the refusal of a configuration that was not confirmed.
pub fn unconfirmed_error(commands: &StartCommands) -> ErrorData {
    let message = format!("this repository's configuration was not confirmed; it would run:{}", commands.listing);
    ErrorData::new(ErrorKind::Unconfirmed, message).hint("look at the commands, and start again with --yes")
}
