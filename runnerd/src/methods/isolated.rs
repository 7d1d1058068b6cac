//! Starts isolated runs: checks the request, reserves the id in the source, creates and registers the workspace, and
//! queues the run there. If that fails, everything is undone before the answer.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use protocol::error::{ErrorData, ErrorKind};
use protocol::event::EventKind;
use protocol::path::WirePath;
use protocol::reply::{CreatedWorkspace, StartReply};
use protocol::request::{AtPath, AtRun, CallerEnv, StartParams};
use protocol::shell;
use protocol::view::RunSummary;
use runner_config::{Patterns, WorkspaceKind};
use runner_core::run::{StartRequest, StartSpec};
use runner_git::{Id, Repository};
use runner_os::retryable::Retryable as _;
use tokio_util::sync::CancellationToken;

use super::run::{AdmittedRun, is_driven_elsewhere, is_session_active};
use super::run_selector::run_summary;
use super::{Api, run_blocking};
use crate::admit::{self, CarriedFile, IsolatedStart, StartConfig, StartPreconditions, git_error};
use crate::events::{EventStream, EventSubject};
use crate::isolation::{self, ReservedId};
use crate::repo::durable::{self, FileAccess};
use crate::store::{RepoStore, SourceRepo, StoreError, repo_id};
use crate::worker::{IdChoice, PinnedRepo, StartOrder, WorkerHandle, WorkerMessage, guard_files_at};
use crate::workspace::{self, WorkspaceError, WorkspaceOptions, WorkspaceOwner, WorkspaceProgress};

/// Maximum number of reported paths that are not taken along.
const MAX_NOT_TAKEN: usize = 50;

/// An isolated run that is being created.
struct WorkspaceCreation {
    source: Repository,
    /// Id of the source repository.
    repo: String,
    reservation: ReservedId,
    /// Where its workspace is, or will be.
    workspace_path: PathBuf,
    /// Whether a folder that belongs to this run may exist.
    is_created: Arc<AtomicBool>,
    base: Id,
    copy: Patterns,
    owner: WorkspaceOwner,
}

/// What the run begins with in its workspace.
struct InitialState {
    params: StartParams,
    carried_files: Vec<CarriedFile>,
    config: Option<String>,
    digest: String,
}

impl Api {
    /// Returns the isolated runs of the repository that contains a path.
    pub(super) async fn list_isolated_runs(&self, at: &AtPath) -> Vec<RunSummary> {
        let runs = self.isolated_runs_of(at.path.as_path()).await;
        runs.map(|(_, isolated)| isolated.iter().filter_map(run_summary).collect()).unwrap_or_default()
    }

    /// Resolves a request like [`Self::resolve_run`] if it names a run; otherwise it is about the work tree itself.
    pub(super) async fn resolve_named_run(&self, at: AtRun) -> Result<AtRun, ErrorData> {
        if at.run.is_some() { self.resolve_run(at, "config edit").await } else { Ok(at) }
    }

    /// Redirects a start that names an isolated run, without another goal, to the workspace of that run.
    pub(super) async fn redirect_to_isolated(&self, params: StartParams) -> Result<StartParams, ErrorData> {
        let Some(id) = params.id.as_ref().filter(|_| params.goal.is_none() && params.isolated != Some(false)) else {
            return Ok(params);
        };
        let Some((_, workers)) = self.isolated_runs_of(params.path.as_path()).await else { return Ok(params) };
        let mut known = workers.iter().filter_map(|worker| Some((worker, run_summary(worker)?)));
        let Some((worker, run)) = known.find(|(_, run)| run.id == *id) else { return Ok(params) };
        self.recreate_workspace(worker).await?;
        Ok(StartParams { path: run.path, isolated: None, base: None, ..params })
    }

    /// Whether a start requests an isolated run: explicitly, or by the repository's configuration.
    pub(super) async fn is_isolated(
        &self,
        repository: &Repository,
        params: &StartParams,
        start_config: Option<&StartConfig>,
    ) -> Result<bool, ErrorData> {
        let worker = self.registry.find(repository.common_dir()).await;
        if let Some(source) = worker.and_then(|worker| worker.source) {
            return if params.isolated == Some(true) { Err(single_run_error(&source)) } else { Ok(false) };
        }
        // A named run may exist already; it continues where it is.
        if let Some(taken) = start_config.filter(|_| params.id.is_none() || params.goal.is_some()) {
            return Ok(params.isolated.unwrap_or(taken.config.workspace.kind == WorkspaceKind::Isolated));
        }
        let repository = repository.clone();
        // The check of the start refuses an unreadable file.
        let kind = run_blocking(move || Ok(admit::read_config(&repository).map(|config| config.workspace.kind).ok()));
        Ok(match params.isolated {
            Some(isolated) => isolated,
            None => kind.await? == Some(WorkspaceKind::Isolated),
        })
    }

