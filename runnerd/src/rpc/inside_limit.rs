//! Limits how many calls from inside iterations run at the same time: few, so that they do not block others.
//!
//! A permit is held until the work is done and the reply has been written. A caller that waits too long gets an error.

use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::server::MethodResponse;
use jsonrpsee::types::Request;
use protocol::error::{ErrorData, ErrorKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::middleware::{CallMiddleware, CallService};
use super::peer::{Peer, PeerRole};
use crate::call_context::InsideIteration;

/// Maximum number of calls from inside that are running, or whose replies are not read.
const MAX_INSIDE_CALLS: usize = 8;
/// How long a call from inside waits for its turn.
const WAIT_LIMIT: Duration = Duration::from_secs(10);

/// One of the permits for calls from inside.
#[derive(Debug, Clone)]
pub(super) struct InsidePermit {
    _permit: Arc<OwnedSemaphorePermit>,
}

/// Makes calls from inside take turns; a person's do not wait.
#[derive(Debug, Clone)]
pub(super) struct InsideLimit(Arc<Semaphore>);

impl Default for InsideLimit {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_INSIDE_CALLS)))
    }
}

impl InsideLimit {
    async fn acquire(&self) -> Option<InsidePermit> {
        let permit = timeout(WAIT_LIMIT, Arc::clone(&self.0).acquire_owned()).await.ok()?.ok()?;
        Some(InsidePermit { _permit: Arc::new(permit) })
    }
}

impl CallMiddleware for InsideLimit {
    fn call<'a, S: CallService>(
        &self,
        service: S,
        mut request: Request<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + use<'a, S> {
        let limit = self.clone();
        async move {
            if request.extensions.get::<Peer>().is_some_and(|peer| peer.role == PeerRole::Person) {
                return service.call(request).await;
            }
            let Some(permit) = limit.acquire().await else {
                return MethodResponse::error(request.id, busy_error());
            };
            request.extensions.insert(InsideIteration);
            request.extensions.insert(permit);
            service.call(request).await
        }
    }
}

fn busy_error() -> ErrorData {
    let message = "too many calls from inside iterations are in progress";
    ErrorData::new(ErrorKind::Busy, message).hint("read the replies, and ask again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_too_many_from_inside_waits_and_is_then_refused() {
        let limit = InsideLimit::default();
        let mut permits = Vec::new();
        for _ in 0..MAX_INSIDE_CALLS {
            permits.push(limit.acquire().await.expect("there is a place"));
        }
        let begin = tokio::time::Instant::now();
        assert!(limit.acquire().await.is_none());
        assert_eq!(begin.elapsed(), WAIT_LIMIT);
        let (next, ()) = tokio::join!(limit.acquire(), async { drop(permits.pop()) });
        assert!(next.is_some(), "the place of one that has ended");
        assert_eq!(busy_error().kind, ErrorKind::Busy);
    }
}
