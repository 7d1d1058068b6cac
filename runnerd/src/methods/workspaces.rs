//! Workspaces of runs that are over: measures them, and removes those whose content also exists elsewhere.
//!
//! Removal is ordered so that the next attempt can continue after a crash: records first, then the workspace is moved
//! out of its place, then its registration is removed, the folder, and the id last. If the registration is gone, the
//! next start continues from the id of a workspace that is out of its place (`isolation`).

use std::fs;
use std::path::{Path, PathBuf};

use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::reply::WorkspaceSwept;
use protocol::request::GcParams;
use protocol::shell;
use protocol::view::{DiskView, RunSummary, StopReason, WorkspaceDisk};
use runner_core::publish;
use runner_core::run::RunRecord;
use runner_git::{GitError, Repository, SubmoduleDiff, WorktreeChange};

use super::run_selector::run_summary;
use super::{Api, run_blocking};
use crate::admit::{self, git_error};
use crate::isolation::{self, ReservedId};
use crate::repo::layout::Layout;
use crate::repo::records::{RecordsDir, RecordsError};
use crate::store::{RepoStore, SourceRepo, repo_id};
use crate::worker::{PinnedRepo, WorkerHandle, WorkerMessage};
use crate::workspace::{self, WorkspaceOwner};

/// The folder in the state folder for records whose workspaces are gone.
const RECORDS_DIR: &str = "records";
/// Maximum number of paths shown that keep a workspace from being removed.
const MAX_SHOWN_PATHS: usize = 5;

/// The workspace of an isolated run.
struct IsolatedWorkspace {
    summary: RunSummary,
    source: SourceRepo,
    store: RepoStore,
    /// The daemon's folder for its source.
    source_store: RepoStore,
    /// Where its records are moved to.
    archive: Layout,
}

/// Why a workspace cannot be removed now.
enum KeepReason {
    /// It contains something that exists nowhere else.
    UniqueContent(StopReason),
    /// All that it contains exists elsewhere, but for these files.
    Uncommitted(Vec<String>),
    /// Something failed.
    Failed(ErrorData),
}

impl From<GitError> for KeepReason {
    fn from(error: GitError) -> Self {
        Self::Failed(git_error(&error))
    }
}

impl From<RecordsError> for KeepReason {
    fn from(error: RecordsError) -> Self {
        Self::Failed(ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(&error))
    }
}

impl Api {
    /// Returns the location of records of a repository's isolated runs whose workspaces are gone.
    pub(super) fn archived_records(&self, common_dir: &Path) -> Layout {
        Layout::new(self.paths.state.join(RECORDS_DIR).join(repo_id(common_dir)))
    }

