//! Where a landing leaves the work tree: a run that has landed no longer needs its branch there.

use protocol::error::ErrorData;
use protocol::landing::{LandOutcome, LandParams, LandReply};
use protocol::view::RunSummary;
use runner_git::{ChangeKind, Repository, WorktreeChange};

use super::run::is_driven_elsewhere;
use super::{Api, run_blocking};
use crate::admit::git_error;
use crate::worker::{ExclusiveWork, WorkerHandle, WorkerMessage};

impl Api {
    /// Checks out the branch that a run has landed on, if the work tree is on the run's, has no change that is not
    /// committed, and the run has ended. The branch of a delivery is for the remote: then it is the one that the run
    /// was started from. Where that fails, the work tree stays where it is, and the reply says so.
    pub(super) async fn go_back(
        &self,
        repository: &Repository,
        worker: Option<&WorkerHandle>,
        params: &LandParams,
        reply: LandReply,
    ) -> Result<LandReply, ErrorData> {
        let Some(branch) = reply.on_run.clone() else { return Ok(reply) };
        let back = match branch.strip_prefix("runner/").filter(|_| params.from.is_some()) {
            Some(run) => self.find_target(repository, run),
            None => Some(reply.onto.clone()),
        };
        let reply = LandReply { back: back.clone(), ..reply };
        let Some(back) = back else { return Ok(reply) };
        let landed = reply.runs.iter().filter(|run| run.outcome != LandOutcome::LeftOut);
        let is_landed = landed.map(|run| &run.run).any(|run| branch.strip_prefix("runner/") == Some(run));
        let is_ended = |run: &RunSummary| run.branch != branch || run.state.is_terminal();
        let is_busy = match worker {
            Some(worker) => self.is_unsettled(worker) || !worker.list_runs().await.0.iter().all(is_ended),
            None => false,
        };
        if !is_landed || is_busy || is_driven_elsewhere(worker, repository.common_dir()) {
            return Ok(reply);
        }
        let (tree, from) = (repository.clone(), branch.clone());
        let work = move || {
            // A file that git does not know is in no branch, and git refuses to overwrite it.
            let is_new = |change: &WorktreeChange| change.kind == ChangeKind::Untracked;
            let changes = || tree.list_changes().map_err(|error| git_error(&error));
            if run_branch(&tree)? == Some(from) && tree.operation().is_none() && changes()?.iter().all(is_new) {
                tree.switch_branch(&back).map_err(|error| git_error(&error))?;
            }
            Ok(())
        };
        let switched = match worker {
            Some(worker) => {
                worker.send_request(|reply| WorkerMessage::RunExclusive(ExclusiveWork::new(work), reply)).await
            }
            None => run_blocking(work).await,
        };
        if let Err(error) = switched {
            tracing::warn!(error = error.message, "failed to check out the branch that a run landed on");
        }
        let on_run = run_branch(repository)?;
        let left = Some(branch).filter(|_| on_run.is_none());
        Ok(LandReply { on_run, left, ..reply })
    }
}

/// Returns the branch of a run that a work tree is on.
pub(super) fn run_branch(repository: &Repository) -> Result<Option<String>, ErrorData> {
    let head = repository.head().map_err(|error| git_error(&error))?;
    Ok(head.branch().filter(|branch| branch.starts_with("runner/")).map(str::to_owned))
}
