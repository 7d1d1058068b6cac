//! The registry: which repositories there are, and the worker of each.
//!
//! One owner behind a mailbox; what a worker does is not known here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::error::{ErrorData, ErrorKind};
use protocol::view::RepoView;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};

use crate::causes::in_one_line;
use crate::repo::kept::Vault;
use crate::store::{RepoFile, Source, Store, StoreError, repo_id};
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
    Register(Box<RepoFile>, oneshot::Sender<Result<Handle, ErrorData>>),
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
    ///
    /// Of the isolated runs of one source, at most `per_source` are driven at once.
    pub fn open(vault: &Vault, means: Means, per_source: usize) -> Result<(Self, Task), RegistryError> {
        let (sender, mailbox) = mpsc::channel(MAILBOX);
        let mut owner = Owner::new(vault, means, per_source);
        for store in Store::all(vault).map_err(RegistryError)? {
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
        self.enter(RepoFile::new(common_dir, path)).await
    }

    /// Registers the workspace of an isolated run, with what its source has confirmed.
    pub async fn register_workspace(
        &self,
        (common_dir, path): (&Path, &Path),
        source: Source,
        confirmed: Vec<String>,
    ) -> Result<Handle, ErrorData> {
        self.enter(RepoFile { source: Some(source), confirmed, ..RepoFile::new(common_dir, path) }).await
    }

    async fn enter(&self, file: RepoFile) -> Result<Handle, ErrorData> {
        self.ask(|reply| Request::Register(Box::new(file), reply)).await.unwrap_or_else(|| Err(draining()))
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
    ErrorData::new(ErrorKind::Draining, "the daemon is shutting down").hint("runnerctl daemon status")
}

struct Owner {
    vault: Vault,
    means: Means,
    workers: BTreeMap<String, Handle>,
    tasks: JoinSet<()>,
    /// Whose task it is.
    repositories: BTreeMap<Id, String>,
    /// Places of isolated runs by the git folder of their source, and how many each has.
    places: BTreeMap<PathBuf, Arc<Semaphore>>,
    per_source: usize,
}

impl Owner {
    fn new(vault: &Vault, means: Means, per_source: usize) -> Self {
        Self {
            vault: vault.clone(),
            means,
            workers: BTreeMap::new(),
            tasks: JoinSet::new(),
            repositories: BTreeMap::new(),
            places: BTreeMap::new(),
            per_source,
        }
    }

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
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended),
            }
        }
        // A drain may take as long as an iteration: what can be seen is shown until the last worker has ended.
        loop {
            tokio::select! {
                ended = self.tasks.join_next_with_id() => match ended {
                    Some(ended) => self.ended(ended),
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
            Request::Register(file, reply) => drop(reply.send(self.register(*file))),
            Request::Remove(id, reply) => drop(reply.send(self.remove(&id))),
        }
    }

    /// Starts the worker of a repository that a previous life has registered.
    fn adopt(&mut self, store: Store) {
        match store.take_over() {
            Ok(Some(file)) => self.start(store, file),
            Ok(None) => {
                if let Err(error) = store.remove_leftover() {
                    tracing::warn!(repo = store.id(), error = in_one_line(&error), "state of no repository stays");
                }
            }
            Err(error) => {
                let id = store.id().to_owned();
                tracing::error!(repo = id, error = in_one_line(&error), "state not readable; repository left alone");
                self.employ(id, worker::spawn_held(self.means.clone(), store));
            }
        }
    }

    fn start(&mut self, store: Store, file: RepoFile) {
        let id = file.id.clone();
        let means = self.means_of(Some(&file));
        self.employ(id, worker::spawn(means, store, file));
    }

    /// Returns what a worker works with: the isolated runs of one source have their places in common.
    fn means_of(&mut self, file: Option<&RepoFile>) -> Means {
        let Some(source) = file.and_then(|file| file.source.as_ref()) else { return self.means.clone() };
        let places = self.places.entry(source.common_dir.as_path().to_owned());
        let places = places.or_insert_with(|| Arc::new(Semaphore::new(self.per_source)));
        Means { slots: self.means.slots.within(Arc::clone(places)), ..self.means.clone() }
    }

    fn employ(&mut self, id: String, (handle, life): (Handle, impl Future<Output = ()> + Send + 'static)) {
        let task = self.tasks.spawn(life);
        self.repositories.insert(task.id(), id.clone());
        self.workers.insert(id, handle);
    }

    /// Puts another worker in the place of one that a bug has ended: it holds the repository and says why.
    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let task = ended.as_ref().map_or_else(JoinError::id, |(task, ())| *task);
        let (Some(id), Err(error)) = (self.repositories.remove(&task), ended) else { return };
        tracing::error!(repo = id, %error, "a worker ended by a bug; its repository is held");
        if !self.is_ending() && self.workers.contains_key(&id) {
            let store = Store::new(&self.vault, &id);
            let means = self.means_of(store.read().ok().flatten().as_ref());
            self.employ(id, worker::spawn_after_bug(means, store, &error.to_string()));
        }
    }

    fn register(&mut self, mut file: RepoFile) -> Result<Handle, ErrorData> {
        let id = file.id.clone();
        if let Some(known) = self.workers.get(&id) {
            return Ok(known.clone());
        }
        if self.is_ending() {
            return Err(draining());
        }
        let store = Store::new(&self.vault, &id);
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
        let is_its =
            |other: &&Handle| other.source.as_ref().is_some_and(|source| repo_id(source.common_dir.as_path()) == id);
        if let Some(workspace) = self.workers.values().find(is_its) {
            let run = workspace.source.as_ref().map(|source| source.run.as_str()).unwrap_or_default();
            let message = format!("{} has the isolated run {run}, whose workspace is there", view.path);
            return Err(ErrorData::new(ErrorKind::WrongState, message).hint("runnerctl gc"));
        }
        let removed = Store::new(&self.vault, id).remove();
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
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::events::Events;
    use crate::hidden::Hidden;
    use crate::process::{Inhibitor, Launcher};
    use crate::repo::seal::Key;
    use crate::worker::Slots;

    fn vault(home: &tempfile::TempDir) -> Vault {
        Vault::new(home.path().to_owned(), Key::random().unwrap())
    }

    fn means() -> Means {
        Means {
            launcher: Launcher::this_binary(),
            events: Events::default(),
            inhibitor: Inhibitor::new(false),
            slots: Slots::new(1),
            shutdown: CancellationToken::new(),
            drain: CancellationToken::new(),
            upstream: None,
            hidden: Hidden::default(),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn repository_whose_worker_met_a_bug_is_held_and_the_others_are_not() {
        let home = tempfile::tempdir().unwrap();
        let mut owner = Owner::new(&vault(&home), means(), 2);
        let other = owner.register(RepoFile::new(Path::new("/other/.git"), Path::new("/other"))).unwrap();
        let broken = owner.register(RepoFile::new(Path::new("/broken/.git"), Path::new("/broken"))).unwrap().id;
        owner.employ(broken.clone(), (owner.workers[&broken].clone(), async { panic!("a bug of today") }));
        let ended = owner.tasks.join_next_with_id().await.expect("a task ends");
        owner.ended(ended);
        let mut handle = owner.workers[&broken].clone();
        handle.looked().await;
        let repo = handle.status().repo.clone();
        assert_eq!(repo.path.as_path(), Path::new("/broken"));
        let held = repo.held.expect("it is held");
        assert!(held.message.contains("a bug of today"), "{held:?}");
        assert_eq!(other.status().repo.held, None);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_follows_the_run_of_a_worker_that_met_a_bug_is_told_of_the_hold() {
        let home = tempfile::tempdir().unwrap();
        let means = means();
        let mut heard = means.events.subscribe(None).live;
        let vault = vault(&home);
        let mut owner = Owner::new(&vault, means, 2);
        let broken = owner.register(RepoFile::new(Path::new("/broken/.git"), Path::new("/broken"))).unwrap().id;
        let store = Store::new(&vault, &broken);
        let mut file = store.read().unwrap().expect("it was registered");
        file.runs.push(RunRecord::queued("followed", Path::new("/broken").into(), jiff::Timestamp::UNIX_EPOCH));
        store.save(&mut file).unwrap();
        owner.employ(broken.clone(), (owner.workers[&broken].clone(), async { panic!("a bug of today") }));
        let ended = owner.tasks.join_next_with_id().await.expect("a task ends");
        owner.ended(ended);
        let reason = loop {
            let event = heard.recv().await.expect("the stream goes on");
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
        let means = means();
        let (handle, life) = worker::spawn_held(means.clone(), Store::new(&vault(&home), "broken"));
        drop(life);
        let ask = || handle.ask(|reply| worker::Message::Cancel { run: None, reply });
        assert_eq!(ask().await.unwrap_err().kind, ErrorKind::Bug);
        means.drain.cancel();
        assert_eq!(ask().await.unwrap_err().kind, ErrorKind::Draining);
    }
}