    /// Starts a run in its own workspace; `disconnected` is cancelled when the caller is gone.
    pub(super) async fn start_isolated(
        &self,
        repository: Repository,
        params: StartParams,
        start_config: Option<StartConfig>,
        disconnected: CancellationToken,
    ) -> Result<StartReply, ErrorData> {
        let common_dir = repository.common_dir().to_owned();
        let path = repository.work_dir().to_owned();
        let known = self.registry.find(&common_dir).await;
        let config = start_config.as_ref().map(|taken| taken.text.clone());
        let repository = self.pin_config(repository, known.as_ref(), params.confirmed).await?;
        let (isolated, commands, guard) = run_blocking({
            let is_source_active = known.as_ref().is_some_and(|worker| is_session_active(&worker.status(), &path))
                || is_driven_elsewhere(known.as_ref(), &common_dir);
            let offer = Arc::clone(&self.capabilities);
            let repo = repository.clone();
            let params = params.clone();
            let live = self.active_run_ids(known.as_ref(), &path).await;
            move || {
                let (isolated, commands) = admit::check_isolated(
                    &repo,
                    &params,
                    StartPreconditions {
                        is_session_active: is_source_active,
                        capabilities: Some(&offer),
                        goal_files: &[],
                    },
                    &live,
                    start_config.as_ref(),
                )?;
                let guard = guard_files_at(&repo, isolated.base, &commands.config);
                Ok((isolated, commands, guard))
            }
        })
        .await?;
        self.refuse_unconfirmed(&commands, params.confirmed, known.as_ref()).await?;
        self.check_agents(&commands, &params.env, &path).await?;
        let worker = self.registry.register(&common_dir, &path).await?;
        let copy = commands.config.workspace.copy.clone();
        let digest = commands.digest.clone();
        self.save_confirmation(&worker, AdmittedRun { repository, commands, env: CallerEnv::default() }).await?;
        let IsolatedStart { base, stem, carried_files, not_taken } = isolated;
        let creation = self.reserve_id(&worker, &path, &stem, base, copy).await?;
        let initial_state = InitialState { params, carried_files, config, digest };
        let created = self.create_run(&creation, &initial_state, disconnected).await;
        match created {
            Ok((reply, warnings)) => Ok(StartReply { guard, ..creation.into_reply(reply, not_taken, warnings) }),
            Err(error) => {
                self.undo_creation(creation).await;
                Err(error)
            }
        }
    }

    /// Returns the ids of the active runs of a repository.
    async fn active_run_ids(&self, own: Option<&WorkerHandle>, path: &Path) -> BTreeSet<String> {
        let isolated = self.list_isolated_runs(&AtPath { path: WirePath::from(path) }).await;
        let own_queue = own.map(|worker| worker.status().repo.queue.clone()).unwrap_or_default();
        isolated.into_iter().chain(own_queue).filter(|run| !run.state.is_terminal()).map(|run| run.id).collect()
    }

