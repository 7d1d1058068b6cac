//! The methods of the control socket, by noun: each checks the request, asks a worker or reads state, and answers.
//!
//! The only module that knows both the wire and the daemon.

mod activity;
mod bisect;
mod branches;
mod config;
mod daemon;
mod delivery;
mod doctor;
mod events;
mod explain;
mod guard;
mod isolated;
mod iteration;
mod land;
mod land_candidates;
mod land_checkout;
mod memory;
mod missing_branch;
mod note;
mod question;
mod records;
mod recreate;
mod repo;
mod repo_order;
mod review;
mod run;
mod run_selector;
mod single_flight;
mod tree;
mod validate;
mod verify;
mod work_trees;
mod workspaces;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use jsonrpsee::{Extensions, RpcModule};
use protocol::api::{
    BisectApiServer, ConfigApiServer, DaemonApiServer, DeliveryApiServer, DoctorApiServer, EventApiServer,
    GuardApiServer, IterationApiServer, LandApiServer, MemoryApiServer, NoteApiServer, QuestionApiServer,
    RepoApiServer, ReviewApiServer, RunApiServer, TreeApiServer, VerifyApiServer,
};
use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::paths::Paths;
use protocol::reply::ChangeReply;
use protocol::request::AtRun;
use runner_core::files::change::ChangeRequest;
use runner_git::Repository;
use runner_process::{HostCapabilities, Inhibitor, Launcher};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use self::single_flight::ReadQuery;
pub use self::single_flight::SingleFlight;
use crate::admit::{self, no_run_error};
use crate::call_context::{ClientDisconnected, InsideIteration};
use crate::events::EventStream;
use crate::logging::FilterHandle;
use crate::registry::RepoRegistry;
use crate::repo::sealed::StateDir;
use crate::rpc::CallerCheck;
use crate::startup::DaemonProgram;
use crate::store::RepoStore;
use crate::worker::{ChangeOrder, PinnedRepo, WorkerHandle, WorkerMessage};

/// Dependencies of the methods.
#[derive(Debug, Clone)]
pub struct Api {
    /// The registered repositories.
    pub registry: RepoRegistry,
    /// The stream of events.
    pub events: EventStream,
    /// Checks the processes on whose behalf a client calls.
    pub callers: CallerCheck,
    /// Paths of the daemon's files and folders.
    pub paths: Arc<Paths>,
    /// The folder of the workspaces of isolated runs.
    pub workspaces: PathBuf,
    /// The private part of the state.
    pub state_dir: StateDir,
    /// How programs are contained.
    pub capabilities: Arc<HostCapabilities>,
    /// Whether runs only begin here and continue elsewhere: their programs are not looked up on this machine.
    pub is_start_only: bool,
    /// Starts programs.
    pub launcher: Launcher,
    /// What keeps the machine awake.
    pub inhibitor: Inhibitor,
    /// When the daemon started.
    pub started_at: Timestamp,
    /// The folder of the log; `None` if it goes to standard error.
    pub log: Option<PathBuf>,
    /// Controls what is logged.
    pub log_filter: FilterHandle,
    /// Whether a service manager has passed the socket, and keeps it.
    pub socket_passed: bool,
    /// The file that this daemon was started from, if known.
    pub program: Option<DaemonProgram>,
    /// Slow reads in progress.
    pub shared_reads: SingleFlight,
    /// Cancelled to end everything.
    pub shutdown: CancellationToken,
    /// Cancelled when nothing new may start.
    pub drain: CancellationToken,
}

