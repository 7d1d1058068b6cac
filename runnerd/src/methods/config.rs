//! `config.*`: reads and sets a repository's configuration for a person, and reads the daemon's own.

use std::path::Path;

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::ConfigApiServer;
use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::reply::{
    ConfigEditReply, ConfigPathReply, ConfigReply, ConfigSetReply, ConfigShowReply, ConfigTextReply, SettingOrigin,
    SettingView,
};
use protocol::request::{
    AtPath, AtSettings, ConfigEditParams, ConfigKey, ConfigSetParams, ConfigTextParams, UserDefaults,
};
use runner_config::{LIST_PRICES, Price, RepoConfig, SettingEntry, ValueOrigin};
use runner_core::files::change::ChangeRequest;
use runner_core::text::digest::sha256_hex;
use runner_git::Repository;
use runner_os::error_chain::display_chain;

use super::{Api, run_blocking};
use crate::admit::{self, git_error};
use crate::logging::FILTER_VARIABLE;
use crate::repo::durable::{self, FileAccess};
use crate::repo::layout::Layout;
use crate::store::{RepoStore, RunSettings, repo_id};
use crate::worker;

#[async_trait]
impl ConfigApiServer for Api {
    async fn get(&self, params: ConfigKey) -> RpcResult<ConfigReply> {
        let repository = self.find_repository(params.path.as_path()).await?;
        let store = self.settings_store(&repository);
        Ok(run_blocking(move || get_config(&repository, &store, &params)).await?)
    }

    async fn show(&self, params: AtSettings) -> RpcResult<ConfigShowReply> {
        let AtSettings { path, defaults } = params;
        let repository = self.find_repository(path.as_path()).await?;
        let file = Layout::new(repository.work_dir()).config();
        let daemon_file = self.paths.config.clone();
        let store = self.settings_store(&repository);
        let mut reply = run_blocking(move || {
            let (text, run, source) = match (read_known_text(&repository, &store)?, defaults) {
                (Some((text, run)), _) => (text, run, file.clone()),
                (None, Some(defaults)) => (defaults.text, None, defaults.file.0),
                (None, None) => (String::new(), None, file.clone()),
            };
            let mut settings = list_settings(&text, &source, runner_config::list_settings)?;
            for setting in settings.iter_mut().filter(|setting| setting.place.is_some()) {
                setting.place = run.as_ref().map(|run| format!("run {run}")).or(setting.place.take());
            }
            let daemon_text = durable::read(&daemon_file).map_err(|error| fault_error(&error))?.unwrap_or_default();
            let daemon_text =
                runner_config::decode_text(&daemon_text, &daemon_file).map_err(|error| invalid_config_error(&error))?;
            Ok(ConfigShowReply {
                settings: [settings, list_list_prices(&text, &source)?].concat(),
                daemon_settings: list_settings(daemon_text, &daemon_file, runner_config::list_daemon_settings)?,
                file: WirePath(file),
                daemon_file: WirePath(daemon_file),
            })
        })
        .await?;
        for setting in &mut reply.daemon_settings {
            self.apply_start_override(setting);
        }
        Ok(reply)
    }

    async fn path(&self, params: AtPath) -> RpcResult<ConfigPathReply> {
        let repository = self.find_repository(params.path.as_path()).await?;
        let file = Layout::new(repository.work_dir()).config();
        Ok(ConfigPathReply { file: WirePath(file), daemon_file: WirePath(self.paths.config.clone()) })
    }

