//! `repo.*`: the registered repositories.

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::RepoApiServer;
use protocol::error::{ErrorData, ErrorKind};
use protocol::request::RemoveParams;
use protocol::shell;
use protocol::view::{DiskView, RepoView};

use super::{Api, repo_order};
use crate::store::repo_id;
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

    async fn remove(&self, params: RemoveParams) -> RpcResult<RepoView> {
        // A repository whose folder is gone is found by its registered path.
        let known = self.registry.list().await.into_iter().find(|worker| worker.status().repo.path == params.path);
        let id = match known {
            Some(worker) => worker.id,
            None => self.find_worker(params.path.as_path()).await?.1.id,
        };
        let has_id = |worker: &WorkerHandle| worker.id == id;
        if let Some(source) = self.registry.list().await.into_iter().find(has_id).and_then(|worker| worker.source) {
            let message = format!("{} is the workspace of run {}, and forgotten with it", params.path, source.run);
            let place = shell::quote(&source.path.to_string());
            let refused = ErrorData::new(ErrorKind::WrongState, message);
            return Err(refused.hint(format!("once the run is over: runnerctl gc {place}")).into());
        }
        self.remove_runs_of_lost_source(&id, &params).await?;
        let view = self.registry.remove(&id).await?;
        // If its record cannot be read, the requested path identifies it.
        let path = if view.path.as_path().as_os_str().is_empty() { params.path } else { view.path };
        Ok(RepoView { path, ..view })
    }
}

impl Api {
    /// Forgets the isolated runs of a repository whose git folder is gone: nothing of them can be published or tidied up
    /// any more. Their workspaces stay, each a repository with the run's branch.
    async fn remove_runs_of_lost_source(&self, id: &str, params: &RemoveParams) -> Result<(), ErrorData> {
        let is_its = |worker: &WorkerHandle| {
            let source = worker.source.as_ref().map(|source| source.common_dir.as_path());
            source.is_some_and(|folder| repo_id(folder) == id && folder.symlink_metadata().is_err())
        };
        let runs: Vec<WorkerHandle> = self.registry.list().await.into_iter().filter(is_its).collect();
        let gone = &params.path;
        let quoted = shell::quote(&params.path.to_string());
        for worker in &runs {
            let view = worker.status().repo.clone();
            if let Some(run) = view.queue.first() {
                let message = format!("{gone} is gone, and its isolated run {} {}", run.id, run.state.predicate());
                let place = shell::quote(&view.path.to_string());
                let refused = ErrorData::new(ErrorKind::WrongState, message);
                return Err(refused.hint(format!("runnerctl -C {place} cancel")));
            }
        }
        if !runs.is_empty() && !params.force {
            let places: Vec<String> = runs.iter().map(|worker| worker.status().repo.path.to_string()).collect();
            let message = format!(
                "{gone} is gone, and it has isolated runs; forgotten, they keep their branches and commits in:\n  {}",
                places.join("\n  ")
            );
            let refused = ErrorData::new(ErrorKind::WrongState, message);
            return Err(refused.hint(format!("runnerctl repos --remove {quoted} --force")));
        }
        for worker in &runs {
            self.registry.remove(&worker.id).await?;
        }
        Ok(())
    }
}
