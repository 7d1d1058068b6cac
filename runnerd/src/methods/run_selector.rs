//! Resolves which run a request refers to, if a repository has isolated runs: each works in its own workspace, but
//! requests that name the source repository may refer to them.
//!
//! Only the path of the request changes: a workspace is a repository like any other.

use std::path::Path;

use protocol::error::{ErrorData, ErrorKind};
use protocol::id_lookup;
use protocol::path::WirePath;
use protocol::request::AtRun;
use protocol::shell;
use protocol::view::{RunSummary, StatusView};
use runner_core::run::RunRecord;
use runner_git::{Head, Id};

use super::{Api, run_blocking};
use crate::admit::git_error;
use crate::store::{RepoStore, repo_id};
use crate::worker::{WorkerHandle, run_not_found, unbegun_run_error};

/// A run of a repository, in place or isolated.
#[derive(Clone)]
struct RunCandidate {
    summary: RunSummary,
    /// Whether it works in a workspace.
    is_isolated: bool,
}

impl RunCandidate {
    /// Returns where to find it, for a request that names `path`.
    fn at(self, path: WirePath) -> AtRun {
        AtRun { path: if self.is_isolated { self.summary.path } else { path }, run: Some(self.summary.id) }
    }
}

impl Api {
    /// Redirects a read to the repository in which the requested run works. `command` is the command to suggest if the
    /// choice is ambiguous.
    pub(super) async fn resolve_run(&self, at: AtRun, command: &str) -> Result<AtRun, ErrorData> {
        let path = self.resolve_run_path(&at.path, at.run.as_deref(), command).await?;
        Ok(AtRun { path, run: at.run })
    }

    /// Like [`Self::resolve_run`], for a request that changes something: what follows is about this run, even if another
    /// one becomes the current one meanwhile.
    pub(super) async fn resolve_exact_run(&self, at: AtRun, command: &str) -> Result<AtRun, ErrorData> {
        match (self.choose_run(&at.path, at.run.as_deref(), command).await?, &at.run) {
            (Some(chosen), _) => Ok(chosen.at(at.path)),
            // A worker would take it for the beginning of another run's id.
            (None, Some(run)) if self.has_only_branch(&at.path, run).await => Err(run_not_found(run)),
            (None, _) => Ok(at),
        }
    }

    /// Like [`Self::resolve_run`], for a read of committed files. If none is named, and none has not ended, a run that is
    /// checked out comes before the last one.
    pub(super) async fn resolve_shown_run(&self, at: AtRun, command: &str) -> Result<AtRun, ErrorData> {
        if at.run.is_some() {
            return self.resolve_run(at, command).await;
        }
        let Some(chosen) = self.choose_run(&at.path, None, command).await? else { return Ok(at) };
        let has_run_at_head = chosen.summary.state.is_terminal() && self.has_run_at_head(&at.path).await;
        Ok(if has_run_at_head { at } else { chosen.at(at.path) })
    }

    /// Whether the branch of a run, or no branch, is checked out.
    async fn has_run_at_head(&self, path: &WirePath) -> bool {
        let Ok(repository) = self.find_repository(path.as_path()).await else { return false };
        match run_blocking(move || repository.head().map_err(|error| git_error(&error))).await {
            Ok(Head::Branch { name, .. }) => name.starts_with("runner/"),
            Ok(Head::Detached { .. }) => true,
            Err(_) => false,
        }
    }

    /// Returns the path where the requested run works; the given path if there is nothing to choose from.
    pub(super) async fn resolve_run_path(
        &self,
        path: &WirePath,
        run: Option<&str>,
        command: &str,
    ) -> Result<WirePath, ErrorData> {
        let chosen = self.choose_run(path, run, command).await?;
        Ok(chosen.filter(|chosen| chosen.is_isolated).map_or_else(|| path.clone(), |chosen| chosen.summary.path))
    }

