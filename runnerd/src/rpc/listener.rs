//! Accepts connections and lets jsonrpsee serve them, until told to stop.
//!
//! The limits are here: how many connections, how large a message, how long a peer may not read. HTTP and WebSocket are
//! both served, so that `curl --unix-socket` works for inspection.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Response, StatusCode, Version};
use jsonrpsee::Methods;
use jsonrpsee::core::BoxError;
use jsonrpsee::server::middleware::rpc::{RpcService, RpcServiceBuilder};
use jsonrpsee::server::{
    BatchRequestConfig, HttpBody, HttpRequest, Server, ServerConfig, ServerHandle, StopHandle, TowerServiceBuilder,
    serve_with_graceful_shutdown, stop_channel,
};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::layer::util::{Identity, Stack};
use tower::{Layer, Service as _};

use super::access::{AccessCheck, RefusalReporter};
use super::backpressure::{CallTracker, ConnectionTable, PeerConnection};
use super::detach::CallDetacher;
use super::guarded_io::GuardedIo;
use super::inside_limit::InsideLimit;
use super::middleware::MiddlewareService;
use super::{BoundSocket, Peer, PeerRole};
use crate::events::EventStream;

/// Maximum number of connections, if the system allows the daemon that many.
const MAX_CONNECTIONS: usize = 1024;
/// How many of them processes inside iterations may have, so that they cannot lock a person out.
const MAX_AGENT_CONNECTIONS: usize = 64;
/// Maximum number of calls in progress per connection; beyond that it is not read from.
const MAX_CALLS: u32 = 32;
const MAX_AGENT_CALLS: u32 = 4;
/// A task tree may have 8 MiB, and more when it is escaped.
const MAX_RESPONSE_BYTES: u32 = 16 << 20;
/// Limits of a person's connection.
const PERSON_ALLOWANCE: ConnectionAllowance =
    ConnectionAllowance { subscriptions: 16, request_bytes: 1 << 20, messages: 256 };
/// Limits of a connection from inside an iteration: it only reads.
const AGENT_ALLOWANCE: ConnectionAllowance =
    ConnectionAllowance { subscriptions: 2, request_bytes: 256 << 10, messages: 16 };
const WRITE_STALL_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for the first call of a connection.
const FIRST_CALL_LIMIT: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Limits of a connection.
#[derive(Debug, Clone, Copy)]
struct ConnectionAllowance {
    subscriptions: u32,
    request_bytes: u32,
    /// Number of messages queued for a peer; beyond that its handlers wait.
    messages: u32,
}

/// Returns the number of connections for a process with this limit of open descriptors: half of it, and at most 1,024.
pub fn connection_limit(descriptors: u64) -> usize {
    usize::try_from(descriptors / 2).unwrap_or(MAX_CONNECTIONS).clamp(MAX_AGENT_CONNECTIONS + 1, MAX_CONNECTIONS)
}

/// What is served, and to how many connections.
#[derive(Debug)]
pub struct ServerOptions {
    /// Methods of the control socket.
    pub methods: Methods,
    /// Where refused calls of iterations are reported.
    pub events: EventStream,
    /// Maximum number of connections at the same time.
    pub connections: usize,
}

/// Serves the methods until `stop` is cancelled.
///
/// Then no new connections are accepted, running calls are answered, subscriptions end, and the socket is removed; that
/// takes at most 10 seconds.
///
/// # Panics
///
/// Panics outside of a tokio runtime.
pub fn serve(bound: BoundSocket, options: ServerOptions, stop: CancellationToken) -> ServeHandle {
    let ServerOptions { methods, events, connections } = options;
    let (stop_handle, server_handle) = stop_channel();
    let calls = TaskTracker::new();
    let layers = CallLayers {
        calls: calls.clone(),
        refusals: RefusalReporter::new(events),
        inside_limit: InsideLimit::default(),
    };
    let service = |allowance| build_service(connections, allowance, layers.clone());
    let acceptor = ConnectionAcceptor {
        protocol: ConnectionServer {
            methods,
            person_services: service(PERSON_ALLOWANCE),
            agent_services: service(AGENT_ALLOWANCE),
            stop_handle,
        },
        calls,
        connections: ConnectionTable::default(),
        slots: Arc::new(Semaphore::new(connections)),
        agent_slots: Arc::new(Semaphore::new(MAX_AGENT_CONNECTIONS)),
        uid: nix::unistd::getuid().as_raw(),
    };
    ServeHandle { task: tokio::spawn(acceptor.run(bound, server_handle, stop)) }
}

/// A running server.
#[derive(Debug)]
pub struct ServeHandle {
    task: JoinHandle<()>,
}

impl ServeHandle {
    /// Waits until the server has stopped and the socket is gone.
    pub async fn stopped(self) {
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the control socket's task failed");
        }
    }
}

/// Numbers its connections, and is therefore shared by all of a kind.
type RpcServices = TowerServiceBuilder<Stack<CallLayers, Identity>, Identity>;

fn build_service(connections: usize, allowance: ConnectionAllowance, layers: CallLayers) -> RpcServices {
    let config = ServerConfig::builder()
        .max_request_body_size(allowance.request_bytes)
        .max_response_body_size(MAX_RESPONSE_BYTES)
        .max_connections(u32::try_from(connections).unwrap_or(u32::MAX))
        .max_subscriptions_per_connection(allowance.subscriptions)
        .set_message_buffer_capacity(allowance.messages)
        .set_batch_request_config(BatchRequestConfig::Disabled)
        .build();
    let middleware = RpcServiceBuilder::new().layer(layers);
    Server::builder().set_config(config).set_rpc_middleware(middleware).to_service_builder()
}

