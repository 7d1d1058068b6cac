//! `events.subscribe`: the stream of events, filtered for one subscriber.

use std::sync::Arc;

use jsonrpsee::PendingSubscriptionSink;
use jsonrpsee::core::{SubscriptionResult, async_trait};
use protocol::api::EventApiServer;
use protocol::event::{Event, EventKind};
use protocol::request::Subscription;
use serde_json::value::RawValue;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Api;

#[async_trait]
impl EventApiServer for Api {
    async fn subscribe_events(&self, pending: PendingSubscriptionSink, params: Subscription) -> SubscriptionResult {
        // The stream is joined before the answer: nothing that happens after it is missed.
        let mut subscribed = self.events.subscribe(params.since);
        let mut output = params.output.then(|| self.events.subscribe_output());
        let repo = match &params.path {
            Some(path) => match self.repository(path.as_path()).await {
                Ok(repository) => Some(crate::store::repo_id(repository.common_dir())),
                Err(error) => {
                    pending.reject(error).await;
                    return Ok(());
                }
            },
            None => None,
        };
        let sink = pending.accept().await?;
        let wanted = |event: &Event| event.repo.is_none() || repo.is_none() || event.repo == repo;
        if subscribed.lagged {
            sink.send(message(&self.lagged())?).await?;
        }
        for event in subscribed.missed.iter().filter(|event| wanted(event)) {
            sink.send(message(event)?).await?;
        }
        loop {
            let event = tokio::select! {
                () = sink.closed() => return Ok(()),
                // That the daemon goes down is an event too.
                () = self.shutdown.cancelled() => match subscribed.live.try_recv() {
                    Ok(event) => Ok(event),
                    Err(_) => return Ok(()),
                },
                event = subscribed.live.recv() => event,
                event = next_output(output.as_mut()) => Ok(event),
            };
            match event {
                Ok(event) if wanted(&event) => sink.send(message(&event)?).await?,
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => sink.send(message(&self.lagged())?).await?,
                Err(RecvError::Closed) => return Ok(()),
            }
        }
    }
}

impl Api {
    /// Tells a subscriber that it missed something, with the number of the last event there is.
    fn lagged(&self) -> Arc<Event> {
        let seq = self.events.last_seq();
        let time = crate::clock::now();
        Arc::new(Event { seq, time, repo: None, run: None, iter: None, kind: EventKind::Lagged })
    }
}

/// Waits for output, for ever if none was asked for; what was too fast for this subscriber is left out.
async fn next_output(output: Option<&mut Receiver<Arc<Event>>>) -> Arc<Event> {
    let Some(output) = output else { return std::future::pending().await };
    loop {
        match output.recv().await {
            Ok(event) => return event,
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

fn message(event: &Event) -> Result<Box<RawValue>, serde_json::Error> {
    serde_json::value::to_raw_value(event)
}
