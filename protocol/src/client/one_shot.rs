//! A client for a few requests, without its own tasks, threads or timers, and without subscriptions.
//!
//! The library's client has three tasks and a thread, which a command with a single request would start for nothing.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use jsonrpsee::client_transport::ws::{Receiver, Sender};
use jsonrpsee::core::client::{
    BatchResponse, ClientT, Error, ReceivedMessage, TransportReceiverT as _, TransportSenderT as _,
};
use jsonrpsee::core::params::BatchRequestBuilder;
use jsonrpsee::core::traits::ToRpcParams;
use jsonrpsee::types::{Id, Notification, Request, Response, ResponseSuccess};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::net::UnixStream;
use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;
use tokio_util::compat::Compat;

/// `step` waits for an iteration, whose budget may be hours.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_hours(24);

/// Both halves of a WebSocket over the daemon's socket.
pub(super) type TransportHalves = (Sender<Compat<UnixStream>>, Receiver<Compat<UnixStream>>);

/// A client for a few requests, which may be concurrent.
#[derive(Debug)]
pub struct OneShotClient {
    sender: Mutex<Sender<Compat<UnixStream>>>,
    /// Held by the request that currently receives, for itself and for the others.
    receiver: Mutex<Receiver<Compat<UnixStream>>>,
    pending: StdMutex<BTreeMap<u64, oneshot::Sender<Vec<u8>>>>,
    next: AtomicU64,
}

impl OneShotClient {
    pub(super) fn new((sender, receiver): TransportHalves) -> Self {
        let sender = Mutex::new(sender);
        let receiver = Mutex::new(receiver);
        Self { sender, receiver, pending: StdMutex::default(), next: AtomicU64::new(0) }
    }

    async fn send(&self, message: String) -> Result<(), Error> {
        self.sender.lock().await.send(message).await.map_err(|error| Error::Transport(error.into()))
    }

    async fn call(&self, method: &str, params: Option<Box<RawValue>>) -> Result<Vec<u8>, Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply_sender, mut reply_receiver) = oneshot::channel();
        self.lock_pending().insert(id, reply_sender);
        self.send(serde_json::to_string(&Request::borrowed(method, params.as_deref(), Id::Number(id)))?).await?;
        tokio::select! {
            biased;
            reply = &mut reply_receiver => reply.map_err(|_| Error::ServiceDisconnect),
            mut receiver = self.receiver.lock() => loop {
                match reply_receiver.try_recv() {
                    Ok(reply) => return Ok(reply),
                    Err(_) => self.dispatch_reply(receive(&mut receiver).await?)?,
                }
            },
        }
    }

    /// Passes a reply to the request that waits for it.
    fn dispatch_reply(&self, reply: Vec<u8>) -> Result<(), Error> {
        if let Id::Number(id) = serde_json::from_slice::<Response<&RawValue>>(&reply)?.id
            && let Some(reply_sender) = self.lock_pending().remove(&id)
        {
            // A request that was cancelled needs no reply.
            let _ = reply_sender.send(reply);
        }
        Ok(())
    }

    fn lock_pending(&self) -> MutexGuard<'_, BTreeMap<u64, oneshot::Sender<Vec<u8>>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn receive(receiver: &mut Receiver<Compat<UnixStream>>) -> Result<Vec<u8>, Error> {
    loop {
        match receiver.receive().await.map_err(|error| Error::Transport(error.into()))? {
            ReceivedMessage::Text(text) => return Ok(text.into_bytes()),
            ReceivedMessage::Bytes(bytes) => return Ok(bytes),
            ReceivedMessage::Pong => {}
        }
    }
}

impl ClientT for OneShotClient {
    async fn notification<Params: ToRpcParams + Send>(&self, method: &str, params: Params) -> Result<(), Error> {
        let params = params.to_rpc_params()?;
        self.send(serde_json::to_string(&Notification::new(method.into(), params))?).await
    }

    async fn request<R, Params>(&self, method: &str, params: Params) -> Result<R, Error>
    where
        R: DeserializeOwned,
        Params: ToRpcParams + Send,
    {
        let call = timeout(REQUEST_TIMEOUT, self.call(method, params.to_rpc_params()?));
        let reply = call.await.unwrap_or(Err(Error::RequestTimeout))?;
        let response: Response<&RawValue> = serde_json::from_slice(&reply)?;
        Ok(serde_json::from_str(ResponseSuccess::try_from(response)?.result.get())?)
    }

    /// Fails: the daemon does not support batches.
    async fn batch_request<'a, R>(&self, _batch: BatchRequestBuilder<'a>) -> Result<BatchResponse<'a, R>, Error>
    where
        R: DeserializeOwned + Debug + 'a,
    {
        Err(Error::Custom("batch requests are not supported".into()))
    }
}