    /// Measures all workspaces.
    pub(super) async fn measure_workspaces(&self) -> Result<DiskView, ErrorData> {
        let workers = self.registry.list().await;
        let known: Vec<_> =
            workers.iter().filter_map(|worker| self.isolated_workspace(worker, run_summary(worker)?)).collect();
        let folder = self.workspaces.clone();
        run_blocking(move || {
            let mut workspaces: Vec<WorkspaceDisk> = known.into_iter().map(IsolatedWorkspace::measure).collect();
            workspaces.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.run.cmp(&b.run)));
            Ok(DiskView { free_bytes: isolation::free_bytes(&folder), folder: WirePath(folder), workspaces })
        })
        .await
    }

    /// Removes the workspaces of a repository's isolated runs that are over, and returns what happened to each.
    pub(super) async fn sweep_workspaces(
        &self,
        path: &Path,
        params: &GcParams,
    ) -> Result<Vec<WorkspaceSwept>, ErrorData> {
        let Some((_, workers)) = self.isolated_runs_of(path).await else { return Ok(Vec::new()) };
        let mut swept = Vec::new();
        for worker in workers {
            let Some(summary) = run_summary(&worker).filter(|run| run.state.is_terminal()) else { continue };
            let run = summary.id.clone();
            let path = summary.path.clone();
            let (bytes, removal) = self.sweep_workspace(&worker, summary, params).await?;
            let mut uncommitted = 0;
            let kept = match removal {
                Ok(()) => None,
                Err(KeepReason::UniqueContent(why)) => Some(why),
                Err(KeepReason::Uncommitted(files)) => {
                    uncommitted = files.len() as u64;
                    Some(uncommitted_reason(path.as_path(), &files))
                }
                Err(KeepReason::Failed(ErrorData { message, hint: Some(hint), .. })) => {
                    Some(StopReason::new(message, hint))
                }
                Err(KeepReason::Failed(ErrorData { message, .. })) => Some(StopReason::new(message, "runnerctl gc")),
            };
            swept.push(WorkspaceSwept { run, path, bytes, kept, uncommitted });
        }
        Ok(swept)
    }

    fn isolated_workspace(&self, worker: &WorkerHandle, summary: RunSummary) -> Option<IsolatedWorkspace> {
        let source = worker.source.as_deref()?.clone();
        let common_dir = source.common_dir.as_path();
        Some(IsolatedWorkspace {
            summary,
            store: RepoStore::new(&self.state_dir, &worker.id),
            source_store: RepoStore::new(&self.state_dir, &repo_id(common_dir)),
            archive: self.archived_records(common_dir),
            source,
        })
    }

    /// Hands the record of an isolated run to its source, which has its branch.
    async fn adopt_run(&self, ended: &IsolatedWorkspace) -> Result<(), ErrorData> {
        let Some(source) = self.registry.find(ended.source.common_dir.as_path()).await else { return Ok(()) };
        let store = ended.store.clone();
        let id = ended.source.run.clone();
        let path = ended.source.path.clone();
        let record = run_blocking(move || {
            let file = store.read_repo_file();
            let file = file.map_err(|error| ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(&error))?;
            let runs = file.map(|file| file.runs).into_iter().flatten();
            Ok(runs.into_iter().find(|run| run.id == id).map(|run| RunRecord { path, ..run }))
        })
        .await?;
        let Some(record) = record else { return Ok(()) };
        source.send_request(|reply| WorkerMessage::Adopt(Box::new(record), reply)).await
    }

    async fn sweep_workspace(
        &self,
        worker: &WorkerHandle,
        summary: RunSummary,
        params: &GcParams,
    ) -> Result<(u64, Result<(), KeepReason>), ErrorData> {
        let dry_run = params.dry_run;
        let is_forced = params.discard.contains(&summary.id);
        let Some(ended) = self.isolated_workspace(worker, summary) else { return Ok((0, Ok(()))) };
        let (bytes, ended, outcome) = run_blocking(move || {
            let bytes = isolation::directory_bytes(ended.summary.path.as_path());
            let checked = match ended.check_removable() {
                Err(KeepReason::Uncommitted(_)) if is_forced => Ok(()),
                checked => checked,
            };
            let checked = checked.and_then(|()| if dry_run { Ok(()) } else { ended.move_away() });
            Ok((bytes, ended, checked))
        })
        .await?;
        if outcome.is_err() || dry_run {
            return Ok((bytes, outcome));
        }
        if let Err(error) = self.adopt_run(&ended).await {
            return Ok((bytes, Err(KeepReason::Failed(error))));
        }
        // The run is over, and cannot continue in a folder that is gone.
        if let Err(error) = self.registry.remove(&worker.id).await {
            return Ok((bytes, Err(KeepReason::Failed(error))));
        }
        run_blocking(move || Ok((bytes, ended.finish_removal()))).await
    }
}

