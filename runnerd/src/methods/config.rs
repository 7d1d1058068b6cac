//! `config.*`: a repository's configuration, read and set for a person, and the daemon's own, read.

use std::path::Path;

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::ConfigApiServer;
use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::reply::{ConfigPathReply, ConfigReply, ConfigSetReply, ConfigShowReply};
use protocol::request::{AtPath, ConfigKey, ConfigSetParams};
use protocol::view::{SettingOrigin, SettingView};
use protocol::words::RunStatus;
use runner_core::change::Change;

use super::{Api, blocking};
use crate::admit::{self, git_error};
use crate::agent;
use crate::causes::in_one_line;
use crate::config::{self, Origin, Setting};
use crate::git::Repository;
use crate::logging::FILTER_VARIABLE;
use crate::repo::durable::{self, Access};
use crate::repo::layout::Layout;
use crate::worker;

#[async_trait]
impl ConfigApiServer for Api {
    async fn get(&self, params: ConfigKey) -> RpcResult<ConfigReply> {
        let repository = self.repository(params.path.as_path()).await?;
        Ok(blocking(move || get_config(&repository, params.key.as_deref())).await?)
    }

    async fn show(&self, params: AtPath) -> RpcResult<ConfigShowReply> {
        let repository = self.repository(params.path.as_path()).await?;
        let file = Layout::new(repository.work_dir()).config();
        let daemon_file = self.paths.config.clone();
        let mut reply = blocking(move || {
            Ok(ConfigShowReply {
                settings: settings(&file, config::show)?,
                daemon_settings: settings(&daemon_file, config::show_daemon)?,
                file: WirePath(file),
                daemon_file: WirePath(daemon_file),
            })
        })
        .await?;
        for setting in &mut reply.daemon_settings {
            self.outdo(setting);
        }
        Ok(reply)
    }

    async fn path(&self, params: AtPath) -> RpcResult<ConfigPathReply> {
        let repository = self.repository(params.path.as_path()).await?;
        let file = Layout::new(repository.work_dir()).config();
        Ok(ConfigPathReply { file: WirePath(file), daemon_file: WirePath(self.paths.config.clone()) })
    }

    async fn set(&self, params: ConfigSetParams) -> RpcResult<ConfigSetReply> {
        let ConfigSetParams { at, key, value } = params;
        let repository = self.repository(at.path.as_path()).await?;
        let layout = Layout::new(repository.work_dir());
        let file = WirePath(layout.config());
        if at.run.is_some() || self.goes_on(&repository).await? {
            let change = Change::Config { key: key.clone(), value, base: String::new(), text: String::new() };
            let change = self.change(at, change, None).await?;
            let value = change.summary.strip_prefix(&format!("{key} is ")).map(str::to_owned);
            return Ok(ConfigSetReply { key, value, change: Some(change), file });
        }
        let offer = self.offer.clone();
        let setting = blocking(move || {
            let text = admit::config_text(&layout)?;
            let (text, config) = worker::set_key(&text, &key, value.as_deref())?;
            admit::usable(&config, &offer)?;
            durable::create_dir_below(layout.root(), Layout::STATE, Access::Repository)
                .map_err(|error| fault(&error))?;
            durable::replace(&layout.config(), text.as_bytes(), Access::Repository).map_err(|error| fault(&error))?;
            config::get(&text, &key).map_err(|error| invalid(&error))
        })
        .await?;
        let value = setting.value.filter(|_| setting.origin != Origin::Default);
        Ok(ConfigSetReply { key: setting.key, value, change: None, file })
    }
}

impl Api {
    /// Whether a run of this work tree has begun and may go on: its branch holds the configuration that counts.
    async fn goes_on(&self, repository: &Repository) -> Result<bool, ErrorData> {
        let Some(worker) = self.registry.find(repository.common_dir()).await else { return Ok(false) };
        let status = worker.status();
        let Some(run) = status.run.as_ref().map(|run| &run.summary) else { return Ok(false) };
        let is_over = matches!(run.state, RunStatus::Completed | RunStatus::Cancelled);
        if is_over || run.path.as_path() != repository.work_dir() {
            return Ok(false);
        }
        let (repository, branch) = (repository.clone(), run.branch.clone());
        blocking(move || Ok(repository.branch(&branch).map_err(|error| git_error(&error))?.is_some())).await
    }

    /// Shows what the daemon was started with, where that stands above its file.
    fn outdo(&self, setting: &mut SettingView) {
        let above = match setting.key.as_str() {
            "log_level" => {
                std::env::var(FILTER_VARIABLE).ok().filter(|value| !value.is_empty()).zip(Some(FILTER_VARIABLE))
            }
            "socket" if self.paths.socket_named => {
                Some((self.paths.socket.display().to_string(), "RUNNERD_SOCKET or --socket"))
            }
            _ => None,
        };
        if let Some((value, place)) = above {
            setting.value = Some(format!("{value:?}"));
            setting.origin = SettingOrigin::Start;
            setting.place = Some(place.to_owned());
        }
    }
}

/// Reads every key of a file; the defaults where there is none.
fn settings(
    file: &Path,
    show: impl Fn(&str, &Path) -> Result<Vec<Setting>, config::ConfigError>,
) -> Result<Vec<SettingView>, ErrorData> {
    let bytes = durable::read(file).map_err(|error| fault(&error))?.unwrap_or_default();
    let view = |setting: Setting| {
        let place = match setting.origin {
            Origin::Default => None,
            Origin::File { line } => Some(format!("{}:{line}", file.display())),
        };
        let origin = if place.is_some() { SettingOrigin::File } else { SettingOrigin::Default };
        SettingView { key: setting.key, value: setting.value, origin, place }
    };
    let settings = config::text(&bytes, file).and_then(|text| show(text, file)).map_err(|error| invalid(&error))?;
    Ok(settings.into_iter().map(view).collect())
}

fn fault(error: &durable::DurableError) -> ErrorData {
    ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error)
}

fn invalid(error: &config::ConfigError) -> ErrorData {
    ErrorData::new(ErrorKind::InvalidFile, in_one_line(error)).hint("correct the file, and: runnerctl validate")
}

fn get_config(repository: &Repository, key: Option<&str>) -> Result<ConfigReply, ErrorData> {
    let layout = Layout::new(repository.work_dir());
    let config = admit::config_of_work_tree(&layout)?;
    let all = serde_json::to_value(&config)
        .map_err(|error| ErrorData::new(ErrorKind::Bug, format!("the configuration does not serialize: {error}")))?;
    let Some(key) = key else {
        return Ok(ConfigReply { value: all, variables: agent::wanted_of_caller(&config) });
    };
    let found = config::names(key).iter().try_fold(&all, |value, part| value.get(part)).cloned();
    found.map(|value| ConfigReply { value, variables: Vec::new() }).ok_or_else(|| unknown_key(&layout, key))
}

fn unknown_key(layout: &Layout, key: &str) -> ErrorData {
    let text = admit::config_text(layout).unwrap_or_default();
    let error = config::get(&text, key).err();
    let message = error.map_or_else(|| format!("unknown key `{key}`"), |error| in_one_line(&error));
    ErrorData::new(ErrorKind::InvalidRequest, message).hint("runnerctl config get")
}
