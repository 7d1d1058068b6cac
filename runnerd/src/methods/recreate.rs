//! Recreates the workspace of a run that continues, if it is missing. The source for it is decided by
//! `runner_core::publish`.

use std::path::Path;

use protocol::error::{ErrorData, ErrorKind};
use protocol::event::EventKind;
use runner_core::publish::{StartBase, WorkspaceLoss, WorkspaceRemains, WorkspaceSource, choose_source};
use runner_core::run::StartSpec;
use runner_git::{Id, Repository};
use tokio_util::sync::CancellationToken;

use super::isolated::{workspace_error, write_carried_files};
use super::run::{is_driven_elsewhere, is_session_active};
use super::{Api, run_blocking};
use crate::admit::{self, git_error};
use crate::events::EventSubject;
use crate::publish::{PublishedMove, find_preserved_tip};
use crate::repo::sealed::SealedFileError;
use crate::store::{RepoStore, SourceRepo, repo_id};
use crate::worker::{self, PinnedRepo, WorkerHandle};
use crate::workspace::{self, WorkspaceOptions, WorkspaceOwner};

/// Serializes recreation across all requests.
static RECREATION_LOCK: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A workspace that may be missing.
struct MissingWorkspace<'a> {
    source_store: &'a RepoStore,
    workspace_store: &'a RepoStore,
    source: &'a SourceRepo,
    workspace_path: &'a Path,
    /// Whether a session may be writing to the source's work tree: then nothing is taken from it.
    is_source_active: bool,
}

impl Api {
    /// Recreates the workspace of a run if it is missing, from what is left of the run.
    pub(super) async fn recreate_workspace(&self, worker: &WorkerHandle) -> Result<(), ErrorData> {
        let Some(source) = worker.source.clone() else { return Ok(()) };
        let workspace_path = worker.status().repo.path.0.clone();
        let _turn = RECREATION_LOCK.lock().await;
        if worker.is_driving() {
            return Ok(());
        }
        let common_dir = source.common_dir.as_path();
        let source_worker = self.registry.find(common_dir).await;
        let is_source_active =
            source_worker.as_ref().is_some_and(|own| is_session_active(&own.status(), source.path.as_path()))
                || is_driven_elsewhere(source_worker.as_ref(), common_dir);
        let source_store = RepoStore::new(&self.state_dir, &repo_id(common_dir));
        let workspace_store = RepoStore::new(&self.state_dir, &worker.id);
        let stop = self.shutdown.child_token();
        let run = source.run.clone();
        let warning = run_blocking(move || {
            let source_store = &source_store;
            let workspace_store = &workspace_store;
            let source = &*source;
            let workspace_path = workspace_path.as_path();
            MissingWorkspace { source_store, workspace_store, source, workspace_path, is_source_active }.recreate(&stop)
        })
        .await?;
        if let Some(message) = warning {
            let about = EventSubject { repo: Some(worker.id.clone()), run: Some(run), iter: None };
            self.events.publish(about, EventKind::Warning { message });
        }
        Ok(())
    }
}