impl Api {
    /// Registers all methods.
    pub fn into_methods(self) -> RpcModule<()> {
        let mut module = RpcModule::new(());
        let unique = "BUG: two methods have the same name";
        module.merge(DaemonApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(RepoApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(RunApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(TreeApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(MemoryApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(NoteApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(ReviewApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(GuardApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(QuestionApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(ConfigApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(IterationApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(DoctorApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(VerifyApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(BisectApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(LandApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(DeliveryApiServer::into_rpc(self.clone())).expect(unique);
        module.merge(EventApiServer::into_rpc(self)).expect(unique);
        module.register_method("daemon.hello", |_, (), _| refuse_development()).expect(unique);
        module
    }

    /// Finds the repository that contains a path, registered or not.
    ///
    /// While a run of it is live, its configuration may have been written by a session: then the captured one applies
    /// in all its work trees.
    async fn find_repository(&self, path: &Path) -> Result<Repository, ErrorData> {
        let path = path.to_owned();
        let state_dir = self.state_dir.clone();
        let workers = self.registry.list().await;
        let find_known = move |folders: &BTreeSet<&Path>| {
            let known = |worker| find_pinned(&state_dir, worker, |path| folders.contains(path));
            workers.iter().flat_map(known).collect()
        };
        let repository = run_blocking(move || admit::find_repository(&path, find_known)).await?;
        let worker = self.registry.find(repository.common_dir()).await;
        let live = worker.filter(|worker| self.is_unsettled(worker));
        let Some(worker) = live else { return Ok(repository) };
        let pinned = find_pinned(&self.state_dir, &worker, |path| !path.as_os_str().is_empty());
        run_blocking(move || Ok(pinned.iter().fold(repository, |repository, known| known.bind_repository(repository))))
            .await
    }

    /// Whether a session of a run may be at work, or has left something that was not inspected yet.
    fn is_unsettled(&self, worker: &WorkerHandle) -> bool {
        worker.is_driving() || RepoStore::new(&self.state_dir, &worker.id).journal().1.exists()
    }

    /// Runs a slow read in its turn; concurrent callers with the same question share the answer.
    ///
    /// The words must contain everything that determines the answer, except for the work tree.
    async fn read_shared<T: Clone + Send + Sync + 'static>(
        &self,
        extensions: &Extensions,
        repository: &Repository,
        query: &str,
        read: impl FnOnce(&CancellationToken) -> Result<T, ErrorData> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let ClientDisconnected(disconnected) = extensions.get().cloned().unwrap_or_default();
        let query = ReadQuery {
            repository: repository.common_dir().to_owned(),
            query: format!("{query} in {}", repository.work_dir().display()),
            from_inside: extensions.get::<InsideIteration>().is_some(),
        };
        self.shared_reads.run(query, &disconnected, read).await
    }

    /// Finds the worker of the repository that contains a path.
    async fn find_worker(&self, path: &Path) -> Result<(Repository, WorkerHandle), ErrorData> {
        let repository = self.find_repository(path).await?;
        let handle = self.registry.find(repository.common_dir()).await;
        let handle = handle.ok_or_else(|| no_run_error(repository.work_dir()))?;
        Ok((repository, handle))
    }
}

/// Returns the work trees of a repository's runs that `is_wanted` accepts: filtered first, since each costs a digest.
fn find_pinned(state_dir: &StateDir, worker: &WorkerHandle, is_wanted: impl Fn(&Path) -> bool) -> Vec<PinnedRepo> {
    let store = RepoStore::new(state_dir, &worker.id);
    let status = worker.status();
    let runs = status.run.iter().map(|run| &run.summary).chain(&status.repo.queue).map(|run| &run.path);
    let paths = std::iter::once(&status.repo.path).chain(runs).map(WirePath::as_path);
    let paths = paths.filter(|path| !path.as_os_str().is_empty() && is_wanted(path));
    paths.map(|path| PinnedRepo::for_work_tree(&store, path)).collect()
}

impl Api {
    /// Passes a person's request to the worker of the repository that contains a path.
    async fn submit_change(
        &self,
        at: AtRun,
        change: ChangeRequest,
        opened: Option<String>,
    ) -> Result<ChangeReply, ErrorData> {
        let at = self.resolve_exact_run(at, change.command()).await?;
        let (_, worker) = self.find_worker(at.path.as_path()).await?;
        let order = ChangeOrder { run: at.run, change, opened };
        worker.ask_or_tell(|reply| WorkerMessage::Change(Box::new(order), reply)).await
    }
}

/// Answers the first request of clients from development builds with an error that tells them to update, which is the
/// only answer they understand.
fn refuse_development() -> Result<(), ErrorData> {
    let message = "this client is of a development build, which this daemon does not speak to";
    Err(ErrorData::new(ErrorKind::ProtocolMismatch, message).hint("update runnerctl, and runner-ui with it"))
}

fn draining_error() -> ErrorData {
    ErrorData::new(ErrorKind::Draining, "the daemon is shutting down").hint("runnerctl daemon status")
}

/// Runs a blocking closure where blocking is allowed.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ErrorData> + Send + 'static,
) -> Result<T, ErrorData> {
    let bug = |error: tokio::task::JoinError| ErrorData::new(ErrorKind::Bug, format!("a request failed: {error}"));
    spawn_blocking(work).await.map_err(bug)?
}
