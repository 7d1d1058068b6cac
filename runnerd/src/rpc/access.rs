//! A peer from inside an iteration may read, not steer (SPEC 9, P11).
//!
//! An explained refusal instead of a closed socket: an agent that calls the runner by mistake learns what
//! it may do. A guard rail, not a boundary: see `docs/security.md`.

use jsonrpsee::core::middleware::{Batch, Notification, RpcServiceT};
use jsonrpsee::server::MethodResponse;
use jsonrpsee::types::Request;
use protocol::error::{ErrorData, ErrorKind};

use super::{Peer, PeerRole};

/// The methods that change nothing. Any other one is refused to a peer from inside an iteration, one that
/// is added later too.
pub const READING: &[&str] = &[
    "config.get",
    "daemon.hello",
    "daemon.info",
    "events.subscribe",
    "events.unsubscribe",
    "iteration.get",
    "iteration.list",
    "iteration.log",
    "repo.list",
    "run.list",
    "run.queue",
    "run.status",
    "run.status_all",
    "tree.get",
    "tree.select",
    "tree.validate",
];

/// Middleware that refuses steering calls of agents.
#[derive(Debug, Clone)]
pub(super) struct Access<S> {
    service: S,
}

impl<S> Access<S> {
    /// Wraps a service.
    pub(super) fn new(service: S) -> Self {
        Self { service }
    }
}

impl<S> RpcServiceT for Access<S>
where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            BatchResponse = MethodResponse,
            NotificationResponse = MethodResponse,
        > + Clone
        + Send
        + Sync
        + 'static,
{
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let service = self.service.clone();
        async move {
            match refusal(&request) {
                None => service.call(request).await,
                Some(refusal) => MethodResponse::error(request.id, refusal),
            }
        }
    }

    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.service.batch(batch)
    }

    fn notification<'a>(&self, notification: Notification<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.service.notification(notification)
    }
}

fn refusal(request: &Request<'_>) -> Option<ErrorData> {
    // A request without a peer did not come through the listener: it gets the lesser right.
    let role = request.extensions.get::<Peer>().map_or(PeerRole::Agent, |peer| peer.role);
    if role == PeerRole::Person || READING.contains(&request.method_name()) {
        return None;
    }
    tracing::warn!(method = request.method_name(), "refused to a process inside an iteration");
    let message = format!("`{}` was called from inside an iteration, where only reading is allowed", request.method);
    Some(
        ErrorData::new(ErrorKind::InsideIteration, message).hint("answer as the prompt says; the runner does the rest"),
    )
}