impl MissingWorkspace<'_> {
    /// Recreates it if it is missing; then returns a message for people.
    fn recreate(&self, stop: &CancellationToken) -> Result<Option<String>, ErrorData> {
        let path = self.source.path.as_path();
        let pinned =
            PinnedRepo::for_work_tree(self.source_store, path).try_open().map_err(|error| git_error(&error))?;
        let repository = pinned.map_or_else(|| admit::open_current(path), Ok)?;
        // Published commits may be ahead of the branch if that is in use.
        let last_commit = find_preserved_tip(&repository, &self.source.run).map_err(|error| git_error(&error))?;
        if self.workspace_path.join(".git").symlink_metadata().is_ok() {
            return self.ensure_branch(last_commit).map(|()| None);
        }
        let warning = match choose_source(self.find_remains(&repository, last_commit)?) {
            WorkspaceSource::Published(tip) => self.recreate_at_published(&repository, tip, stop)?,
            WorkspaceSource::Base(base) => self.recreate_at_base(&repository, base, stop)?,
            WorkspaceSource::Unrecoverable(lost) => return Err(self.loss_error(&repository, lost)?),
        };
        Ok(Some(warning))
    }

    fn find_remains(
        &self,
        repository: &Repository,
        last_commit: Option<Id>,
    ) -> Result<WorkspaceRemains<Id>, ErrorData> {
        let base = self.read_start_spec()?.and_then(|beginning| beginning.base?.parse::<Id>().ok());
        let start_base = match base {
            Some(base) if repository.has_object(&base).map_err(|error| git_error(&error))? => Some(StartBase::At(base)),
            Some(_) => Some(StartBase::Gone),
            None => None,
        };
        let was_published = self.read_published()?.is_some_and(|published| published.was_published());
        Ok(WorkspaceRemains { last_commit, was_published, start_base })
    }

    /// Returns how its run begins, unless it has begun.
    fn read_start_spec(&self) -> Result<Option<StartSpec>, ErrorData> {
        let file = self.workspace_store.read_repo_file().map_err(|error| fault_error(&error))?;
        let run = file.and_then(|file| file.runs.into_iter().find(|run| run.id == self.source.run));
        Ok(run.and_then(|run| run.beginning))
    }

    fn read_published(&self) -> Result<Option<PublishedMove>, ErrorData> {
        self.workspace_store.published_file().read().map_err(|error: SealedFileError| fault_error(&error))
    }

    /// Recreates it at the published tip of its run, on the run's branch.
    fn recreate_at_published(
        &self,
        repository: &Repository,
        tip: Id,
        stop: &CancellationToken,
    ) -> Result<String, ErrorData> {
        let config = worker::load_config(repository, tip)
            .map_err(|error| ErrorData::new(ErrorKind::InvalidFile, error.to_string()).caused_by(&error))?;
        let order = WorkspaceOptions {
            source: repository,
            target_dir: self.workspace_path,
            base: tip,
            copy: &config.workspace.copy,
        };
        self.create_workspace(&order, stop)?;
        self.ensure_branch(Some(tip))?;
        let run = &self.source.run;
        Ok(format!(
            "the workspace was gone, and was created again from runner/{run}: what was not committed in it is lost"
        ))
    }

    /// Recreates it at the commit from which its run is to begin, with the files taken along from the source's current
    /// work tree.
    fn recreate_at_base(
        &self,
        repository: &Repository,
        base: Id,
        stop: &CancellationToken,
    ) -> Result<String, ErrorData> {
        let taken = self.read_start_spec()?.and_then(|beginning| beginning.config);
        let (carried_files, config) = admit::read_carried_files(repository, base, self.is_source_active, taken)?;
        let order = WorkspaceOptions {
            source: repository,
            target_dir: self.workspace_path,
            base,
            copy: &config.workspace.copy,
        };
        self.create_workspace(&order, stop)?;
        write_carried_files(self.workspace_path, &carried_files)?;
        let from = base.short(12);
        Ok(format!("the workspace was gone before anything was committed in it, and was created again from {from}"))
    }

    fn create_workspace(&self, order: &WorkspaceOptions<'_>, stop: &CancellationToken) -> Result<(), ErrorData> {
        // The result of its setup is gone, too.
        self.workspace_store.workspace_file().remove().map_err(|error| fault_error(&error))?;
        let owner = WorkspaceOwner::from_key(self.workspace_store.key());
        workspace::create_workspace(order, &owner, &|_| (), stop).map(drop).map_err(|error| workspace_error(&error))
    }

    /// Puts it on its run's branch if it has none and the source has one: an earlier process was killed in between.
    fn ensure_branch(&self, tip: Option<Id>) -> Result<(), ErrorData> {
        let Some(tip) = tip else { return Ok(()) };
        let branch = format!("runner/{}", self.source.run);
        let workspace = Repository::discover_own_config(self.workspace_path).map_err(|error| git_error(&error))?;
        if workspace.find_branch_tip(&branch).map_err(|error| git_error(&error))?.is_some() {
            return Ok(());
        }
        workspace.start_branch(&branch, &tip).map_err(|error| git_error(&error))
    }

    /// Explains why there is nothing to recreate it from.
    fn loss_error(&self, repository: &Repository, lost: WorkspaceLoss) -> Result<ErrorData, ErrorData> {
        // The last commit may still exist without a branch.
        let tip = match self.read_published()?.map(|published| published.to) {
            Some(tip) if repository.has_object(&tip).map_err(|error| git_error(&error))? => Some(tip.to_string()),
            _ => None,
        };
        let paths = [self.source.path.to_string(), self.workspace_path.display().to_string()];
        let reason = lost.stop_reason(&self.source.run, paths.each_ref().map(String::as_str), tip.as_deref());
        let error = ErrorData::new(ErrorKind::Held, reason.message.clone());
        Ok(reason.next_steps().into_iter().fold(error, ErrorData::hint))
    }
}

fn fault_error(error: &(dyn std::error::Error + 'static)) -> ErrorData {
    ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error)
}
