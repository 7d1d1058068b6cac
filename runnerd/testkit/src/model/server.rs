//! The service as a test uses it: a separate thread, a port on loopback, and a list of received requests.

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

/// A running model service; it stops on drop.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<SharedState>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// State shared by the test and the server.
#[derive(Debug, Default)]
pub(super) struct SharedState {
    state: Mutex<ServerState>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct ServerState {
    script: ReplyScript,
    requests: Vec<ModelRequest>,
    other_requests: Vec<String>,
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

    /// Starts the service on a port; 0 selects a free one.
    ///
    /// # Errors
    ///
    /// Fails if the port is not available.
    pub fn listen(port: u16, script: ReplyScript) -> io::Result<Self> {
        let shared = Arc::new(SharedState::default());
        shared.lock_state().script = script;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", port)))?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let server_side = Arc::clone(&shared);
        let thread = thread::Builder::new().name("model".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = http::accept_connections(listener, server_side) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the base URL for clients, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Replaces the script.
    pub fn set_script(&self, script: ReplyScript) {
        self.shared.lock_state().script = script;
    }

    /// Returns the requests to the model so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.shared.lock_state().requests.clone()
    }

    /// Returns method and path of every other request.
    pub fn other_requests(&self) -> Vec<String> {
        self.shared.lock_state().other_requests.clone()
    }

    /// Waits for more than `known` requests and returns the additional ones; empty if `limit` passes first.
    ///
    /// # Panics
    ///
    /// Panics if the server has panicked.
    pub fn wait_beyond(&self, known: usize, limit: Duration) -> Vec<ModelRequest> {
        let state = self.shared.lock_state();
        let waited = self.shared.arrived.wait_timeout_while(state, limit, |state| state.requests.len() <= known);
        let (state, _) = waited.expect("BUG: the server panicked");
        state.requests.get(known..).unwrap_or_default().to_vec()
    }

    /// Waits until the given number of requests have come, and returns them.
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

    /// Records a request that is not for the model.
    pub(super) fn record_other(&self, aside: String) {
        self.lock_state().other_requests.push(aside);
    }

    /// Records a request and takes its reply; the returned number makes ids in replies unique.
    pub(super) fn record_request(&self, request: ModelRequest) -> (ModelReply, usize) {
        let mut state = self.lock_state();
        let reply = state.script.take_reply(&request);
        state.requests.push(request);
        self.arrived.notify_all();
        (reply, state.requests.len())
    }
}
