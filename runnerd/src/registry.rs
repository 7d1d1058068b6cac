//! The registry: which repositories exist, and the worker of each.
//!
//! It has one owner behind a mailbox; what a worker does is not known here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::error::{ErrorData, ErrorKind};
use protocol::shell;
use protocol::view::RepoView;
use runner_os::error_chain::display_chain;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};

use crate::repo::sealed::StateDir;
use crate::store::{RepoFile, RepoStore, SourceRepo, StoreError, repo_id};
use crate::worker::{self, WorkerDeps, WorkerHandle};

/// Capacity of the mailbox.
const MAILBOX_CAPACITY: usize = 256;

/// Handle for requests to the registry.
#[derive(Debug, Clone)]
pub struct RepoRegistry {
    mailbox: mpsc::Sender<RegistryRequest>,
}

#[derive(Debug)]
enum RegistryRequest {
    List(oneshot::Sender<Vec<WorkerHandle>>),
    Find(String, oneshot::Sender<Option<WorkerHandle>>),
    Register(Box<RepoFile>, oneshot::Sender<Result<WorkerHandle, ErrorData>>),
    Remove(String, oneshot::Sender<Result<RepoView, ErrorData>>),
}

/// The registry cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("reading the registered repositories")]
pub struct RegistryError(#[source] StoreError);

/// The task of the registry; ends after shutdown, when all workers have ended.
pub type RegistryTask = tokio::task::JoinHandle<()>;

impl RepoRegistry {
    /// Starts the workers of all registered repositories.
    ///
    /// Of the isolated runs of one source, at most `max_per_source` are driven at once.
    pub fn open(
        vault: &StateDir,
        means: WorkerDeps,
        max_per_source: usize,
    ) -> Result<(Self, RegistryTask), RegistryError> {
        let (sender, mailbox) = mpsc::channel(MAILBOX_CAPACITY);
        let mut actor = RegistryActor::new(vault, means, max_per_source);
        for store in RepoStore::list_all(vault).map_err(RegistryError)? {
            actor.start_registered(store);
        }
        Ok((Self { mailbox: sender }, tokio::spawn(actor.serve(mailbox))))
    }

    /// Returns the handles of all repositories.
    pub async fn list(&self) -> Vec<WorkerHandle> {
        self.send_request(RegistryRequest::List).await.unwrap_or_default()
    }

    /// Returns the repository with this git folder, if it is registered.
    pub async fn find(&self, common_dir: &Path) -> Option<WorkerHandle> {
        let id = repo_id(common_dir);
        self.send_request(|reply| RegistryRequest::Find(id, reply)).await.flatten()
    }

    /// Returns the repository with this git folder, registering it if it is new.
    pub async fn register(&self, common_dir: &Path, path: &Path) -> Result<WorkerHandle, ErrorData> {
        self.register_file(RepoFile::new(common_dir, path)).await
    }

    /// Registers the workspace of an isolated run, with the commands confirmed in its source.
    pub async fn register_workspace(
        &self,
        common_dir: &Path,
        path: &Path,
        source: SourceRepo,
        confirmed: Vec<String>,
    ) -> Result<WorkerHandle, ErrorData> {
        self.register_file(RepoFile { source: Some(source), confirmed, ..RepoFile::new(common_dir, path) }).await
    }

    async fn register_file(&self, file: RepoFile) -> Result<WorkerHandle, ErrorData> {
        self.send_request(|reply| RegistryRequest::Register(Box::new(file), reply))
            .await
            .unwrap_or_else(|| Err(draining_error()))
    }

    /// Unregisters a repository, which must not have an active run.
    pub async fn remove(&self, id: &str) -> Result<RepoView, ErrorData> {
        self.send_request(|reply| RegistryRequest::Remove(id.to_owned(), reply))
            .await
            .unwrap_or_else(|| Err(draining_error()))
    }

    async fn send_request<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> RegistryRequest) -> Option<T> {
        let (reply, response) = oneshot::channel();
        self.mailbox.send(request(reply)).await.ok()?;
        response.await.ok()
    }
}

fn draining_error() -> ErrorData {
    ErrorData::new(ErrorKind::Draining, "the daemon is shutting down").hint("runnerctl daemon status")
}

struct RegistryActor {
    state_dir: StateDir,
    deps: WorkerDeps,
    workers: BTreeMap<String, WorkerHandle>,
    tasks: JoinSet<()>,
    /// The repository of each task.
    repositories: BTreeMap<Id, String>,
    /// Slots of isolated runs by the git folder of their source, as many as each source may have.
    source_slots: BTreeMap<PathBuf, Arc<Semaphore>>,
    max_per_source: usize,
}

impl RegistryActor {
    fn new(vault: &StateDir, means: WorkerDeps, max_per_source: usize) -> Self {
        Self {
            state_dir: vault.clone(),
            deps: means,
            workers: BTreeMap::new(),
            tasks: JoinSet::new(),
            repositories: BTreeMap::new(),
            source_slots: BTreeMap::new(),
            max_per_source,
        }
    }