/// Says which files keep a workspace.
fn uncommitted_reason(workspace: &Path, files: &[String]) -> StopReason {
    let list = files.iter().take(MAX_SHOWN_PATHS).cloned().collect::<Vec<_>>().join(", ");
    let more = files.len().saturating_sub(MAX_SHOWN_PATHS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let place = shell::quote_path(workspace);
    StopReason::new(
        format!("it holds files that no commit has: {list}{more}"),
        format!("git -C {place} status --ignored; take what you need, then: runnerctl gc --force"),
    )
}

impl IsolatedWorkspace {
    fn measure(self) -> WorkspaceDisk {
        WorkspaceDisk {
            bytes: isolation::directory_bytes(self.workspace_path()),
            removable: self.summary.state.is_terminal() && self.check_removable().is_ok(),
            source: self.source.path,
            path: self.summary.path,
            run: self.summary.id,
        }
    }

    fn workspace_path(&self) -> &Path {
        self.summary.path.as_path()
    }

    fn open_source(&self) -> Result<Repository, KeepReason> {
        let path = self.source.path.as_path();
        if self.source.common_dir.as_path().symlink_metadata().is_err() {
            let place = shell::quote(&self.source.path.to_string());
            return Err(KeepReason::UniqueContent(StopReason::new(
                format!("{} is gone, and the run's commits are in the workspace alone", self.source.path),
                format!("put it back; or forget it, and keep the workspace: runnerctl repos --remove {place}"),
            )));
        }
        match PinnedRepo::for_work_tree(&self.source_store, path).try_open()? {
            Some(repository) => Ok(repository),
            None => admit::open_current(path).map_err(KeepReason::Failed),
        }
    }

    /// Fails if something in the workspace exists nowhere else. A missing folder contains nothing.
    fn check_removable(&self) -> Result<(), KeepReason> {
        if self.workspace_path().symlink_metadata().is_err() {
            if self.workspace_path().parent().is_none_or(|around| around.symlink_metadata().is_err()) {
                let message = format!(
                    "the directory of {} is not there, nor is the one around it",
                    self.workspace_path().display()
                );
                return Err(KeepReason::Failed(ErrorData::new(ErrorKind::Fault, message).hint("df -h")));
            }
            return Ok(());
        }
        let workspace = PinnedRepo::for_work_tree(&self.store, self.workspace_path()).open()?;
        self.refuse_unpublished(&workspace)?;
        let of_submodules = self.list_submodule_files(&workspace)?;
        let setup_record = self.store.workspace_file().read().map_err(|error| {
            KeepReason::Failed(ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(&error))
        })?;
        // A workspace without a finished setup was never worked in: ignored files there were copied, or are the
        // setup's.
        let mut files = match setup_record {
            Some(note) => workspace::find_unknown_files(&workspace, &note.created)?,
            None => Vec::new(),
        };
        let changed = workspace.list_changes()?.iter().map(WorktreeChange::display_path).collect::<Vec<_>>();
        files.extend(changed.into_iter().filter(|path| !path.starts_with(".runner/")));
        files.extend(of_submodules);
        files.sort();
        files.dedup();
        if files.is_empty() {
            return Ok(());
        }
        Err(KeepReason::Uncommitted(files))
    }

    /// Returns the files in submodules that no commit has. Fails if a submodule has commits that its source does not.
    fn list_submodule_files(&self, workspace: &Repository) -> Result<Vec<String>, KeepReason> {
        let SubmoduleDiff { unpublished, files } = workspace.compare_submodules(&self.open_source()?)?;
        let Some(name) = unpublished.first() else { return Ok(files) };
        let place = shell::quote_path(self.workspace_path());
        Err(KeepReason::UniqueContent(StopReason::new(
            format!("the submodule {name} in it has commits that {} does not have", self.source.path),
            format!(
                "git -C {place} submodule foreach git log --oneline -5; push what you need, then remove the directory"
            ),
        )))
    }

    /// Fails if a reference of the workspace points to commits that its source does not have.
    fn refuse_unpublished(&self, workspace: &Repository) -> Result<(), KeepReason> {
        let source = self.open_source()?;
        let run = &self.source.run;
        let source_refs = source.list_refs()?;
        let branch = format!("refs/heads/runner/{run}");
        for (name, id) in workspace.list_refs()? {
            let Ok(id) = id.parse() else { continue };
            if name == publish::guard_ref(run) {
                continue;
            }
            if !source.has_object(&id)? {
                let why = format!("{name} in it has commits that {} does not have", self.source.path);
                let place = shell::quote_path(self.workspace_path());
                return Err(KeepReason::UniqueContent(StopReason::new(
                    why,
                    format!("git -C {place} log --oneline {name}"),
                )));
            }
            let branch_tip = source_refs.get(&branch).or_else(|| source_refs.get(&format!("refs/runner/at/{run}")));
            let branch_tip = branch_tip.and_then(|at| at.parse().ok());
            let is_reached = || branch_tip.map_or(Ok(false), |at| source.is_ancestor(&id, &at));
            if name == branch && !is_reached()? {
                let why = self.summary.published.as_ref().and_then(|published| published.why.clone());
                let unpublished = || StopReason::new("it is not published", format!("runnerctl status --run {run}"));
                return Err(KeepReason::UniqueContent(why.unwrap_or_else(unpublished)));
            }
        }
        Ok(())
    }

    /// Moves the records away and the workspace out of its place.
    fn move_away(&self) -> Result<(), KeepReason> {
        let run = &self.source.run;
        if let Some(records) = RecordsDir::find(&Layout::new(self.workspace_path())) {
            records.move_records(run, &self.archive)?;
        }
        match fs::rename(self.workspace_path(), self.removal_path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("removing {}: {error}", self.workspace_path().display());
                Err(KeepReason::Failed(ErrorData::new(ErrorKind::Fault, message)))
            }
            _ => Ok(()),
        }
    }

    fn owner(&self) -> WorkspaceOwner {
        WorkspaceOwner::from_key(self.store.key())
    }

    /// Returns its path while it is being removed: remaining files there are removed at the next start.
    fn removal_path(&self) -> PathBuf {
        self.owner().unfinished_path(self.workspace_path())
    }

    /// Removes it, and releases its id.
    fn finish_removal(&self) -> Result<(), KeepReason> {
        let reservation = ReservedId { run: self.source.run.clone(), nonce: self.source.nonce.clone() };
        let source = self.open_source()?;
        let removed = isolation::remove_run_traces(&source, &reservation, self.workspace_path(), &self.owner());
        removed.map_err(|error| KeepReason::Failed(ErrorData::new(ErrorKind::Fault, error)))
    }
}
