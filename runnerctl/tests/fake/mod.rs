//! A stand-in for the daemon: it sends prepared replies, and records requests.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use jsonrpsee::RpcModule;
use jsonrpsee::core::to_json_raw_value;
use jsonrpsee::server::{Server, StopHandle, serve, stop_channel};
use jsonrpsee::types::ErrorObjectOwned;
use protocol::error::ErrorData;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::sync::watch;

/// The reply of a method.
type MethodReply = Result<Value, ErrorData>;

/// What the daemon does for each subscription: the events it sends, and the state of the run after them.
#[derive(Clone)]
pub(crate) struct EventScript {
    /// The events.
    pub(crate) events: Vec<Value>,
    /// The reply of `run.status` after them.
    pub(crate) status: Value,
    /// Whether the daemon exits and comes back for the next chapter.
    pub(crate) dies: bool,
}

struct FakeDaemonState {
    replies: HashMap<&'static str, MethodReply>,
    asked: Vec<(&'static str, Value)>,
    story: Vec<EventScript>,
}

/// The daemon.
pub(crate) struct FakeDaemon {
    _runtime: tokio::runtime::Runtime,
    folder: TempDir,
    state: Arc<Mutex<FakeDaemonState>>,
}

const METHODS: [&str; 12] = [
    "daemon.handshake",
    "config.get",
    "delivery.describe",
    "delivery.feedback",
    "land.run",
    "run.list",
    "run.start",
    "run.status",
    "run.status_all",
    "tree.get",
    "tree.select",
    "iteration.list",
];

impl FakeDaemon {
    /// Starts a daemon that only answers `daemon.handshake`.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("s");
        let handshake = json!({
            "version": "0.1.0", "api_version": 1, "pid": 1, "started_at": "2026-01-01T00:00:00Z",
            "socket": socket, "state_folder": "/state", "containment": "walk", "repositories": 0, "running": 0,
            "draining": false, "log_filter": "info", "containment_missing": [], "outdated": false, "socket_passed": false,
            "sleep": {"inhibited": false, "why": null},
        });
        let replies = HashMap::from([
            ("daemon.handshake", Ok(handshake)),
            ("config.get", Ok(json!({"value": {}, "variables": []}))),
        ]);
        let state = Arc::new(Mutex::new(FakeDaemonState { replies, asked: Vec::new(), story: Vec::new() }));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let listener = runtime.block_on(async { UnixListener::bind(&socket) }).expect("binds");
        runtime.spawn(serve_connections(listener, Arc::clone(&state)));
        Self { _runtime: runtime, folder, state }
    }

    /// Sets the reply of a method.
    pub(crate) fn with_reply(self, method: &'static str, reply: Value) -> Self {
        self.state.lock().expect("not poisoned").replies.insert(method, Ok(reply));
        self
    }

    /// Makes a method return this error.
    pub(crate) fn with_error(self, method: &'static str, error: ErrorData) -> Self {
        self.state.lock().expect("not poisoned").replies.insert(method, Err(error));
        self
    }

    /// Sets what subscribers receive, one chapter per subscription.
    pub(crate) fn with_events(self, story: Vec<EventScript>) -> Self {
        self.state.lock().expect("not poisoned").story = story;
        self
    }

    /// Returns the parameters of each request of a method.
    pub(crate) fn requests_of(&self, method: &str) -> Vec<Value> {
        let state = self.state.lock().expect("not poisoned");
        state.asked.iter().filter(|(name, _)| *name == method).map(|(_, params)| params[0].clone()).collect()
    }

    /// Returns the client, set up for this daemon with an otherwise empty environment.
    pub(crate) fn client(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runnerctl"));
        command.arg("--no-spawn").arg("--socket").arg(self.socket()).args(args).stdin(Stdio::null());
        command.env_clear().env("HOME", self.folder.path()).env("LANG", "C.UTF-8").env("SECRET", "s");
        command.current_dir(self.folder.path());
        command
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }
}

