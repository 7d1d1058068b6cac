//! `repo.*`: the registered repositories.

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::RepoApiServer;
use protocol::error::{ErrorData, ErrorKind};
use protocol::request::AtPath;
use protocol::view::{DiskView, RepoView};
use runner_core::shell;

use super::{Api, repo_order};
use crate::worker::WorkerHandle;

#[async_trait]
impl RepoApiServer for Api {
    async fn list(&self) -> RpcResult<Vec<RepoView>> {
        let mut views: Vec<RepoView> =
            self.registry.list().await.iter().map(|worker| worker.status().repo.clone()).collect();
        repo_order::sort_repositories(&mut views);
        Ok(views)
    }

    async fn disk(&self) -> RpcResult<DiskView> {
        Ok(self.measure_workspaces().await?)
    }

    async fn remove(&self, params: AtPath) -> RpcResult<RepoView> {
        // A repository whose folder is gone is found by its registered path.
        let known = self.registry.list().await.into_iter().find(|worker| worker.status().repo.path == params.path);
        let id = match known {
            Some(worker) => worker.id,
            None => self.find_worker(params.path.as_path()).await?.1.id,
        };
        let is_it = |worker: &WorkerHandle| worker.id == id;
        if let Some(source) = self.registry.list().await.into_iter().find(is_it).and_then(|worker| worker.source) {
            let message = format!("{} is the workspace of run {}, and forgotten with it", params.path, source.run);
            let place = shell::quote(&source.path.to_string());
            let refused = ErrorData::new(ErrorKind::WrongState, message);
            return Err(refused.hint(format!("once the run is over: runnerctl gc {place}")).into());
        }
        let view = self.registry.remove(&id).await?;
        // If its record cannot be read, the requested path identifies it.
        let path = if view.path.as_path().as_os_str().is_empty() { params.path } else { view.path };
        Ok(RepoView { path, ..view })
    }
}
