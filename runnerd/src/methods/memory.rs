//! `memory.*`: the texts that sessions are told from, as they are committed.

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::MemoryApiServer;
use protocol::error::ErrorData;
use protocol::reply::{MemoryFile, MemoryReply};
use protocol::request::AtRun;

use super::{Api, blocking, tree};
use crate::admit::git_error;
use crate::git::Repository;
use crate::repo::layout::Layout;

#[async_trait]
impl MemoryApiServer for Api {
    async fn memory(&self, params: AtRun) -> RpcResult<MemoryReply> {
        let params = self.meant(params, "tree").await?;
        let repository = self.repository(params.path.as_path()).await?;
        Ok(blocking(move || read(&repository, params.run.as_deref())).await?)
    }
}

fn read(repository: &Repository, run: Option<&str>) -> Result<MemoryReply, ErrorData> {
    let commit = tree::tip(repository, run)?;
    let mut files = Vec::new();
    for path in [Layout::GOAL, Layout::PROGRESS, Layout::NOTES].into_iter().chain(Layout::MEMORY) {
        if let Some(bytes) = repository.read(&commit, path).map_err(|error| git_error(&error))? {
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            files.push(MemoryFile { name, text: String::from_utf8_lossy(&bytes).into_owned() });
        }
    }
    Ok(MemoryReply { commit: Some(commit.to_string()), files })
}