/// Serves one daemon process after another on the same socket.
async fn serve_connections(listener: UnixListener, state: Arc<Mutex<FakeDaemonState>>) {
    loop {
        let (stop, handle) = stop_channel();
        let (death, mut dies) = watch::channel(false);
        let methods = rpc_module(&state, death);
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let (stream, _) = accepted.expect("accepts");
                    let service = Server::builder().to_service_builder().build(methods.clone(), StopHandle::clone(&stop));
                    tokio::spawn(serve(stream, service));
                }
                _ = dies.changed() => break,
            }
        }
        let _ = handle.stop();
    }
}

fn rpc_module(
    state: &Arc<Mutex<FakeDaemonState>>,
    death: watch::Sender<bool>,
) -> RpcModule<Arc<Mutex<FakeDaemonState>>> {
    let mut module = RpcModule::new(Arc::clone(state));
    for method in METHODS {
        let answer = move |params: jsonrpsee::types::Params<'_>, state: &Arc<Mutex<FakeDaemonState>>, _: &_| {
            let mut state = state.lock().expect("not poisoned");
            state.asked.push((method, params.parse().unwrap_or_default()));
            let reply = state.replies.get(method).cloned().unwrap_or_else(|| panic!("{method} was not expected"));
            reply.map_err(ErrorObjectOwned::from)
        };
        module.register_method(method, answer).expect("a new name");
    }
    let subscribe = move |_: jsonrpsee::types::Params<'static>,
                          pending: jsonrpsee::PendingSubscriptionSink,
                          state: Arc<Arc<Mutex<FakeDaemonState>>>,
                          _| {
        let death = death.clone();
        async move {
            let sink = pending.accept().await.expect("accepts");
            let Some(chapter) = next_event_script(&state) else { return sink.closed().await };
            for event in &chapter.events {
                sink.send(to_json_raw_value(event).expect("json")).await.expect("sends");
            }
            state.lock().expect("not poisoned").replies.insert("run.status", Ok(chapter.status));
            if chapter.dies {
                death.send_replace(true);
            } else {
                let lagged = json!({"seq": 99, "time": "2026-01-01T00:00:00Z", "repo": null, "run": null, "iter": null, "kind": "lagged"});
                sink.send(to_json_raw_value(&lagged).expect("json")).await.expect("sends");
            }
            sink.closed().await;
        }
    };
    module.register_subscription("events.subscribe", "event", "events.unsubscribe", subscribe).expect("a new name");
    module
}

fn next_event_script(state: &Arc<Mutex<FakeDaemonState>>) -> Option<EventScript> {
    let mut state = state.lock().expect("not poisoned");
    (!state.story.is_empty()).then(|| state.story.remove(0))
}

/// Returns the view of a run.
pub(crate) fn run_json(id: &str, state: &str) -> Value {
    json!({
        "id": id, "branch": format!("runner/{id}"), "path": "/p", "state": state, "reason": null,
        "queued_at": "2026-01-01T00:00:00Z", "ended_at": null,
    })
}

/// Returns the status of a repository with a run in this state.
pub(crate) fn status_json(id: &str, state: &str) -> Value {
    json!({
        "repo": {"id": "r", "path": "/p", "held": null, "queue": []},
        "run": {
            "summary": run_json(id, state), "wait_until": null, "phase": null, "node": null, "leaves_passed": 1,
            "leaves_total": 3, "iteration": 3, "elapsed_ms": 61_000, "baseline": "pass", "recent": [], "questions": 0,
            "usage": {"sessions": 2, "input_tokens": null, "cached_tokens": null, "output_tokens": null, "cost_micro_usd": null},
            "held_back": [], "reverted": [], "containment": "walk", "pending": null, "outages": [], "guard_changed": [],
            "secrets": [], "notices": [], "notes": [], "changes": [],
        },
    })
}

/// Returns what a client has printed, and how it exited.
pub(crate) fn output_text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    format!("{out}--- stderr\n{err}--- exit {}\n", output.status.code().unwrap_or(-1))
}
