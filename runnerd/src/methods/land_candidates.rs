//! Which runs of a repository have something to land.

use jsonrpsee::Extensions;
use protocol::error::ErrorData;
use protocol::landing::CandidatesParams;
use protocol::request::AtPath;
use protocol::view::RunSummary;
use runner_git::Repository;
use tokio_util::sync::CancellationToken;

use super::Api;
use crate::admit::git_error;
use crate::landing;
use crate::verify::VerifyTarget;

impl Api {
    /// Returns the runs that have something to land on the branch, or on the one that each was started from.
    pub(super) async fn list_candidates(
        &self,
        extensions: &Extensions,
        params: CandidatesParams,
    ) -> Result<Vec<RunSummary>, ErrorData> {
        let CandidatesParams { path, onto } = params;
        let (repository, worker) = self.find_worker(path.as_path()).await?;
        let targets = self.read_targets(&repository)?.0;
        let isolated = self.list_isolated_runs(&AtPath { path: path.clone() }).await;
        let mut runs = Vec::new();
        for run in worker.list_runs().await.0.into_iter().chain(isolated) {
            if self.find_unbegun_run(&path, Some(&run.id)).await.is_none() {
                runs.push(run);
            }
        }
        let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
        let query = format!("candidates {onto:?} {}", ids.join(" "));
        let repo = repository.clone();
        let read = move |stop: &CancellationToken| {
            let mut candidates = Vec::new();
            for run in runs {
                if is_candidate(&repo, &run, onto.as_ref().or_else(|| targets.get(&run.id)), stop)? {
                    candidates.push(run);
                }
            }
            Ok(candidates)
        };
        self.read_shared(extensions, &repository, &query, read).await
    }
}

/// Whether the branch of a run is here, and has something that its target lacks, or whose absence is not known.
fn is_candidate(
    repository: &Repository,
    run: &RunSummary,
    onto: Option<&String>,
    stop: &CancellationToken,
) -> Result<bool, ErrorData> {
    let find_tip = |branch: &str| repository.find_branch_tip(branch).map_err(|error| git_error(&error));
    let Some(tip) = find_tip(&run.branch)? else { return Ok(false) };
    let Some(onto) = onto.map(|onto| find_tip(onto)).transpose()?.flatten() else { return Ok(true) };
    let target = VerifyTarget { run: run.id.clone(), tip };
    // What cannot be read is refused with its reason when it is to land.
    Ok(landing::has_rest(repository, &target, &onto, stop).unwrap_or(true))
}