    /// Reserves an id in the source.
    async fn reserve_id(
        &self,
        worker: &WorkerHandle,
        path: &Path,
        stem: &str,
        base: Id,
        copy: Patterns,
    ) -> Result<WorkspaceCreation, ErrorData> {
        let mut known: Vec<String> = worker.list_runs().await.0.into_iter().map(|run| run.id).collect();
        let isolated = self.list_isolated_runs(&AtPath { path: WirePath::from(path) }).await;
        known.extend(isolated.into_iter().map(|run| run.id));
        let store = RepoStore::new(&self.state_dir, &worker.id);
        let pinned = PinnedRepo::for_work_tree(&store, path);
        let stem = stem.to_owned();
        let workspaces = self.workspaces.clone();
        let repo = worker.id.clone();
        run_blocking(move || {
            let source = pinned.open().map_err(|error| git_error(&error))?;
            let disk_error =
                |error: &dyn std::error::Error| ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error);
            durable::create_dir(&workspaces, FileAccess::Private).map_err(|error| disk_error(&error))?;
            let folder = workspaces.canonicalize().map_err(|error| disk_error(&error))?;
            let reservation = isolation::reserve_id(&source, store.key(), &stem, &known)?;
            let workspace_path = workspace::workspace_path(&folder, &repo, &reservation.run);
            let owner = WorkspaceOwner::from_key(store.key());
            Ok(WorkspaceCreation {
                source,
                repo,
                reservation,
                workspace_path,
                is_created: Arc::default(),
                base,
                copy,
                owner,
            })
        })
        .await
    }

    /// Creates the workspace, registers it and queues its run; returns further messages to report.
    async fn create_run(
        &self,
        creation: &WorkspaceCreation,
        initial_state: &InitialState,
        disconnected: CancellationToken,
    ) -> Result<(StartReply, Vec<String>), ErrorData> {
        let stop = self.shutdown.child_token();
        let created = {
            let _watch = cancel_when(disconnected.clone(), stop.clone());
            creation.create_workspace(&initial_state.carried_files, self.events.clone(), stop).await?
        };
        if disconnected.is_cancelled() {
            return Err(ErrorData::new(ErrorKind::Draining, "no client waits for this run any more"));
        }
        let (workspace, warnings) = created;
        let source = SourceRepo {
            common_dir: WirePath::from(creation.source.common_dir()),
            path: WirePath::from(creation.source.work_dir()),
            run: creation.reservation.run.clone(),
            nonce: creation.reservation.nonce.clone(),
        };
        let store = RepoStore::new(&self.state_dir, &repo_id(workspace.common_dir()));
        let env = initial_state.params.env.clone();
        let repository = workspace.clone();
        // Its worker reads this as soon as it exists.
        run_blocking(move || {
            let fault = |error: StoreError| ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(&error);
            store.create().map_err(fault)?;
            let pinned = PinnedRepo::for_work_tree(&store, repository.work_dir());
            pinned.pin(&repository).map_err(|error| git_error(&error))?;
            if env.0.is_empty() { Ok(()) } else { store.save_env(&env).map_err(fault) }
        })
        .await?;
        let confirmed = vec![initial_state.digest.clone()];
        let common_dir = workspace.common_dir();
        let path = workspace.work_dir();
        let worker = self.registry.register_workspace(common_dir, path, source, confirmed).await?;
        let order = creation.start_order(&initial_state.params, initial_state.config.clone());
        let reply = worker.send_request(|reply| WorkerMessage::Start(Box::new(order), reply)).await?;
        Ok((reply, warnings))
    }

    /// Undoes the creation of a run that failed; what cannot be undone now is undone at the next start.
    async fn undo_creation(&self, creation: WorkspaceCreation) {
        let registered = self
            .registry
            .list()
            .await
            .into_iter()
            .find(|worker| worker.source.as_ref().is_some_and(|source| source.nonce == creation.reservation.nonce));
        if let Some(worker) = registered
            && let Err(error) = self.registry.remove(&worker.id).await
        {
            tracing::warn!(
                run = creation.reservation.run,
                error = error.message,
                "a workspace without a run stays registered"
            );
            return;
        }
        let result = run_blocking(move || {
            // What existed before does not belong to this run.
            let result = if creation.is_created.load(Ordering::Acquire) {
                isolation::remove_workspace(
                    &creation.source,
                    &creation.reservation,
                    &creation.workspace_path,
                    &creation.owner,
                )
            } else {
                isolation::release_id(&creation.source, &creation.reservation)
            };
            result.map_err(|error| ErrorData::new(ErrorKind::Fault, error))
        });
        if let Err(error) = result.await {
            tracing::warn!(
                error = error.message,
                "failed to remove an unfinished isolated run; the next start tries again"
            );
        }
    }
}

impl WorkspaceCreation {
    /// Creates the workspace with the files taken along, reporting progress.
    async fn create_workspace(
        &self,
        carried_files: &[CarriedFile],
        events: EventStream,
        stop: CancellationToken,
    ) -> Result<(Repository, Vec<String>), ErrorData> {
        let source = self.source.clone();
        let workspace_path = self.workspace_path.clone();
        let copy = self.copy.clone();
        let base = self.base;
        let about = EventSubject { repo: Some(self.repo.clone()), run: Some(self.reservation.run.clone()), iter: None };
        let carried_files = carried_files.to_vec();
        let is_created = Arc::clone(&self.is_created);
        let owner = self.owner.clone();
        run_blocking(move || {
            let progress = |progress| events.publish_output(about.clone(), progress_event(progress));
            let order = WorkspaceOptions { source: &source, target_dir: &workspace_path, base, copy: &copy };
            let created = workspace::create_workspace(&order, &owner, &progress, &stop)
                .map_err(|error| workspace_error(&error))?;
            is_created.store(true, Ordering::Release);
            write_carried_files(&workspace_path, &carried_files)?;
            let workspace = Repository::discover_own_config(&workspace_path).map_err(|error| git_error(&error))?;
            let mut warnings = created.warnings;
            warnings.extend(isolation::low_disk_warning(&workspace_path));
            Ok((workspace, warnings))
        })
        .await
    }