/// What every call passes through: counting its waiting caller, access control, its turn, then its own task.
#[derive(Debug, Clone)]
struct CallLayers {
    calls: TaskTracker,
    refusals: RefusalReporter,
    inside_limit: InsideLimit,
}

impl Layer<RpcService> for CallLayers {
    type Service = MiddlewareService<
        MiddlewareService<MiddlewareService<MiddlewareService<RpcService, CallDetacher>, InsideLimit>, AccessCheck>,
        CallTracker,
    >;

    fn layer(&self, service: RpcService) -> Self::Service {
        let detached = MiddlewareService::new(service, CallDetacher { calls: self.calls.clone() });
        let limited = MiddlewareService::new(detached, self.inside_limit.clone());
        MiddlewareService::new(
            MiddlewareService::new(limited, AccessCheck { refusals: self.refusals.clone() }),
            CallTracker,
        )
    }
}

struct ConnectionAcceptor {
    protocol: ConnectionServer,
    calls: TaskTracker,
    connections: ConnectionTable,
    slots: Arc<Semaphore>,
    agent_slots: Arc<Semaphore>,
    uid: u32,
}

/// The places that a connection occupies, released with its stream.
type SlotPermits = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

impl ConnectionAcceptor {
    async fn run(self, bound: BoundSocket, server: ServerHandle, stop: CancellationToken) {
        let BoundSocket { listener, file: socket_file } = bound;
        if stop.run_until_cancelled(self.accept(&listener)).await.is_some() {
            tracing::error!("the control socket no longer accepts connections");
        }
        drop(listener);
        let calls = self.calls.clone();
        drop(self);
        // Fails only if no connection is left, which is what is wanted.
        let _ = server.stop();
        calls.close();
        let ended = async {
            server.stopped().await;
            calls.wait().await;
        };
        if timeout(STOP_LIMIT, ended).await.is_err() {
            tracing::warn!(calls = calls.len(), "calls or connections did not finish in time");
        }
        drop(socket_file);
    }

    async fn accept(&self, listener: &UnixListener) {
        let mut failing = false;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    failing = false;
                    let Some(place) = self.acquire_slot().await else { return };
                    self.admit_connection(stream, place);
                }
                // Out of descriptors or memory: connections wait in the kernel until some are free.
                Err(error) => {
                    if !failing {
                        tracing::warn!(%error, "failed to accept a connection; retrying");
                    }
                    failing = true;
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Waits for a place, closing the most silent connection if necessary; if none can be closed, waits until one ends.
    async fn acquire_slot(&self) -> Option<OwnedSemaphorePermit> {
        if self.slots.available_permits() == 0 && self.connections.close_idle() {
            tracing::debug!("closed an idle connection for a new one");
        }
        Arc::clone(&self.slots).acquire_owned().await.ok()
    }

    fn admit_connection(&self, stream: UnixStream, place: OwnedSemaphorePermit) {
        let peer = match Peer::from_stream(&stream) {
            Ok(peer) if peer.uid == self.uid => peer,
            Ok(peer) => return tracing::warn!(?peer, "refused a connection of another user"),
            Err(error) => return tracing::warn!(%error, "refused a connection without credentials"),
        };
        let agent_slot = match peer.role {
            PeerRole::Person => None,
            PeerRole::Agent => match Arc::clone(&self.agent_slots).try_acquire_owned() {
                Ok(place) => Some(place),
                Err(_) => return tracing::warn!(?peer, "refused a connection: too many from iterations"),
            },
        };
        tracing::debug!(?peer, "connected");
        let connection =
            self.connections.add_connection(if peer.role == PeerRole::Person { MAX_CALLS } else { MAX_AGENT_CALLS });
        let io = GuardedIo::new(stream, WRITE_STALL_LIMIT, (place, agent_slot))
            .with_silence_limit(connection.clone(), FIRST_CALL_LIMIT);
        tokio::spawn(self.protocol.clone().serve_connection(io, peer, connection));
    }
}

/// The protocol of a connection.
#[derive(Clone)]
struct ConnectionServer {
    methods: Methods,
    person_services: RpcServices,
    agent_services: RpcServices,
    stop_handle: StopHandle,
}

impl ConnectionServer {
    async fn serve_connection(self, io: GuardedIo<SlotPermits>, peer: Peer, line: PeerConnection) {
        if let Err(error) = self.serve(io, peer, line).await {
            tracing::debug!(?peer, error, "connection ended");
        }
    }

    /// Returns a box: the compiler cannot prove that the bare future is `Send`.
    fn serve(
        self,
        io: GuardedIo<SlotPermits>,
        peer: Peer,
        connection: PeerConnection,
    ) -> Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>> {
        let stopped = self.stop_handle.clone().shutdown();
        let service = tower::service_fn(move |mut request: HttpRequest<Incoming>| {
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(connection.clone());
            let Self { methods, person_services, agent_services, stop_handle } = self.clone();
            let services = if peer.role == PeerRole::Person { person_services } else { agent_services };
            async move {
                // Counting calls in progress relies on replies being sent one after the other.
                if request.version() > Version::HTTP_11 {
                    let refusal = Response::builder().status(StatusCode::HTTP_VERSION_NOT_SUPPORTED);
                    return Ok(refusal.body(HttpBody::empty())?);
                }
                services.build(methods, stop_handle).call(request).await
            }
        });
        Box::pin(serve_with_graceful_shutdown(io, service, stopped))
    }
}