    /// Returns the requested run: the one that is named, else the only one that has not ended, else the last.
    async fn choose_run(
        &self,
        path: &WirePath,
        run: Option<&str>,
        command: &str,
    ) -> Result<Option<RunCandidate>, ErrorData> {
        if run.is_some_and(str::is_empty) {
            return Err(empty_id_error());
        }
        let Some((own, isolated)) = self.runs_of(path.as_path()).await else { return Ok(None) };
        let own: Vec<RunCandidate> = match own {
            Some(own) => own.list_runs().await.0,
            None => Vec::new(),
        }
        .into_iter()
        .map(|summary| RunCandidate { summary, is_isolated: false })
        .collect();
        let isolated =
            isolated.iter().filter_map(run_summary).map(|summary| RunCandidate { summary, is_isolated: true });
        let all: Vec<RunCandidate> = own.into_iter().chain(isolated).collect();
        Ok(match run {
            // If its workspace is gone, the run still has its branch, and the worker knows runs by former ids; an id with
            // this prefix belongs to another run.
            Some(run)
                if all.iter().all(|known| known.summary.id != run)
                    && (self.has_run_branch(path, run).await || self.was_queued_as(path, run).await) =>
            {
                None
            }
            Some(run) => find_by_id(&all, run)?,
            None => find_only_active(&all, path, command)?,
        }
        .cloned())
    }

    /// Whether this daemon has the record of a run.
    pub(super) async fn is_recorded(&self, path: &WirePath, run: &str) -> bool {
        self.choose_run(path, Some(run), "verify").await.is_ok_and(|found| found.is_some())
    }

    /// Returns the requested run, and the tip of its branch, if it has made no commit according to this daemon: the
    /// branch is missing, or is at the base.
    pub(super) async fn find_unbegun_run(&self, path: &WirePath, run: Option<&str>) -> Option<(RunRecord, Option<Id>)> {
        let RunSummary { id, path, branch, .. } = self.choose_run(path, run, "verify").await.ok()??.summary;
        let repository = self.find_repository(path.as_path()).await.ok()?;
        let store = RepoStore::new(&self.state_dir, &repo_id(repository.common_dir()));
        let find = move || {
            // An unreadable record is reported when the repository is held for it.
            let runs = store.read_repo_file().ok().flatten().map(|file| file.runs).unwrap_or_default();
            let record = runs.into_iter().find(|run| run.id == id);
            let Some((record, spec)) = record.and_then(|run| run.beginning.clone().map(|spec| (run, spec))) else {
                return Ok(None);
            };
            let tip = repository.find_branch_tip(&branch).map_err(|error| git_error(&error))?;
            let is_at_base = match (tip, spec.base) {
                (None, _) => true,
                (Some(tip), Some(base)) => tip.to_string() == base,
                // Its base was to be the end of another run.
                (Some(tip), None) => {
                    let own = format!("refs/heads/{branch}");
                    let refs = repository.list_refs().map_err(|error| git_error(&error))?;
                    refs.iter().any(|(name, id)| *name != own && *id == tip.to_string())
                }
            };
            Ok(is_at_base.then_some((record, tip)))
        };
        run_blocking(find).await.ok()?
    }

    /// Replaces the error of a request about a run that has made no commit.
    pub(super) async fn explain_unbegun<T>(
        &self,
        path: &WirePath,
        run: Option<&str>,
        result: Result<T, ErrorData>,
    ) -> Result<T, ErrorData> {
        match result {
            Err(error) => {
                let unbegun = self.find_unbegun_run(path, run).await;
                Err(unbegun.map_or(error, |(run, _)| unbegun_run_error(&run)))
            }
            done => done,
        }
    }

    /// Whether the repository that contains a path has the branch of a run with exactly this id.
    async fn has_run_branch(&self, path: &WirePath, run: &str) -> bool {
        let Ok(repository) = self.find_repository(path.as_path()).await else { return false };
        let branch = format!("runner/{run}");
        let found = run_blocking(move || repository.find_branch_tip(&branch).map_err(|error| git_error(&error)));
        found.await.is_ok_and(|tip| tip.is_some())
    }