    async fn set(&self, params: ConfigSetParams) -> RpcResult<ConfigSetReply> {
        let ConfigSetParams { at, key, value, defaults } = params;
        let at = self.resolve_named_run(at).await?;
        let repository = self.find_repository(at.path.as_path()).await?;
        let layout = Layout::new(repository.work_dir());
        let file = WirePath(layout.config());
        if self.resolve_config_run(&repository, at.run.as_deref()).await?.is_some() {
            let is_set = value.is_some();
            let change = ChangeRequest::Config { key: key.clone(), value, base: String::new(), text: String::new() };
            let change = self.submit_change(at, change, None).await?;
            let value = change.summary.strip_prefix(&format!("{key} is ")).filter(|_| is_set).map(str::to_owned);
            return Ok(ConfigSetReply { key, value, change: Some(change), file });
        }
        let capabilities = self.capabilities.clone();
        let store = self.settings_store(&repository);
        let setting = run_blocking(move || {
            let (text, _) = read_start_text(&repository, &store, defaults.as_ref())?;
            let (text, config) = worker::set_key(&text, &key, value.as_deref())?;
            admit::check_usable(&config, Some(&capabilities))?;
            write_config(&layout, &text)?;
            runner_config::get(&text, &key).map_err(|error| invalid_config_error(&error))
        })
        .await?;
        let value = setting.value.filter(|_| setting.origin != ValueOrigin::Default);
        Ok(ConfigSetReply { key: setting.key, value, change: None, file })
    }

    async fn text(&self, params: ConfigTextParams) -> RpcResult<ConfigTextReply> {
        let ConfigTextParams { at, defaults } = params;
        let params = self.resolve_named_run(at).await?;
        let repository = self.find_repository(params.path.as_path()).await?;
        let run = self.resolve_config_run(&repository, params.run.as_deref()).await?;
        let layout = Layout::new(repository.work_dir());
        let store = self.settings_store(&repository);
        let file = WirePath(layout.config());
        let (text, digest) = run_blocking(move || {
            let read = |defaults| Ok::<_, ErrorData>(read_start_text(&repository, &store, defaults)?.0);
            let (base, text) = if let Some(run) = run {
                (read_config_at_tip(&repository, &run)?, String::new())
            } else {
                (read(None)?, read(defaults.as_ref())?)
            };
            let digest = sha256_hex(base.as_bytes());
            let text = [base, text, runner_config::default_text()].into_iter().find(|text| !text.is_empty());
            Ok((text.unwrap_or_default(), digest))
        })
        .await?;
        Ok(ConfigTextReply { text, digest, file })
    }

    async fn edit_config(&self, params: ConfigEditParams) -> RpcResult<ConfigEditReply> {
        let ConfigEditParams { at, text, opened } = params;
        let at = self.resolve_named_run(at).await?;
        let repository = self.find_repository(at.path.as_path()).await?;
        let layout = Layout::new(repository.work_dir());
        let file = WirePath(layout.config());
        if let Some(run) = self.resolve_config_run(&repository, at.run.as_deref()).await? {
            let base = run_blocking(move || read_config_at_tip(&repository, &run)).await?;
            let keys = changed_keys(&worker::edited_config(&base, text.clone(), opened.as_deref())?);
            let change = ChangeRequest::Settings { keys: Vec::new(), base: String::new(), text };
            let change = self.submit_change(at, change, opened).await?;
            return Ok(ConfigEditReply { keys, change: Some(change), file });
        }
        let capabilities = self.capabilities.clone();
        let store = self.settings_store(&repository);
        let keys = run_blocking(move || {
            let (base, _) = read_start_text(&repository, &store, None)?;
            let edited = worker::edited_config(&base, text.clone(), opened.as_deref())?;
            let config = runner_config::parse(&text, &layout.config()).map_err(|error| invalid_config_error(&error))?;
            admit::check_usable(&config, Some(&capabilities))?;
            write_config(&layout, &text)?;
            Ok(changed_keys(&edited))
        })
        .await?;
        Ok(ConfigEditReply { keys, change: None, file })
    }
}

fn changed_keys(change: &ChangeRequest) -> Vec<String> {
    if let ChangeRequest::Settings { keys, .. } = change { keys.clone() } else { Vec::new() }
}

