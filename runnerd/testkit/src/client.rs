//! A blocking connection to the daemon, for tests that are not asynchronous themselves.

use std::path::Path;

use jsonrpsee::core::client::{Client as RpcClient, Subscription as Events};
use protocol::api::{EventApiClient as _, RunApiClient as _};
use protocol::client::{ConnectOptions, Connection};
use protocol::event::{Event, EventKind};
use protocol::path::WirePath;
use protocol::request::{AtPath, AtRun, Subscription};
use protocol::view::{RunSummary, RunView, StatusView};
use protocol::words::RunStatus;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::PATIENCE;

/// Open, idle connections.
#[derive(Debug)]
pub struct IdleConnections {
    _connections: Vec<Connection>,
    _runtime: Runtime,
}

impl IdleConnections {
    /// Opens the given number of connections to the daemon listening on a socket.
    ///
    /// # Panics
    ///
    /// Panics if one of them cannot be opened.
    pub fn open(socket: &Path, connections: usize) -> Self {
        let options = connect_options(socket);
        let runtime = build_runtime();
        let open = || runtime.block_on(Connection::open(&options)).expect("the daemon takes a connection");
        let connections = (0..connections).map(|_| open()).collect();
        Self { _connections: connections, _runtime: runtime }
    }
}

/// A connection and the runtime it runs on.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    runtime: Runtime,
}

impl Client {
    /// Connects to the daemon listening on a socket.
    ///
    /// # Panics
    ///
    /// Panics if no daemon listens.
    pub fn connect(socket: &Path) -> Self {
        Self::try_connect(socket).expect("the daemon can be reached")
    }

    /// Connects to the daemon listening on a socket; `None` if none is.
    pub fn try_connect(socket: &Path) -> Option<Self> {
        let runtime = build_runtime();
        let connection = runtime.block_on(Connection::open(&connect_options(socket))).ok()?;
        Some(Self { connection, runtime })
    }

    /// Returns the handle on which the generated client traits are called.
    pub fn rpc(&self) -> &RpcClient {
        self.connection.client()
    }

    /// Waits for the future of a request, which must complete within [`PATIENCE`].
    ///
    /// # Panics
    ///
    /// Panics if it does not.
    pub fn wait<F: Future>(&self, request: F) -> F::Output {
        let bounded = async { timeout(PATIENCE, request).await };
        self.runtime.block_on(bounded).expect("the daemon answers in time")
    }

    /// Returns the status of a repository.
    ///
    /// # Panics
    ///
    /// Panics if the request fails.
    pub fn status(&self, path: &Path) -> StatusView {
        self.wait(self.rpc().status(run_params(path))).expect("the daemon tells the state")
    }

    /// Returns the runs of a repository; `None` if the daemon does not know the repository.
    pub fn list(&self, path: &Path) -> Option<Vec<RunSummary>> {
        self.wait(self.rpc().list(AtPath { path: WirePath::from(path) })).ok()
    }

    /// Returns the repository's current run.
    ///
    /// # Panics
    ///
    /// Panics if it has none.
    pub fn run(&self, path: &Path) -> RunView {
        self.status(path).run.expect("the repository has a run")
    }

    /// Waits until the repository's run is in the given state.
    pub fn wait_for(&self, path: &Path, state: RunStatus) -> RunView {
        self.wait_until(path, |run| run.summary.state == state)
    }

    /// Waits until the repository's run satisfies a condition, which is checked again after every event.
    ///
    /// # Panics
    ///
    /// Panics if no event comes for [`PATIENCE`].
    pub fn wait_until(&self, path: &Path, is_wanted: impl Fn(&RunView) -> bool) -> RunView {
        let mut events = self.subscribe_events(path);
        loop {
            let run = self.status(path).run;
            match run {
                Some(run) if is_wanted(&run) => return run,
                run => self.next_event(&mut events).unwrap_or_else(|| panic!("nothing happens any more: {run:#?}")),
            };
        }
    }

    /// Waits until the repository's run satisfies a condition, or there is no run, or the daemon has exited.
    ///
    /// # Panics
    ///
    /// Panics if the daemon is alive and sends nothing for three times [`PATIENCE`].
    pub fn wait_while_alive(&self, path: &Path, is_wanted: impl Fn(&RunView) -> bool) -> Option<RunView> {
        let mut events = self.wait(self.rpc().subscribe_events(repo_subscription(path))).ok()?;
        loop {
            let run = self.wait(self.rpc().status(run_params(path))).ok()?.run?;
            if is_wanted(&run) {
                return Some(run);
            }
            // Longer than the longest pause between two attempts.
            self.runtime
                .block_on(async { timeout(3 * PATIENCE, events.next()).await })
                .expect("something happens")?
                .ok()?;
        }
    }

    /// Performs an action that makes the daemon announce its shutdown, and waits for the announcement.
    ///
    /// # Panics
    ///
    /// Panics if it never comes.
    pub fn act_until_stopping<T>(&self, act: impl FnOnce() -> T) -> T {
        let all = self.rpc().subscribe_events(Subscription::default());
        let mut events = self.wait(all).expect("the daemon sends its events");
        let result = act();
        while !matches!(self.next_event(&mut events).expect("the daemon ends").kind, EventKind::Stopping) {}
        result
    }

    fn subscribe_events(&self, path: &Path) -> Events<Event> {
        self.wait(self.rpc().subscribe_events(repo_subscription(path))).expect("the daemon sends its events")
    }

    fn next_event(&self, events: &mut Events<Event>) -> Option<Event> {
        let next = self.runtime.block_on(async { timeout(PATIENCE, events.next()).await }).ok()?;
        next?.ok()
    }
}

fn repo_subscription(path: &Path) -> Subscription {
    Subscription { path: Some(WirePath::from(path)), ..Subscription::default() }
}

fn run_params(path: &Path) -> AtRun {
    AtRun { path: WirePath::from(path), run: None }
}

fn build_runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime can be built")
}

fn connect_options(socket: &Path) -> ConnectOptions {
    ConnectOptions {
        socket: Some(socket.to_owned()),
        client_name: "testkit".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        ..ConnectOptions::default()
    }
}
