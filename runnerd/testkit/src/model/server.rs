//! The service as a test holds it: a thread of its own, a port of loopback, and a list of what was asked.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::http;
use super::reply::ModelReply;
use super::request::ModelRequest;
use super::script::ReplyScript;
use crate::PATIENCE;

/// A model's service; it is gone where this is dropped.
pub struct ModelServer {
    address: SocketAddr,
    stage: Arc<SharedState>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the test and the server share.
#[derive(Debug, Default)]
pub(super) struct SharedState {
    state: Mutex<ServerState>,
    asked: Condvar,
}

#[derive(Debug, Default)]
struct ServerState {
    script: ReplyScript,
    requests: Vec<ModelRequest>,
    asides: Vec<String>,
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("address", &self.address).finish_non_exhaustive()
    }
}

impl ModelServer {
    /// Starts the service on a free port.
    ///
    /// # Panics
    ///
    /// Panics if it cannot listen.
    pub fn start(script: ReplyScript) -> Self {
        Self::listen(0, script).expect("a port of loopback can be had")
    }

    /// Starts the service on a port; 0 is a free one.
    ///
    /// # Errors
    ///
    /// Fails if the port cannot be had.
    pub fn listen(port: u16, script: ReplyScript) -> io::Result<Self> {
        let stage = Arc::new(SharedState::default());
        stage.lock_state().script = script;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", port)))?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&stage);
        let thread = thread::Builder::new().name("model".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = http::accept_connections(listener, shared) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, stage, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the address that clients are given, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Replaces the script.
    pub fn set_script(&self, script: ReplyScript) {
        self.stage.lock_state().script = script;
    }

    /// Returns the requests for the model's word so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.stage.lock_state().requests.clone()
    }

    /// Returns method and path of whatever else was asked.
    pub fn other_requests(&self) -> Vec<String> {
        self.stage.lock_state().asides.clone()
    }

    /// Waits for more than so many requests, and returns those beyond; none if the time is over first.
    ///
    /// # Panics
    ///
    /// Panics if the server has.
    pub fn wait_beyond(&self, known: usize, limit: Duration) -> Vec<ModelRequest> {
        let state = self.stage.lock_state();
        let waited = self.stage.asked.wait_timeout_while(state, limit, |state| state.requests.len() <= known);
        let (state, _) = waited.expect("BUG: the server panicked");
        state.requests.get(known..).unwrap_or_default().to_vec()
    }

    /// Waits until so many requests have come, and returns them.
    ///
    /// # Panics
    ///
    /// Panics if they do not come within [`PATIENCE`].
    pub fn wait_for_requests(&self, count: usize) -> Vec<ModelRequest> {
        if count > 0 {
            self.wait_beyond(count - 1, PATIENCE);
        }
        let requests = self.requests();
        assert!(requests.len() >= count, "{} requests instead of {count}", requests.len());
        requests
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl SharedState {
    fn lock_state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().expect("BUG: the server panicked")
    }

    /// Records what is no request for the model's word.
    pub(super) fn record_other(&self, aside: String) {
        self.lock_state().asides.push(aside);
    }

    /// Records a request and takes its reply; the number tells replies apart.
    pub(super) fn record_request(&self, request: ModelRequest) -> (ModelReply, usize) {
        let mut state = self.lock_state();
        let reply = state.script.take_reply(&request);
        state.requests.push(request);
        self.asked.notify_all();
        (reply, state.requests.len())
    }
}
