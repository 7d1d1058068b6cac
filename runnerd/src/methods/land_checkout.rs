//! Where a landing leaves the work tree: a run that has landed no longer needs its branch there.

use protocol::error::{ErrorData, ErrorKind};
use protocol::landing::{LandOutcome, LandParams, LandReply};
use protocol::view::RunSummary;
use runner_git::{ChangeKind, Id, Repository, WorktreeChange};

use super::run::is_driven_elsewhere;
use super::{Api, run_blocking};
use crate::admit::git_error;
use crate::repo::durable;
use crate::repo::layout::Layout;
use crate::worker::{ExclusiveWork, WorkerHandle, WorkerMessage};

/// Maximum number of uncommitted paths that are reported.
const MAX_UNCOMMITTED: usize = 5;

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
        let tree = repository.clone();
        let from = branch.clone();
        let work = move || {
            if run_branch(&tree)? == Some(from) && tree.operation().is_none() && list_changed(&tree)?.is_empty() {
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
        let uncommitted = match (&on_run, &reply.back) {
            (Some(_), Some(back)) => {
                let tree = repository.clone();
                let back = back.clone();
                run_blocking(move || keep_stuck(&tree, &back, list_changed(&tree)?)).await?
            }
            (Some(_) | None, _) => Vec::new(),
        };
        let left = Some(branch).filter(|_| on_run.is_none());
        Ok(LandReply { on_run, left, uncommitted, ..reply })
    }
}

/// Lists the changes that are not committed. A file that git does not know is none: it is in no branch, and git refuses
/// to overwrite it.
fn list_changed(repository: &Repository) -> Result<Vec<String>, ErrorData> {
    let changes = repository.list_changes().map_err(|error| git_error(&error))?;
    let known = changes.iter().filter(|change| change.kind != ChangeKind::Untracked);
    Ok(known.map(WorktreeChange::display_path).collect())
}

/// Returns the files that people write under `.runner/` and that keep git from going to another branch.
pub(super) fn list_stuck_files(repository: &Repository, back: &str) -> Result<Vec<String>, ErrorData> {
    let head = repository.head().map_err(|error| git_error(&error))?.commit();
    let layout = Layout::new(repository.work_dir());
    let mut changed = Vec::new();
    for path in [Layout::CONFIG, Layout::GOAL] {
        let committed =
            head.map(|head| repository.read_file(&head, path)).transpose().map_err(|error| git_error(&error))?;
        let here = durable::read(&layout.path(path))
            .map_err(|error| ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(&error))?;
        if committed.flatten().is_some_and(|committed| here.as_ref() != Some(&committed)) {
            changed.push(path.to_owned());
        }
    }
    keep_stuck(repository, back, changed)
}

/// Returns the first of these changed files that another branch has otherwise than HEAD: git takes a change along to a
/// branch only where both have the same file.
fn keep_stuck(repository: &Repository, back: &str, paths: Vec<String>) -> Result<Vec<String>, ErrorData> {
    let head = repository.head().map_err(|error| git_error(&error))?.commit();
    let tip = repository.find_branch_tip(back).map_err(|error| git_error(&error))?;
    let (Some(head), Some(tip)) = (head, tip) else { return Ok(Vec::new()) };
    let read = |commit: &Id, path: &str| repository.read_file(commit, path).map_err(|error| git_error(&error));
    let mut stuck = Vec::new();
    for path in paths {
        if stuck.len() < MAX_UNCOMMITTED && read(&head, &path)? != read(&tip, &path)? {
            stuck.push(path);
        }
    }
    Ok(stuck)
}

/// Returns the branch of a run that a work tree is on.
pub(super) fn run_branch(repository: &Repository) -> Result<Option<String>, ErrorData> {
    let head = repository.head().map_err(|error| git_error(&error))?;
    Ok(head.branch().filter(|branch| branch.starts_with("runner/")).map(str::to_owned))
}
