//! A server on its own socket, with scripted methods.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jsonrpsee::core::server::SubscriptionMessage;
use jsonrpsee::types::{ErrorObjectOwned, Params};
use jsonrpsee::{Extensions, PendingSubscriptionSink, RpcModule, SubscriptionCloseResponse};
use protocol::api::API_VERSION;
use protocol::client::{ConnectError, ConnectOptions, Connection};
use protocol::paths::Paths;
use protocol::view::{DaemonView, SleepView};
use protocol::words::Containment;
use runnerd::events::EventStream;
use runnerd::rpc::{BoundSocket, DaemonLocks, ServeHandle, ServerOptions, serve};
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Maximum number of connections: fewer than a daemon's, so that a test can open them all.
pub(crate) const CONNECTIONS: usize = 128;

/// What the methods report to a test.
#[derive(Default)]
pub(crate) struct MethodSignals {
    /// A slow call has started.
    pub(crate) begun: Notify,
    /// Number of slow calls that have started.
    pub(crate) slow: AtomicU32,
    /// A slow call may finish.
    pub(crate) go_on: Notify,
    /// A slow call has finished.
    pub(crate) finished: Notify,
    /// A waiting call was dropped.
    pub(crate) dropped: Notify,
    /// A subscription's task has ended.
    pub(crate) unsubscribed: Notify,
}

pub(crate) struct SocketServer {
    pub(crate) told: Arc<MethodSignals>,
    pub(crate) events: EventStream,
    pub(crate) paths: Paths,
    stop: CancellationToken,
    handle: ServeHandle,
    _locks: DaemonLocks,
    dir: TempDir,
}

impl SocketServer {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths_in(dir.path());
        Self::start_at(dir, paths)
    }

    pub(crate) fn of_api_version(api_version: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths_in(dir.path());
        let view = DaemonView { api_version, ..view(&paths) };
        Self::with_methods(dir, paths, |state| methods(state, view))
    }

    /// A daemon whose first method has another name, as in development builds.
    pub(crate) fn of_a_development_build() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths_in(dir.path());
        let view = view(&paths);
        Self::with_methods(dir, paths, |state| {
            let mut module = methods(state, view.clone());
            module.remove_method("daemon.handshake").unwrap();
            module.register_method("daemon.info", move |_, _, _| Ok::<_, ErrorObjectOwned>(view.clone())).unwrap();
            module
        })
    }

    pub(crate) fn start_at(dir: TempDir, paths: Paths) -> Self {
        let view = view(&paths);
        Self::with_methods(dir, paths, |state| methods(state, view))
    }

    fn with_methods(
        dir: TempDir,
        paths: Paths,
        methods: impl FnOnce(&Arc<MethodSignals>) -> RpcModule<MethodSignals>,
    ) -> Self {
        let locks = DaemonLocks::acquire(&paths).unwrap();
        let bound = BoundSocket::new(&paths, &locks).unwrap();
        let state = Arc::new(MethodSignals::default());
        let events = EventStream::default();
        let stop = CancellationToken::new();
        let served =
            ServerOptions { methods: methods(&state).into(), events: events.clone(), connections: CONNECTIONS };
        let handle = serve(bound, served, stop.clone());
        Self { told: state, events, paths, stop, handle, _locks: locks, dir }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.paths.socket
    }

    pub(crate) fn begin_to_stop(&self) {
        self.stop.cancel();
    }

    pub(crate) async fn stopped(self) -> TempDir {
        self.stop.cancel();
        self.handle.stopped().await;
        self.dir
    }

    pub(crate) async fn connect(&self) -> Connection {
        connect(&self.paths).await.unwrap()
    }
}

pub(crate) async fn connect(paths: &Paths) -> Result<Connection, ConnectError> {
    Connection::open(&options(paths)).await
}

pub(crate) fn options(paths: &Paths) -> ConnectOptions {
    ConnectOptions {
        socket: Some(paths.socket.clone()),
        client_name: "test".into(),
        version: "0".into(),
        ..ConnectOptions::default()
    }
}

pub(crate) fn paths_in(dir: &Path) -> Paths {
    Paths {
        socket: dir.join("run/runnerd.sock"),
        socket_named: true,
        state: dir.join("state"),
        config: dir.join("config.toml"),
    }
}

/// Reports that it was dropped.
struct OnDrop(Arc<MethodSignals>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

fn methods(state: &Arc<MethodSignals>, view: DaemonView) -> RpcModule<MethodSignals> {
    let mut module = RpcModule::from_arc(Arc::clone(state));
    module.register_method("daemon.handshake", move |_, _, _| Ok::<_, ErrorObjectOwned>(view.clone())).unwrap();
    module.register_method("run.status", |_, _, _| "fine").unwrap();
    module.register_method("run.pause", |params, _, _| params.one::<u32>()).unwrap();
    module.register_method("test.large", |_, _, _| "x".repeat(8 << 20)).unwrap();
    module.register_method("test.panic", |_, _, _| panic_on_purpose()).unwrap();
    let panics = |_, _, _| async { panic_on_purpose() };
    module.register_async_method("test.panic_later", panics).unwrap();
    let slow = |_, state: Arc<MethodSignals>, _| async move {
        state.slow.fetch_add(1, Ordering::SeqCst);
        state.begun.notify_one();
        state.go_on.notified().await;
        state.finished.notify_one();
        "slow"
    };
    module.register_async_method("test.slow", slow).unwrap();
    let step = |_, state: Arc<MethodSignals>, _| async move {
        let _told = OnDrop(Arc::clone(&state));
        state.begun.notify_one();
        std::future::pending::<()>().await;
    };
    module.register_async_method("run.step", step).unwrap();
    module.register_subscription("events.subscribe", "event", "events.unsubscribe", subscribe).unwrap();
    module
}

fn panic_on_purpose() -> &'static str {
    panic!("on purpose")
}

/// Sends one event; endlessly many if the parameter is `true`.
async fn subscribe(
    params: Params<'static>,
    pending: PendingSubscriptionSink,
    state: Arc<MethodSignals>,
    _: Extensions,
) -> SubscriptionCloseResponse {
    let busy = params.one().unwrap_or(false);
    let item = SubscriptionMessage::from(serde_json::value::to_raw_value(&"x".repeat(64 << 10)).unwrap());
    if let Ok(sink) = pending.accept().await {
        while sink.send(item.clone()).await.is_ok() && busy {}
        sink.closed().await;
    }
    state.unsubscribed.notify_one();
    SubscriptionCloseResponse::None
}

fn view(paths: &Paths) -> DaemonView {
    DaemonView {
        version: "0".into(),
        api_version: API_VERSION,
        pid: std::process::id(),
        started_at: jiff::Timestamp::UNIX_EPOCH,
        socket: (&*paths.socket).into(),
        state_folder: (&*paths.state).into(),
        containment: Containment::Walk,
        containment_missing: Vec::new(),
        repositories: 0,
        running: 0,
        draining: false,
        log_filter: "info".into(),
        log: None,
        program: None,
        outdated: false,
        socket_passed: false,
        sleep: SleepView::default(),
    }
}