    /// Whether a branch is all that is known of the run with exactly this id.
    async fn has_only_branch(&self, path: &WirePath, run: &str) -> bool {
        self.has_run_branch(path, run).await && !self.was_queued_as(path, run).await
    }

    /// Whether a run of the repository that contains a path was queued under this id, and has another one since.
    async fn was_queued_as(&self, path: &WirePath, run: &str) -> bool {
        let Ok(repository) = self.find_repository(path.as_path()).await else { return false };
        let store = RepoStore::new(&self.state_dir, &repo_id(repository.common_dir()));
        let id = run.to_owned();
        let found = run_blocking(move || {
            // An unreadable record is reported when the repository is held for it.
            let runs = store.read_repo_file().ok().flatten().map(|file| file.runs).unwrap_or_default();
            Ok(runs.iter().any(|record| record.queued_as.as_ref() == Some(&id)))
        });
        found.await.unwrap_or(false)
    }

    /// Returns the worker of the repository that contains a path and those of its isolated runs; `None` if it has no
    /// such runs.
    pub(super) async fn isolated_runs_of(&self, path: &Path) -> Option<(Option<WorkerHandle>, Vec<WorkerHandle>)> {
        if self.registry.list().await.iter().all(|worker| worker.source.is_none()) {
            return None;
        }
        self.runs_of(path).await.filter(|(_, isolated)| !isolated.is_empty())
    }

    /// Returns the worker of the repository that contains a path and those of its isolated runs.
    async fn runs_of(&self, path: &Path) -> Option<(Option<WorkerHandle>, Vec<WorkerHandle>)> {
        // A faulty path is reported by the method itself.
        let repository = self.find_repository(path).await.ok()?;
        let is_of_source = |worker: &WorkerHandle| {
            worker.source.as_ref().is_some_and(|source| source.common_dir.as_path() == repository.common_dir())
        };
        let isolated = self.registry.list().await.into_iter().filter(is_of_source).collect();
        Some((self.registry.find(repository.common_dir()).await, isolated))
    }

    /// Describes a repository with its isolated runs: in addition to its own run, or, without one, shows the only
    /// active one.
    pub(super) async fn add_isolated_runs(&self, path: &Path, view: StatusView) -> StatusView {
        let Some((_, workers)) = self.isolated_runs_of(path).await else { return view };
        for worker in &workers {
            refresh_published(worker).await;
        }
        let isolated: Vec<RunSummary> = workers.iter().filter_map(run_summary).collect();
        let is_active = |view: &StatusView| view.run.as_ref().is_some_and(|run| !run.summary.state.is_terminal());
        let views = workers.iter().map(super::super::worker::WorkerHandle::status);
        let mut live = views.filter(|view| is_active(view));
        let run = match (is_active(&view), live.next(), live.next()) {
            (false, Some(one), None) => one.run.clone(),
            _ => view.run,
        };
        StatusView { run, isolated, ..view }
    }
}

/// Makes the worker of an idle isolated run refresh its publishing state, since people move branches too.
pub(super) async fn refresh_published(worker: &WorkerHandle) {
    let Some(source) = worker.source.as_ref().filter(|_| !worker.is_driving()) else { return };
    let run = source.run.clone();
    // If it does not answer, its last known state is shown.
    let _ = worker.describe_run(&run).await;
}

/// Returns the summary of the run in a workspace.
pub(super) fn run_summary(worker: &WorkerHandle) -> Option<RunSummary> {
    let status = worker.status();
    let source = worker.source.clone()?;
    let queued = status.repo.queue.iter().find(|run| run.id == source.run).cloned();
    queued.or_else(|| status.run.as_ref().map(|run| run.summary.clone()))
}

/// Returns the run with this id or unique prefix; `None` if no id matches.
fn find_by_id<'a>(all: &'a [RunCandidate], requested: &str) -> Result<Option<&'a RunCandidate>, ErrorData> {
    Ok(id_lookup::find_by_id(all, |run| &run.summary.id, requested)?)
}

