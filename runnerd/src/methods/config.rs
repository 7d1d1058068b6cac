//! `config.*`: a repository's configuration, read for a person.

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::ConfigApiServer;
use protocol::error::{ErrorData, ErrorKind};
use protocol::reply::ConfigReply;
use protocol::request::ConfigKey;

use super::{Api, blocking};
use crate::admit;
use crate::agent;
use crate::causes::in_one_line;
use crate::config;
use crate::git::Repository;
use crate::repo::durable;
use crate::repo::layout::Layout;

#[async_trait]
impl ConfigApiServer for Api {
    async fn get(&self, params: ConfigKey) -> RpcResult<ConfigReply> {
        let repository = self.repository(params.path.as_path()).await?;
        Ok(blocking(move || get_config(&repository, params.key.as_deref())).await?)
    }
}

fn get_config(repository: &Repository, key: Option<&str>) -> Result<ConfigReply, ErrorData> {
    let layout = Layout::new(repository.work_dir());
    let config = admit::config_of_work_tree(&layout)?;
    let all = serde_json::to_value(&config)
        .map_err(|error| ErrorData::new(ErrorKind::Bug, format!("the configuration does not serialize: {error}")))?;
    let Some(key) = key else {
        return Ok(ConfigReply { value: all, variables: agent::wanted_of_caller(&config) });
    };
    let found = key.split('.').try_fold(&all, |value, part| value.get(part)).cloned();
    found.map(|value| ConfigReply { value, variables: Vec::new() }).ok_or_else(|| unknown_key(&layout, key))
}

fn unknown_key(layout: &Layout, key: &str) -> ErrorData {
    let bytes = durable::read(&layout.config()).ok().flatten().unwrap_or_default();
    let error = config::get(&String::from_utf8_lossy(&bytes), key).err();
    let message = error.map_or_else(|| format!("unknown key `{key}`"), |error| in_one_line(&error));
    ErrorData::new(ErrorKind::InvalidRequest, message).hint("runnerctl config get")
}
