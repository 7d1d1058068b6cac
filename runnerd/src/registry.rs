//! The registry: which repositories there are, and the worker of each.
//!
//! One owner behind a mailbox; what a worker does is not known here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::view::RepoView;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::causes::in_one_line;
use crate::store::{RepoFile, Store, StoreError, repo_id};
use crate::worker::{self, Handle, Means};

/// Requests that may wait.
const MAILBOX: usize = 256;

/// Asks the registry.
#[derive(Debug, Clone)]
pub struct Registry {
    mailbox: mpsc::Sender<Request>,
}

#[derive(Debug)]
enum Request {
    List(oneshot::Sender<Vec<Handle>>),
    Find(String, oneshot::Sender<Option<Handle>>),
    Register { common_dir: PathBuf, path: PathBuf, reply: oneshot::Sender<Result<Handle, ErrorData>> },
    Remove(String, oneshot::Sender<Result<RepoView, ErrorData>>),
}

/// Why the registry cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("reading the registered repositories")]
pub struct RegistryError(#[source] StoreError);

/// The task of the registry; ends when everything is to end and all workers have.
pub type Task = tokio::task::JoinHandle<()>;

impl Registry {
    /// Starts the workers of all registered repositories.
    pub fn open(state_folder: &Path, means: Means) -> Result<(Self, Task), RegistryError> {
        let (sender, mailbox) = mpsc::channel(MAILBOX);
        let mut owner =
            Owner { state_folder: state_folder.to_owned(), means, workers: BTreeMap::new(), tasks: JoinSet::new() };
        for store in Store::all(state_folder).map_err(RegistryError)? {
            owner.adopt(store);
        }
        Ok((Self { mailbox: sender }, tokio::spawn(owner.serve(mailbox))))
    }

    /// Returns every repository.
    pub async fn list(&self) -> Vec<Handle> {
        self.ask(Request::List).await.unwrap_or_default()
    }

    /// Returns the repository whose git folder this is, if it is registered.
    pub async fn find(&self, common_dir: &Path) -> Option<Handle> {
        let id = repo_id(common_dir);
        self.ask(|reply| Request::Find(id, reply)).await.flatten()
    }

    /// Returns the repository whose git folder this is, registering it if it is new.
    pub async fn register(&self, common_dir: &Path, path: &Path) -> Result<Handle, ErrorData> {
        let (common_dir, path) = (common_dir.to_owned(), path.to_owned());
        self.ask(|reply| Request::Register { common_dir, path, reply }).await.unwrap_or_else(|| Err(draining()))
    }

    /// Forgets a repository without a run under way.
    pub async fn remove(&self, id: &str) -> Result<RepoView, ErrorData> {
        self.ask(|reply| Request::Remove(id.to_owned(), reply)).await.unwrap_or_else(|| Err(draining()))
    }

    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(request(reply)).await.ok()?;
        answer.await.ok()
    }
}

fn draining() -> ErrorData {
    ErrorData::new(ErrorKind::Draining, "the daemon is going down").hint("runnerctl daemon status")
}

struct Owner {
    state_folder: PathBuf,
    means: Means,
    workers: BTreeMap<String, Handle>,
    tasks: JoinSet<()>,
}

impl Owner {
    async fn serve(mut self, mut mailbox: mpsc::Receiver<Request>) {
        // While workers come to their end they can still be found: a drain may take as long as an iteration.
        while !(self.is_ending() && self.tasks.is_empty()) {
            let (shutdown, drain) = (self.means.shutdown.clone(), self.means.drain.clone());
            tokio::select! {
                () = shutdown.cancelled(), if !self.is_ending() => {}
                () = drain.cancelled(), if !self.is_ending() => {}
                request = mailbox.recv() => match request {
                    Some(request) => self.handle(request),
                    None => break,
                },
                Some(ended) = self.tasks.join_next() => report(ended),
            }
        }
        // A drain may take as long as an iteration: what can be seen is shown until the last worker has ended.
        loop {
            tokio::select! {
                ended = self.tasks.join_next() => match ended {
                    Some(ended) => report(ended),
                    None => return,
                },
                Some(request) = mailbox.recv() => self.handle(request),
            }
        }
    }

    fn is_ending(&self) -> bool {
        self.means.shutdown.is_cancelled() || self.means.drain.is_cancelled()
    }

    fn handle(&mut self, request: Request) {
        // Whoever has stopped waiting needs no answer.
        match request {
            Request::List(reply) => drop(reply.send(self.workers.values().cloned().collect())),
            Request::Find(id, reply) => drop(reply.send(self.workers.get(&id).cloned())),
            Request::Register { common_dir, path, reply } => drop(reply.send(self.register(&common_dir, &path))),
            Request::Remove(id, reply) => drop(reply.send(self.remove(&id))),
        }
    }

    /// Starts the worker of a repository that a previous life has registered.
    fn adopt(&mut self, store: Store) {
        match store.load() {
            Ok(Some(file)) => self.start(store, file),
            Ok(None) => {}
            Err(error) => {
                let id = store.id();
                tracing::error!(repo = id, error = in_one_line(&error), "state not readable; repository left alone");
                let (handle, task) = worker::spawn_held(self.means.clone(), store);
                self.workers.insert(id, handle);
                self.tasks.spawn(task);
            }
        }
    }

    fn start(&mut self, store: Store, file: RepoFile) {
        let id = file.id.clone();
        let (handle, task) = worker::spawn(self.means.clone(), store, file);
        self.workers.insert(id, handle);
        self.tasks.spawn(task);
    }

    fn register(&mut self, common_dir: &Path, path: &Path) -> Result<Handle, ErrorData> {
        let id = repo_id(common_dir);
        if let Some(known) = self.workers.get(&id) {
            return Ok(known.clone());
        }
        if self.is_ending() {
            return Err(draining());
        }
        let store = Store::new(&self.state_folder, &id);
        let mut file = RepoFile {
            version: RepoFile::VERSION,
            id: id.clone(),
            common_dir: WirePath::from(common_dir),
            path: WirePath::from(path),
            confirmed: Vec::new(),
            runs: Vec::new(),
        };
        let saved = tokio::task::block_in_place(|| store.create().and_then(|()| store.save(&mut file)));
        saved.map_err(|error| ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(&error))?;
        self.start(store, file);
        self.workers.get(&id).cloned().ok_or_else(draining)
    }

    fn remove(&mut self, id: &str) -> Result<RepoView, ErrorData> {
        let Some(handle) = self.workers.get(id) else {
            return Err(
                ErrorData::new(ErrorKind::NotFound, "this repository is not registered").hint("runnerctl repos")
            );
        };
        let view = handle.status().repo.clone();
        if let Some(run) = view.queue.first() {
            let message = format!("run {} is {}", run.id, run.state);
            return Err(ErrorData::new(ErrorKind::WrongState, message).hint("runnerctl cancel"));
        }
        let store = Store::new(&self.state_folder, id);
        let folder = store.folder();
        std::fs::remove_dir_all(folder)
            .map_err(|error| ErrorData::new(ErrorKind::Fault, format!("removing {}: {error}", folder.display())))?;
        self.workers.remove(id);
        Ok(view)
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a worker ended by a bug; its repository is not driven until the daemon starts anew");
    }
}