/// Reads the configuration on a run's branch.
fn read_config_at_tip(repository: &Repository, run: &str) -> Result<String, ErrorData> {
    let loaded = super::tree::load_tip(repository, Some(run))?;
    Ok(loaded.text(Layout::CONFIG).to_owned())
}

fn write_config(layout: &Layout, text: &str) -> Result<(), ErrorData> {
    durable::create_dir_below(layout.root(), Layout::STATE, FileAccess::Repository)
        .map_err(|error| fault_error(&error))?;
    durable::replace(&layout.config(), text.as_bytes(), FileAccess::Repository).map_err(|error| fault_error(&error))
}

/// Reads the configuration of the work tree: its file, else that of HEAD, else the settings of the newest run, whose id
/// is returned; `None` if there is none of them.
fn read_known_text(repository: &Repository, store: &RepoStore) -> Result<Option<(String, Option<String>)>, ErrorData> {
    let is_present = repository.work_dir().join(Layout::CONFIG).symlink_metadata().is_ok();
    if is_present || admit::has_config_at_head(repository)? {
        return Ok(Some((admit::read_config_text(repository)?, None)));
    }
    Ok(read_settings(store)?.map(|(run, text)| (text, Some(run))))
}

/// Reads the configuration with which a run starts from the work tree: the known one, else a new one with the caller's
/// defaults.
fn read_start_text(
    repository: &Repository,
    store: &RepoStore,
    defaults: Option<&UserDefaults>,
) -> Result<(String, Option<String>), ErrorData> {
    if let Some(known) = read_known_text(repository, store)? {
        return Ok(known);
    }
    let text = defaults.map(|defaults| admit::default_config_text(&runner_config::default_text(), defaults));
    Ok((text.transpose()?.unwrap_or_default(), None))
}

/// Parses the configuration with which a run starts from the work tree.
pub(super) fn read_start_config(
    repository: &Repository,
    store: &RepoStore,
    defaults: Option<&UserDefaults>,
) -> Result<RepoConfig, ErrorData> {
    let (text, _) = read_start_text(repository, store, defaults)?;
    let file = Layout::new(repository.work_dir()).config();
    runner_config::parse(&text, &file).map_err(|error| invalid_config_error(&error))
}

/// Reads the id of the newest run that this daemon began in a repository, and its configuration.
pub(super) fn read_settings(store: &RepoStore) -> Result<Option<(String, String)>, ErrorData> {
    let settings = store.settings_file().read().map_err(|error| {
        ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(&error).hint("runnerctl start --default-config")
    })?;
    Ok(settings.map(|RunSettings { run, text }| (run, text)))
}

impl Api {
    pub(super) fn settings_store(&self, repository: &Repository) -> RepoStore {
        RepoStore::new(&self.state_dir, &repo_id(repository.common_dir()))
    }

    /// Returns the run whose branch has the configuration in force: the one that is named, else the one of this work
    /// tree that has begun. One that has ended counts only while its branch is checked out: on another branch a person
    /// sets what the next run starts with.
    async fn resolve_config_run(
        &self,
        repository: &Repository,
        requested: Option<&str>,
    ) -> Result<Option<String>, ErrorData> {
        if let Some(named) = requested {
            return Ok(Some(named.to_owned()));
        }
        let Some(worker) = self.registry.find(repository.common_dir()).await else { return Ok(None) };
        let status = worker.status();
        let Some(run) = status.run.as_ref().map(|run| &run.summary) else { return Ok(None) };
        if run.path.as_path() != repository.work_dir() {
            return Ok(None);
        }
        let repository = repository.clone();
        let branch = run.branch.clone();
        let id = run.id.clone();
        let has_ended = run.state.is_terminal();
        let is_in_force = run_blocking(move || {
            let has_begun = repository.find_branch_tip(&branch).map_err(|error| git_error(&error))?.is_some();
            let head = repository.head().map_err(|error| git_error(&error))?;
            Ok(has_begun && (!has_ended || head.branch() == Some(&branch)))
        });
        Ok(is_in_force.await?.then_some(id))
    }