/// Returns the only run that has not ended, queued ones counted; if there is none, the one that ended last.
fn find_only_active<'a>(
    all: &'a [RunCandidate],
    path: &WirePath,
    command: &str,
) -> Result<Option<&'a RunCandidate>, ErrorData> {
    let live: Vec<&RunCandidate> = all.iter().filter(|run| !run.summary.state.is_terminal()).collect();
    match live[..] {
        [one] => Ok(Some(one)),
        [] => Ok(all.iter().max_by_key(|run| run.summary.ended_at)),
        _ => Err(ambiguous_run_error(&live, path, command)),
    }
}

/// What an unset variable of a shell becomes.
pub(super) fn empty_id_error() -> ErrorData {
    ErrorData::new(ErrorKind::InvalidRequest, "the id of the run is empty").hint("runnerctl queue")
}

fn ambiguous_run_error(live: &[&RunCandidate], path: &WirePath, command: &str) -> ErrorData {
    let describe_candidate = |run: &&RunCandidate| {
        let how = if run.is_isolated { "isolated" } else { "in place" };
        format!("\n  {}  {}, {how}", run.summary.id, run.summary.state)
    };
    let all: String = live.iter().map(describe_candidate).collect();
    let message = format!("{} runs of {path} have not ended, and none is named:{all}", live.len());
    let place = shell::quote(&path.to_string());
    let ways: Vec<String> =
        live.iter().map(|run| format!("runnerctl -C {place} {command} --run {}", run.summary.id)).collect();
    let ids = live.iter().map(|run| run.summary.id.as_str());
    ErrorData::new(ErrorKind::InvalidRequest, message).hint(ways.join("; or: ")).choice(None, ids)
}

#[cfg(test)]
mod tests {
    use protocol::words::RunStatus;

    use super::*;

    fn run(id: &str, state: RunStatus, is_isolated: bool) -> RunCandidate {
        let path = WirePath::from(Path::new("/w"));
        let record = runner_core::run::RunRecord::queued(id, path, jiff::Timestamp::UNIX_EPOCH);
        RunCandidate { summary: RunSummary { state, ..crate::worker::run_summary(&record) }, is_isolated }
    }

    fn id(chosen: Option<&RunCandidate>) -> Option<&str> {
        chosen.map(|run| run.summary.id.as_str())
    }

    #[test]
    fn a_run_is_named_by_its_id_or_a_beginning_that_no_other_has() {
        let all = [run("tidy", RunStatus::Running, false), run("tidy-2", RunStatus::Running, true)];
        assert_eq!(id(find_by_id(&all, "tidy").unwrap()), Some("tidy"));
        assert_eq!(id(find_by_id(&all, "tidy-").unwrap()), Some("tidy-2"));
        assert_eq!(id(find_by_id(&all, "port").unwrap()), None);
        assert!(find_by_id(&all, "ti").is_err());
    }

    #[test]
    fn the_only_active_run_is_selected_and_of_several_none_is() {
        let at = WirePath::from(Path::new("/p"));
        let resolve =
            |all: &[RunCandidate]| find_only_active(all, &at, "pause").map(|chosen| id(chosen).map(str::to_owned));
        let over = run("old", RunStatus::Completed, false);
        let all = [over, run("a", RunStatus::Paused, true)];
        assert_eq!(resolve(&all).unwrap().as_deref(), Some("a"));
        let all = [run("a", RunStatus::Paused, true), run("b", RunStatus::Running, false)];
        let refused = resolve(&all).unwrap_err();
        assert_eq!(
            refused.message,
            "2 runs of /p have not ended, and none is named:\n  a  paused, isolated\n  b  running, in place"
        );
        let ways = "runnerctl -C /p pause --run a; or: runnerctl -C /p pause --run b";
        assert_eq!(refused.hint.as_deref(), Some(ways));
        assert_eq!(refused.choice.map(|choice| choice.ids), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(resolve(&[run("a", RunStatus::Completed, true)]).unwrap().as_deref(), Some("a"));
        let queued = [run("a", RunStatus::Running, false), run("b", RunStatus::Queued, false)];
        assert!(resolve(&queued).is_err(), "one that waits behind another counts");
    }
}