    async fn serve(mut self, mut mailbox: mpsc::Receiver<RegistryRequest>) {
        // Workers can still be found while they are ending: a drain may take as long as an iteration.
        while !(self.is_stopping() && self.tasks.is_empty()) {
            let shutdown = self.deps.shutdown.clone();
            let drain = self.deps.drain.clone();
            tokio::select! {
                () = shutdown.cancelled(), if !self.is_stopping() => {}
                () = drain.cancelled(), if !self.is_stopping() => {}
                request = mailbox.recv() => match request {
                    Some(request) => self.handle_request(request),
                    None => break,
                },
                Some(ended) = self.tasks.join_next_with_id() => self.worker_ended(ended),
            }
        }
        // A drain may take as long as an iteration: reads are answered until the last worker has ended.
        loop {
            tokio::select! {
                ended = self.tasks.join_next_with_id() => match ended {
                    Some(ended) => self.worker_ended(ended),
                    None => return,
                },
                Some(request) = mailbox.recv() => self.handle_request(request),
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.deps.shutdown.is_cancelled() || self.deps.drain.is_cancelled()
    }

    fn handle_request(&mut self, request: RegistryRequest) {
        // A caller that has stopped waiting needs no answer.
        match request {
            RegistryRequest::List(reply) => drop(reply.send(self.workers.values().cloned().collect())),
            RegistryRequest::Find(id, reply) => drop(reply.send(self.workers.get(&id).cloned())),
            RegistryRequest::Register(file, reply) => drop(reply.send(self.register(*file))),
            RegistryRequest::Remove(id, reply) => drop(reply.send(self.remove(&id))),
        }
    }

    /// Starts the worker of a repository that an earlier daemon process has registered.
    fn start_registered(&mut self, store: RepoStore) {
        match store.take_over() {
            Ok(Some(file)) => self.start_worker(store, file),
            Ok(None) => {
                if let Err(error) = store.remove_leftover() {
                    tracing::warn!(
                        repo = store.id(),
                        error = display_chain(&error),
                        "failed to remove state without a repository"
                    );
                }
            }
            Err(error) => {
                let id = store.id().to_owned();
                tracing::error!(
                    repo = id,
                    error = display_chain(&error),
                    "failed to read the state of a repository; it is held"
                );
                let (handle, worker_loop) = worker::spawn_held(self.deps.clone(), store);
                self.spawn_worker(id, handle, worker_loop);
            }
        }
    }

    fn start_worker(&mut self, store: RepoStore, file: RepoFile) {
        let id = file.id.clone();
        let deps = self.deps_for(Some(&file));
        let (handle, worker_loop) = worker::spawn(deps, store, file);
        self.spawn_worker(id, handle, worker_loop);
    }

    /// Returns the dependencies of a worker: the isolated runs of one source share their slots.
    fn deps_for(&mut self, file: Option<&RepoFile>) -> WorkerDeps {
        let Some(source) = file.and_then(|file| file.source.as_ref()) else { return self.deps.clone() };
        let slots = self.source_slots.entry(source.common_dir.as_path().to_owned());
        let slots = slots.or_insert_with(|| Arc::new(Semaphore::new(self.max_per_source)));
        WorkerDeps { slots: self.deps.slots.with_source_limit(Arc::clone(slots)), ..self.deps.clone() }
    }

    fn spawn_worker(
        &mut self,
        id: String,
        handle: WorkerHandle,
        worker_loop: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = self.tasks.spawn(worker_loop);
        self.repositories.insert(task.id(), id.clone());
        self.workers.insert(id, handle);
    }

    /// Replaces a worker that ended because of a bug with one that holds the repository and says why.
    fn worker_ended(&mut self, result: Result<(Id, ()), JoinError>) {
        let task = result.as_ref().map_or_else(JoinError::id, |(task, ())| *task);
        let (Some(id), Err(error)) = (self.repositories.remove(&task), result) else { return };
        tracing::error!(repo = id, %error, "a worker panicked; its repository is held");
        if !self.is_stopping() && self.workers.contains_key(&id) {
            let store = RepoStore::new(&self.state_dir, &id);
            let deps = self.deps_for(store.read_repo_file().ok().flatten().as_ref());
            let (handle, worker_loop) = worker::spawn_after_bug(deps, store, &error.to_string());
            self.spawn_worker(id, handle, worker_loop);
        }
    }

    fn register(&mut self, mut file: RepoFile) -> Result<WorkerHandle, ErrorData> {
        let id = file.id.clone();
        if let Some(existing) = self.workers.get(&id) {
            return Ok(existing.clone());
        }
        if self.is_stopping() {
            return Err(draining_error());
        }
        let store = RepoStore::new(&self.state_dir, &id);
        let saved = tokio::task::block_in_place(|| store.create().and_then(|()| store.save_repo_file(&mut file)));
        saved.map_err(|error| ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(&error))?;
        self.start_worker(store, file);
        self.workers.get(&id).cloned().ok_or_else(draining_error)
    }

    fn remove(&mut self, id: &str) -> Result<RepoView, ErrorData> {
        let Some(handle) = self.workers.get(id) else {
            return Err(
                ErrorData::new(ErrorKind::NotFound, "this repository is not registered").hint("runnerctl repos")
            );
        };
        let view = handle.status().repo.clone();
        if let Some(run) = view.queue.first() {
            let message = format!("run {} {}", run.id, run.state.predicate());
            return Err(ErrorData::new(ErrorKind::WrongState, message).hint("runnerctl cancel"));
        }
        let is_of_source = |other: &&WorkerHandle| {
            other.source.as_ref().is_some_and(|source| repo_id(source.common_dir.as_path()) == id)
        };
        if let Some(workspace) = self.workers.values().find(is_of_source) {
            let run = workspace.source.as_ref().map(|source| source.run.as_str()).unwrap_or_default();
            let message = format!("{} has the isolated run {run}, whose workspace exists", view.path);
            let place = shell::quote(&view.path.to_string());
            return Err(ErrorData::new(ErrorKind::WrongState, message).hint(format!("runnerctl gc {place}")));
        }
        let removed = RepoStore::new(&self.state_dir, id).remove();
        removed.map_err(|error| ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(&error))?;
        self.workers.remove(id);
        Ok(view)
    }
}

#[cfg(test)]
mod tests {
    use protocol::event::EventKind;
    use protocol::words::RunStatus;
    use runner_core::run::RunRecord;
    use runner_process::{Inhibitor, Launcher};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::events::EventStream;
    use crate::log_redactor::LogRedactor;
    use crate::repo::seal::SealKey;
    use crate::worker::RunSlots;

    fn test_state_dir(home: &tempfile::TempDir) -> StateDir {
        StateDir::new(home.path().to_owned(), SealKey::random().unwrap())
    }

    fn test_deps() -> WorkerDeps {
        WorkerDeps {
            launcher: Launcher::from_current_exe(),
            events: EventStream::default(),
            inhibitor: Inhibitor::new(false),
            slots: RunSlots::new(1),
            shutdown: CancellationToken::new(),
            drain: CancellationToken::new(),
            upstream: None,
            redactor: LogRedactor::default(),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn repository_whose_worker_met_a_bug_is_held_and_the_others_are_not() {
        let home = tempfile::tempdir().unwrap();
        let mut actor = RegistryActor::new(&test_state_dir(&home), test_deps(), 2);
        let other = actor.register(RepoFile::new(Path::new("/other/.git"), Path::new("/other"))).unwrap();
        let broken = actor.register(RepoFile::new(Path::new("/broken/.git"), Path::new("/broken"))).unwrap().id;
        actor.spawn_worker(broken.clone(), actor.workers[&broken].clone(), async { panic!("a bug of today") });
        let ended = actor.tasks.join_next_with_id().await.expect("a task ends");
        actor.worker_ended(ended);
        let mut handle = actor.workers[&broken].clone();
        handle.wait_until_recovered().await;
        let repo = handle.status().repo.clone();
        assert_eq!(repo.path.as_path(), Path::new("/broken"));
        let held = repo.held.expect("it is held");
        assert!(held.message.contains("a bug of today"), "{held:?}");
        assert_eq!(other.status().repo.held, None);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_follows_the_run_of_a_worker_that_met_a_bug_is_told_of_the_hold() {
        let home = tempfile::tempdir().unwrap();
        let deps = test_deps();
        let mut events = deps.events.subscribe(None).live;
        let state_dir = test_state_dir(&home);
        let mut actor = RegistryActor::new(&state_dir, deps, 2);
        let broken = actor.register(RepoFile::new(Path::new("/broken/.git"), Path::new("/broken"))).unwrap().id;
        let store = RepoStore::new(&state_dir, &broken);
        let mut file = store.read_repo_file().unwrap().expect("it was registered");
        file.runs.push(RunRecord::queued("followed", Path::new("/broken").into(), jiff::Timestamp::UNIX_EPOCH));
        store.save_repo_file(&mut file).unwrap();
        actor.spawn_worker(broken.clone(), actor.workers[&broken].clone(), async { panic!("a bug of today") });
        let ended = actor.tasks.join_next_with_id().await.expect("a task ends");
        actor.worker_ended(ended);
        let reason = loop {
            let event = events.recv().await.expect("the stream continues");
            if let EventKind::RunState { state: RunStatus::Held, reason, .. } = &event.kind {
                assert_eq!((event.repo.as_deref(), event.run.as_deref()), (Some(broken.as_str()), Some("followed")));
                break reason.clone().expect("it says why");
            }
        };
        assert!(reason.message.contains("a bug of today"), "{reason:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn request_that_a_bug_leaves_without_an_answer_is_told_of_it() {
        let home = tempfile::tempdir().unwrap();
        let deps = test_deps();
        let (handle, worker_loop) = worker::spawn_held(deps.clone(), RepoStore::new(&test_state_dir(&home), "broken"));
        drop(worker_loop);
        let cancel = || handle.send_request(|reply| worker::WorkerMessage::Cancel { run: None, reply });
        assert_eq!(cancel().await.unwrap_err().kind, ErrorKind::Bug);
        deps.drain.cancel();
        assert_eq!(cancel().await.unwrap_err().kind, ErrorKind::Draining);
    }
}
