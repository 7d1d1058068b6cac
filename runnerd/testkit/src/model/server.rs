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
use super::reply::Reply;
use super::request::Request;
use super::script::Script;
use crate::PATIENCE;

/// A model's service; it is gone where this is dropped.
pub struct Model {
    address: SocketAddr,
    stage: Arc<Stage>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the test and the server share.
#[derive(Debug, Default)]
pub(super) struct Stage {
    state: Mutex<State>,
    asked: Condvar,
}

#[derive(Debug, Default)]
struct State {
    script: Script,
    requests: Vec<Request>,
    asides: Vec<String>,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Model {
    /// Starts the service on a free port.
    ///
    /// # Panics
    ///
    /// Panics if it cannot listen.
    pub fn start(script: Script) -> Self {
        Self::listen(0, script).expect("a port of loopback can be had")
    }

    /// Starts the service on a port; 0 is a free one.
    ///
    /// # Errors
    ///
    /// Fails if the port cannot be had.
    pub fn listen(port: u16, script: Script) -> io::Result<Self> {
        let stage = Arc::new(Stage::default());
        stage.lock().script = script;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", port)))?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&stage);
        let thread = thread::Builder::new().name("model".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = http::accept(listener, shared) => {}
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
    pub fn play(&self, script: Script) {
        self.stage.lock().script = script;
    }

    /// Returns the requests for the model's word so far.
    pub fn requests(&self) -> Vec<Request> {
        self.stage.lock().requests.clone()
    }

    /// Returns method and path of whatever else was asked.
    pub fn asides(&self) -> Vec<String> {
        self.stage.lock().asides.clone()
    }

    /// Waits for more than so many requests, and returns those beyond; none if the time is over first.
    ///
    /// # Panics
    ///
    /// Panics if the server has.
    pub fn next(&self, known: usize, limit: Duration) -> Vec<Request> {
        let state = self.stage.lock();
        let waited = self.stage.asked.wait_timeout_while(state, limit, |state| state.requests.len() <= known);
        let (state, _) = waited.expect("BUG: the server panicked");
        state.requests.get(known..).unwrap_or_default().to_vec()
    }

    /// Waits until so many requests have come, and returns them.
    ///
    /// # Panics
    ///
    /// Panics if they do not come within [`PATIENCE`].
    pub fn asked(&self, count: usize) -> Vec<Request> {
        if count > 0 {
            self.next(count - 1, PATIENCE);
        }
        let requests = self.requests();
        assert!(requests.len() >= count, "{} requests instead of {count}", requests.len());
        requests
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Stage {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("BUG: the server panicked")
    }

    /// Records what is no request for the model's word.
    pub(super) fn note(&self, aside: String) {
        self.lock().asides.push(aside);
    }

    /// Records a request and takes its reply; the number tells replies apart.
    pub(super) fn take(&self, request: Request) -> (Reply, usize) {
        let mut state = self.lock();
        let reply = state.script.take(&request);
        state.requests.push(request);
        self.asked.notify_all();
        (reply, state.requests.len())
    }
}
