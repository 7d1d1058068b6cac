//! `memory.*`: the committed texts that sessions are given.

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::MemoryApiServer;
use protocol::error::ErrorData;
use protocol::reply::{MemoryFile, MemoryReply};
use protocol::request::AtRun;
use runner_git::Repository;

use super::{Api, run_blocking, tree};
use crate::admit::git_error;
use crate::repo::layout::Layout;

#[async_trait]
impl MemoryApiServer for Api {
    async fn memory(&self, params: AtRun) -> RpcResult<MemoryReply> {
        let params = self.resolve_shown_run(params, "tree").await?;
        let repository = self.find_repository(params.path.as_path()).await?;
        Ok(run_blocking(move || read_memory(&repository, params.run.as_deref())).await?)
    }
}

fn read_memory(repository: &Repository, run: Option<&str>) -> Result<MemoryReply, ErrorData> {
    let commit = tree::find_tip(repository, run)?;
    let mut files = Vec::new();
    for path in [Layout::GOAL, Layout::PROGRESS, Layout::NOTES].into_iter().chain(Layout::MEMORY) {
        if let Some(bytes) = repository.read_file(&commit, path).map_err(|error| git_error(&error))? {
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            files.push(MemoryFile { name, text: String::from_utf8_lossy(&bytes).into_owned() });
        }
    }
    Ok(MemoryReply { commit: Some(commit.to_string()), files })
}
