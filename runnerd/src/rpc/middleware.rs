//! Middleware that wraps single calls: batches and notifications bypass it.
//!
//! What it does is in the modules that implement [`CallMiddleware`].

use jsonrpsee::core::middleware::{Batch, Notification, RpcServiceT};
use jsonrpsee::server::MethodResponse;
use jsonrpsee::types::Request;

/// The wrapped service.
pub(super) trait CallService:
    RpcServiceT<MethodResponse = MethodResponse, BatchResponse = MethodResponse, NotificationResponse = MethodResponse>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> CallService for S where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            BatchResponse = MethodResponse,
            NotificationResponse = MethodResponse,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

/// What a middleware does around a call.
pub(super) trait CallMiddleware: Clone + Send + Sync + 'static {
    /// Runs a call with `service`, or refuses it.
    fn call<'a, S: CallService>(
        &self,
        service: S,
        request: Request<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + use<'a, S, Self>;
}

/// A service with wrapped calls.
#[derive(Debug, Clone)]
pub(super) struct MiddlewareService<S, A> {
    service: S,
    middleware: A,
}

impl<S, A> MiddlewareService<S, A> {
    /// Wraps the calls of a service with `middleware`.
    pub(super) fn new(service: S, middleware: A) -> Self {
        Self { service, middleware }
    }
}

impl<S: CallService, A: CallMiddleware> RpcServiceT for MiddlewareService<S, A> {
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.middleware.call(self.service.clone(), request)
    }

    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.service.batch(batch)
    }

    fn notification<'a>(&self, notification: Notification<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.service.notification(notification)
    }
}
