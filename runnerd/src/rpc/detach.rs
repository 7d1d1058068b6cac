//! Runs each call in its own task: a disconnecting client stops nothing halfway, and a panic becomes an error. A call
//! is notified when its caller is gone ([`ClientDisconnected`]), so that it can clean up.
//!
//! Batches are disabled in the server's configuration, because they would bypass this.

use jsonrpsee::server::MethodResponse;
use jsonrpsee::types::error::INTERNAL_ERROR_CODE;
use jsonrpsee::types::{ErrorObjectOwned, Id, Request};
use protocol::error::{ErrorData, ErrorKind};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::inside_limit::InsidePermit;
use super::middleware::{CallMiddleware, CallService};
use crate::call_context::ClientDisconnected;

/// Methods that only wait, or that belong to their connection: they end with it. Detached, they would pile up behind
/// clients that come and go.
const ENDS_WITH_CLIENT: &[&str] = &["run.step", "events.subscribe", "events.unsubscribe"];

/// Runs each call in its own task.
#[derive(Debug, Clone)]
pub(super) struct CallDetacher {
    /// Counts the calls in progress.
    pub(super) calls: TaskTracker,
}

impl CallMiddleware for CallDetacher {
    fn call<'a, S: CallService>(
        &self,
        service: S,
        request: Request<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + use<'a, S> {
        let mut request = to_owned_request(request);
        let disconnected = CancellationToken::new();
        request.extensions.insert(ClientDisconnected(disconnected.clone()));
        // Kept until the work is done, even without a caller, and then with the reply.
        let permit = request.extensions.remove::<InsidePermit>();
        let id = request.id.clone();
        let method = request.method.clone();
        let ends_with_client = ENDS_WITH_CLIENT.contains(&&*method);
        // The service is called inside the task: a handler that is not async panics already there.
        let task = self.calls.spawn(async move {
            let mut response = service.call(request).await;
            if let Some(place) = permit {
                response.extensions_mut().insert(place);
            }
            response
        });
        async move {
            let _waiting = disconnected.drop_guard();
            let outcome = if ends_with_client { AbortOnDropHandle::new(task).await } else { task.await };
            outcome.unwrap_or_else(|error| panic_response(id, &method, &error))
        }
    }
}

fn to_owned_request(request: Request<'_>) -> Request<'static> {
    let params = request.params.map(std::borrow::Cow::into_owned);
    let mut result = Request::owned(request.method.into_owned(), params, request.id.into_owned());
    result.extensions = request.extensions;
    result
}

fn panic_response(id: Id<'static>, method: &str, error: &JoinError) -> MethodResponse {
    tracing::error!(method, %error, "a request was not completed");
    let message = format!("the daemon has a bug: `{method}` did not come to its end");
    let refusal = ErrorData::new(ErrorKind::Bug, &message).hint("see the daemon's log");
    MethodResponse::error(id, ErrorObjectOwned::owned(INTERNAL_ERROR_CODE, message, Some(refusal)))
}