    /// Shows what the daemon was started with, if that overrides its file.
    fn apply_start_override(&self, setting: &mut SettingView) {
        let overriding = match setting.key.as_str() {
            "log_level" => {
                std::env::var(FILTER_VARIABLE).ok().filter(|value| !value.is_empty()).zip(Some(FILTER_VARIABLE))
            }
            "socket" if self.paths.socket_named && !self.paths.has_default_socket() => {
                Some((self.paths.socket.display().to_string(), "RUNNERD_SOCKET or --socket"))
            }
            _ => None,
        };
        if let Some((value, place)) = overriding {
            setting.value = Some(format!("{value:?}"));
            setting.origin = SettingOrigin::Start;
            setting.place = Some(place.to_owned());
        }
    }
}

/// Returns every key of a file with this text.
fn list_settings(
    text: &str,
    file: &Path,
    show: impl Fn(&str, &Path) -> Result<Vec<SettingEntry>, runner_config::ConfigError>,
) -> Result<Vec<SettingView>, ErrorData> {
    let view = |setting: SettingEntry| {
        let place = match setting.origin {
            ValueOrigin::Default => None,
            ValueOrigin::File { line } => Some(format!("{}:{line}", file.display())),
        };
        let origin = if place.is_some() { SettingOrigin::File } else { SettingOrigin::Default };
        let choices = setting.choices.iter().map(|word| (*word).to_owned()).collect();
        SettingView { key: setting.key, value: setting.value, origin, place, choices }
    };
    let settings = show(text, file).map_err(|error| invalid_config_error(&error))?;
    Ok(settings.into_iter().map(view).collect())
}

/// Returns the list prices that apply to the models of a file, which does not state them itself.
fn list_list_prices(text: &str, file: &Path) -> Result<Vec<SettingView>, ErrorData> {
    let config = runner_config::parse(text, file).map_err(|error| invalid_config_error(&error))?;
    let view = |(model, price): (&str, &Price)| SettingView {
        key: format!("prices.{model:?}"),
        value: Some(price.to_inline_table()),
        origin: SettingOrigin::ListPrice,
        place: Some(format!("{}, {}", LIST_PRICES.name(), LIST_PRICES.source)),
        choices: Vec::new(),
    };
    Ok(config.listed_prices().into_iter().map(view).collect())
}

fn fault_error(error: &durable::DurableError) -> ErrorData {
    ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error)
}

fn invalid_config_error(error: &runner_config::ConfigError) -> ErrorData {
    ErrorData::new(ErrorKind::InvalidFile, display_chain(error)).hint("fix the file, then: runnerctl validate")
}

fn get_config(repository: &Repository, store: &RepoStore, params: &ConfigKey) -> Result<ConfigReply, ErrorData> {
    let config = read_start_config(repository, store, params.defaults.as_ref())?;
    let all = serde_json::to_value(&config)
        .map_err(|error| ErrorData::new(ErrorKind::Bug, format!("the configuration does not serialize: {error}")))?;
    let Some(key) = params.key.as_deref() else {
        return Ok(ConfigReply { value: all, variables: runner_agents::caller_variables(&config) });
    };
    let value = runner_config::key_names(key).iter().try_fold(&all, |value, part| value.get(part)).cloned();
    value.map(|value| ConfigReply { value, variables: Vec::new() }).ok_or_else(|| unknown_key_error(repository, key))
}

fn unknown_key_error(repository: &Repository, key: &str) -> ErrorData {
    let text = admit::read_config_text(repository).unwrap_or_default();
    let error = runner_config::get(&text, key).err();
    let message = error.map_or_else(|| format!("unknown key `{key}`"), |error| display_chain(&error));
    ErrorData::new(ErrorKind::InvalidRequest, message).hint("runnerctl config get")
}
