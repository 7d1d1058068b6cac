//! Where the work tree of a run is, and which run's branch a work tree is on.
//!
//! After `git worktree move`, what git says about the new place is not enough, since a session can write it: its runs
//! continue where a person asks for it.

use std::collections::BTreeSet;
use std::io;

use protocol::branch::RunCheckout;
use protocol::path::WirePath;
use protocol::request::StartParams;
use protocol::view::StatusView;
use runner_git::Repository;

use super::land_checkout::list_stuck_files;
use super::run::{is_session_active, read_head};
use super::{Api, run_blocking};
use crate::store::RepoStore;
use crate::worker::{PinnedRepo, WorkerHandle};

impl Api {
    /// Returns the former and the present path of a work tree, if runs are recorded at the former one and nothing is
    /// there any more.
    pub(super) async fn find_move(
        &self,
        repository: &Repository,
        worker: &WorkerHandle,
    ) -> Option<(WirePath, WirePath)> {
        let paths: BTreeSet<WirePath> = worker.list_runs().await.0.into_iter().map(|run| run.path).collect();
        let repository = repository.clone();
        let store = RepoStore::new(&self.state_dir, &worker.id);
        let find = move || {
            let is_former = |path: &WirePath| {
                let found = path.as_path().symlink_metadata();
                found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
                    && matches!(PinnedRepo::for_work_tree(&store, path.as_path()).try_open(),
                        Ok(Some(pinned)) if pinned.git_dir() == repository.git_dir())
            };
            let former = paths.into_iter().find(is_former);
            Ok(former.map(|former| (former, WirePath::from(repository.work_dir()))))
        };
        run_blocking(find).await.ok()?
    }

    /// Shows a run where its work tree is now.
    pub(super) async fn show_move(&self, repository: &Repository, worker: &WorkerHandle, view: &mut StatusView) {
        let Some((from, to)) = self.find_move(repository, worker).await else { return };
        let run = view.run.iter_mut().map(|run| &mut run.summary.path);
        run.chain([&mut view.repo.path]).filter(|path| **path == from).for_each(|path| path.clone_from(&to));
    }

    /// Adds the goal of a run that is started again and has made no commit, which has it nowhere else.
    pub(super) async fn recall_goal(&self, params: StartParams) -> StartParams {
        let Some(id) = params.id.as_deref().filter(|_| params.goal.is_none()) else { return params };
        let unbegun = self.find_unbegun_run(&params.path, Some(id)).await;
        let goal = unbegun.filter(|(run, _)| run.id == id).and_then(|(run, _)| run.beginning?.goal);
        StartParams { goal, ..params }
    }

    /// Returns the run's branch that a work tree is on, unless a run is at work there.
    pub(super) async fn find_run_checkout(&self, repository: &Repository, status: &StatusView) -> Option<RunCheckout> {
        if status.repo.source.is_some() || is_session_active(status, repository.work_dir()) {
            return None;
        }
        let branch = read_head(repository).await?.branch()?.to_owned();
        let back = self.find_target(repository, branch.strip_prefix("runner/")?);
        let repository = repository.clone();
        let onto = back.clone();
        let stuck = run_blocking(move || match onto {
            Some(onto) => list_stuck_files(&repository, &onto),
            None => Ok(Vec::new()),
        });
        // A file that cannot be read is reported by what needs it.
        Some(RunCheckout { branch, back, uncommitted: stuck.await.unwrap_or_default() })
    }
}
