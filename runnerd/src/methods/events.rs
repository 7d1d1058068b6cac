//! `events.subscribe`: the stream of events, filtered for one subscriber.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jsonrpsee::core::{SubscriptionResult, async_trait};
use jsonrpsee::{PendingSubscriptionSink, SubscriptionSink};
use protocol::api::EventApiServer;
use protocol::event::{Event, EventKind};
use protocol::request::Subscription;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::Api;

#[async_trait]
impl EventApiServer for Api {
    async fn subscribe_events(&self, pending: PendingSubscriptionSink, params: Subscription) -> SubscriptionResult {
        // The stream is joined before the answer: nothing that happens after it is missed.
        let mut subscribed = self.events.subscribe(params.since);
        let mut output = params.output.then(|| self.events.subscribe_output());
        let mut scope = match &params.path {
            Some(path) => match self.find_repository(path.as_path()).await {
                Ok(repository) => EventScope::for_repository(repository.common_dir()),
                Err(error) => {
                    pending.reject(error).await;
                    return Ok(());
                }
            },
            None => EventScope::All,
        };
        let sink = pending.accept().await?;
        if subscribed.lagged {
            self.send_event(&sink, &self.lagged_event()).await?;
        }
        for event in &subscribed.missed {
            if self.is_in_scope(&mut scope, event).await {
                self.send_event(&sink, event).await?;
            }
        }
        loop {
            let event = tokio::select! {
                () = sink.closed() => return Ok(()),
                // That the daemon goes down is an event too.
                () = self.shutdown.cancelled() => match subscribed.live.try_recv() {
                    Ok(event) => Ok(event),
                    Err(TryRecvError::Lagged(count)) => Err(RecvError::Lagged(count)),
                    Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(()),
                },
                event = subscribed.live.recv() => event,
                event = next_output(output.as_mut()) => Ok(event),
            };
            match event {
                Ok(event) => {
                    if self.is_in_scope(&mut scope, &event).await {
                        self.send_event(&sink, &event).await?;
                    }
                }
                Err(RecvError::Lagged(_)) => self.send_event(&sink, &self.lagged_event()).await?,
                Err(RecvError::Closed) => return Ok(()),
            }
        }
    }
}

/// The repositories whose events a subscriber wants.
enum EventScope {
    All,
    /// One, and its workspaces as they are found.
    Of {
        common_dir: PathBuf,
        within: BTreeSet<String>,
        beyond: BTreeSet<String>,
    },
}

impl EventScope {
    fn for_repository(common_dir: &Path) -> Self {
        let within = BTreeSet::from([crate::store::repo_id(common_dir)]);
        Self::Of { common_dir: common_dir.to_owned(), within, beyond: BTreeSet::new() }
    }
}

impl Api {
    /// Whether a subscriber wants an event. A repository that it has not heard of yet may be a workspace that was made
    /// since.
    async fn is_in_scope(&self, scope: &mut EventScope, event: &Event) -> bool {
        let (EventScope::Of { common_dir, within, beyond }, Some(repo)) = (scope, &event.repo) else { return true };
        if !within.contains(repo) && !beyond.contains(repo) {
            for worker in self.registry.list().await {
                let source = worker.source.as_ref().map(|source| source.common_dir.as_path());
                let known = if source == Some(common_dir) { &mut *within } else { &mut *beyond };
                known.insert(worker.id);
            }
        }
        within.contains(repo)
    }

    /// Sends a subscriber an event. One that takes none any more is not waited for when the daemon goes down.
    async fn send_event(&self, sink: &SubscriptionSink, event: &Event) -> SubscriptionResult {
        let message = serde_json::value::to_raw_value(event)?;
        tokio::select! {
            biased;
            sent = sink.send(message) => Ok(sent?),
            () = self.shutdown.cancelled() => Err("the subscriber takes no events".into()),
        }
    }

    /// Tells a subscriber that it missed something, with the number of the last event there is.
    fn lagged_event(&self) -> Arc<Event> {
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
