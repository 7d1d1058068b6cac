//! The configuration of a new run whose base has none: that of the newest run that this daemon began in the repository.
//!
//! Branches say nothing of it, since anyone can make one; the note of that run does.

use std::path::Path;

use protocol::error::{ErrorData, ErrorKind};
use protocol::reply::{StartSettings, TakenSetting};
use protocol::request::{StartParams, UserDefaults};
use runner_config::{ConfigError, RepoConfig};
use runner_git::{Id, Repository};
use runner_os::error_chain::display_chain;

use super::{find_head_commit, git_error, invalid_config_error, resolve_base};
use crate::repo::layout::Layout;
use crate::worker::{self, load_config};

/// A configuration that is in neither base nor work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartConfig {
    /// Its text.
    pub text: String,
    /// Its source, and the keys that it sets.
    pub settings: StartSettings,
    /// Its value.
    pub config: RepoConfig,
}

/// Returns the configuration that a new run takes over; `None` if its base or the work tree has one, or nothing is known.
///
/// `read_settings` returns the id of the newest run that this daemon began here, and its configuration.
pub fn choose_start_config(
    repository: &Repository,
    params: &StartParams,
    is_session_active: bool,
    read_settings: impl FnOnce() -> Result<Option<(String, String)>, ErrorData>,
) -> Result<Option<StartConfig>, ErrorData> {
    if has_config(repository, params.base.as_deref(), is_session_active)? {
        return Ok(None);
    }
    let taken = if params.default_config { None } else { read_settings()? };
    let (run, text) = match (taken, &params.defaults) {
        (Some((run, text)), _) => (Some(run), text),
        (None, Some(defaults)) => (None, default_config_text(&runner_config::default_text(), defaults)?),
        (None, None) => return Ok(None),
    };
    let file = Path::new(Layout::CONFIG);
    let parsed = runner_config::parse(&text, file).and_then(|config| Ok((config, list_taken(&text, file)?)));
    let (config, keys) = parsed.map_err(|error| refused_error(run.as_deref(), &error))?;
    Ok(Some(StartConfig { text, settings: StartSettings { run, keys }, config }))
}

/// Returns the text of a new configuration with a person's own defaults.
pub fn default_config_text(text: &str, defaults: &UserDefaults) -> Result<String, ErrorData> {
    runner_config::apply_defaults(text, &defaults.text, defaults.file.as_path()).map_err(|error| {
        let message = format!("[defaults]: {}", display_chain(&error));
        ErrorData::new(ErrorKind::InvalidFile, message).hint("correct that file")
    })
}

fn list_taken(text: &str, file: &Path) -> Result<Vec<TakenSetting>, ConfigError> {
    let changes = runner_config::list_changes(text, file)?;
    Ok(changes.into_iter().map(|(key, value)| TakenSetting { key, value }).collect())
}

/// Whether the commit at HEAD has a configuration.
pub fn has_config_at_head(repository: &Repository) -> Result<bool, ErrorData> {
    let Some(head) = repository.head().map_err(|error| git_error(&error))?.commit() else { return Ok(false) };
    Ok(repository.find_entry(&head, Layout::CONFIG).map_err(|error| git_error(&error))?.is_some())
}

/// Whether a run at this base, by default HEAD, finds a configuration when it begins.
fn has_config(repository: &Repository, base: Option<&str>, is_session_active: bool) -> Result<bool, ErrorData> {
    let head = find_head_commit(repository)?;
    let base = base.map_or(Ok(head), |revision| resolve_base(repository, revision))?;
    let is_tracked = |commit| {
        let found = repository.read_file(&commit, Layout::CONFIG).map_err(|error| git_error(&error))?;
        Ok::<_, ErrorData>(found.is_some())
    };
    // A file that HEAD has goes with it when the run's branch is checked out; another one stays.
    let stays = || Ok::<_, ErrorData>(repository.work_dir().join(Layout::CONFIG).is_file() && !is_tracked(head)?);
    Ok(is_tracked(base)? || (!is_session_active && stays()?))
}

/// Reads the configuration of the work tree, or of HEAD if it is not there; defaults if both have none.
pub fn read_config(repository: &Repository) -> Result<RepoConfig, ErrorData> {
    let path = repository.work_dir().join(Layout::CONFIG);
    runner_config::parse(&read_config_text(repository)?, &path).map_err(|error| invalid_config_error(&error))
}

/// Reads the text of the configuration of the work tree, or of HEAD if it is not there; empty if both have none.
pub fn read_config_text(repository: &Repository) -> Result<String, ErrorData> {
    let path = repository.work_dir().join(Layout::CONFIG);
    let bytes = worker::read_file_or_committed(repository, Layout::CONFIG)
        .map_err(|error| ErrorData::new(ErrorKind::Fault, display_chain(&error)))?
        .unwrap_or_default();
    runner_config::decode_text(&bytes, &path).map(str::to_owned).map_err(|error| invalid_config_error(&error))
}

/// Reads a configuration that is only in the work tree, which is lost there if another run begins first.
pub(super) fn read_uncommitted_config(
    repository: &Repository,
    base: Option<&str>,
    head: &Id,
) -> Result<Option<String>, ErrorData> {
    let base = base.map_or(Ok(*head), |revision| resolve_base(repository, revision))?;
    for commit in [&base, head] {
        if repository.find_entry(commit, Layout::CONFIG).map_err(|error| git_error(&error))?.is_some() {
            return Ok(None);
        }
    }
    let is_present = repository.work_dir().join(Layout::CONFIG).is_file();
    is_present.then(|| read_config_text(repository)).transpose()
}

/// Reads the configuration with which a new run begins: that of its base, else an uncommitted one in the work tree.
pub(super) fn read_base_config(
    repository: &Repository,
    base: Option<&str>,
    head: &Id,
) -> Result<RepoConfig, ErrorData> {
    let Some(base) = base else { return read_config(repository) };
    let base = resolve_base(repository, base)?;
    if has_same_config(repository, &base, head)? {
        return read_config(repository);
    }
    load_config(repository, base).map_err(|error| invalid_config_error(&error))
}

/// Whether two commits have the same configuration, or none.
pub(super) fn has_same_config(repository: &Repository, one: &Id, other: &Id) -> Result<bool, ErrorData> {
    let entry = |commit: &Id| repository.find_entry(commit, Layout::CONFIG).map_err(|error| git_error(&error));
    Ok(entry(one)? == entry(other)?)
}

fn refused_error(run: Option<&str>, error: &ConfigError) -> ErrorData {
    let source = run.map_or_else(|| "your defaults".to_owned(), |run| format!("the settings of run {run}"));
    let message = format!("{source} cannot be taken: {}", display_chain(error));
    ErrorData::new(ErrorKind::InvalidFile, message).hint("runnerctl start --default-config")
}

impl StartConfig {
    /// Whether it is the caller's own, and no run's.
    pub fn is_own(&self) -> bool {
        self.settings.run.is_none()
    }
}