    fn start_order(&self, params: &StartParams, config: Option<String>) -> StartOrder {
        let beginning = StartSpec {
            base: Some(self.base.to_string()),
            goal: params.goal.clone(),
            keep_tree: params.keep_tree,
            fork: false,
            config,
            id_stem: None,
        };
        let path = WirePath::from(self.workspace_path.as_path());
        let queue_only = params.queue_only;
        let goal = admit::new_goal_headline(params, &self.workspace_path);
        let start = StartRequest { path, goal, goal_file: None, start_spec: beginning, queue_only, is_begun: false };
        StartOrder { id: IdChoice::Given(self.reservation.run.clone()), start, refusal: None }
    }

    fn into_reply(self, reply: StartReply, not_taken: Vec<String>, warnings: Vec<String>) -> StartReply {
        let workspace = CreatedWorkspace {
            path: WirePath(self.workspace_path),
            base: self.base.to_string(),
            not_taken_count: not_taken.len() as u64,
            not_taken: not_taken.into_iter().take(MAX_NOT_TAKEN).collect(),
            warnings,
        };
        StartReply { workspace: Some(workspace), ..reply }
    }
}

/// Writes the files taken along from the caller's work tree.
pub(super) fn write_carried_files(root: &Path, files: &[CarriedFile]) -> Result<(), ErrorData> {
    let write_error = |path: &Path, error: &dyn std::error::Error| {
        ErrorData::new(ErrorKind::Fault, format!("writing {}: {error}", path.display())).caused_by(error)
    };
    for (name, bytes) in files {
        let path = root.join(name);
        match bytes {
            Some(bytes) => {
                let folder = Path::new(name).parent().unwrap_or(Path::new(""));
                durable::create_dir_below(root, folder, FileAccess::Repository)
                    .map_err(|error| write_error(&path, &error))?;
                durable::replace(&path, bytes, FileAccess::Repository).map_err(|error| write_error(&path, &error))?;
            }
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(write_error(&path, &error)),
                _ => {}
            },
        }
    }
    Ok(())
}

/// Cancels `stop` when `trigger` is cancelled, as long as the returned guard lives.
fn cancel_when(trigger: CancellationToken, stop: CancellationToken) -> tokio_util::task::AbortOnDropHandle<()> {
    tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
        trigger.cancelled().await;
        stop.cancel();
    }))
}

fn progress_event(progress: WorkspaceProgress) -> EventKind {
    let (stage, done, total) = match progress {
        WorkspaceProgress::Repository => ("history", 0, 0),
        WorkspaceProgress::Files => ("files", 0, 0),
        WorkspaceProgress::Counting { files } => ("counting", files, 0),
        WorkspaceProgress::Copying { files, total } => ("copying", files, total),
        WorkspaceProgress::Flushing => ("flushing", 0, 0),
    };
    EventKind::Workspace { stage: stage.to_owned(), done, total }
}

/// Converts an error in creating a workspace into a refusal.
pub(super) fn workspace_error(error: &WorkspaceError) -> ErrorData {
    let kind = match error {
        WorkspaceError::Git(error) => return git_error(error),
        WorkspaceError::PartialClone { .. }
        | WorkspaceError::AlreadyExists { .. }
        | WorkspaceError::TooManyFiles { .. } => ErrorKind::WrongState,
        WorkspaceError::Stopped => ErrorKind::Draining,
        WorkspaceError::Disk(_) | WorkspaceError::Io { .. } => ErrorKind::Fault,
    };
    let data = ErrorData::new(kind, error.to_string()).caused_by(error);
    error.remedy().into_iter().fold(data, protocol::error::ErrorData::hint)
}

/// Refuses to land in a workspace: its branches are its own, and no one else sees them.
pub(super) fn landing_error(source: &SourceRepo) -> ErrorData {
    let message = format!("this is the workspace of run {}, which lands in {}", source.run, source.path);
    let path = source.path.to_string();
    ErrorData::new(ErrorKind::WrongState, message).hint(shell::join_args([
        "runnerctl",
        "-C",
        &path,
        "land",
        &source.run,
    ]))
}

/// Refuses a second run in a workspace: only its own run is published.
pub(super) fn single_run_error(source: &SourceRepo) -> ErrorData {
    let message = format!("this is the workspace of run {}, and no other run can work in it", source.run);
    let path = shell::quote(&source.path.to_string());
    ErrorData::new(ErrorKind::WrongState, message).hint(format!("runnerctl -C {path} start --isolated -m TEXT"))
}
