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
        // Subscribes before answering, so that nothing after the answer is missed.
        let mut subscription = self.events.subscribe(params.since);
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
        if subscription.lagged {
            self.send_event(&sink, &self.lagged_event()).await?;
        }
        for event in &subscription.backlog {
            if self.is_in_scope(&mut scope, event).await {
                self.send_event(&sink, event).await?;
            }
        }
        loop {
            let event = tokio::select! {
                () = sink.closed() => return Ok(()),
                // The shutdown of the daemon is an event too.
                () = self.shutdown.cancelled() => match subscription.live.try_recv() {
                    Ok(event) => Ok(event),
                    Err(TryRecvError::Lagged(count)) => Err(RecvError::Lagged(count)),
                    Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(()),
                },
                event = subscription.live.recv() => event,
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

/// The repositories whose events a subscriber receives.
enum EventScope {
    All,
    /// One repository, and its workspaces as they are discovered.
    Repository {
        common_dir: PathBuf,
        included: BTreeSet<String>,
        excluded: BTreeSet<String>,
    },
}

impl EventScope {
    fn for_repository(common_dir: &Path) -> Self {
        let included = BTreeSet::from([crate::store::repo_id(common_dir)]);
        Self::Repository { common_dir: common_dir.to_owned(), included, excluded: BTreeSet::new() }
    }
}

impl Api {
    /// Whether a subscriber receives an event. An unknown repository may be a workspace created since.
    async fn is_in_scope(&self, scope: &mut EventScope, event: &Event) -> bool {
        let (EventScope::Repository { common_dir, included, excluded }, Some(repo)) = (scope, &event.repo) else {
            return true;
        };
        if !included.contains(repo) && !excluded.contains(repo) {
            for worker in self.registry.list().await {
                let source = worker.source.as_ref().map(|source| source.common_dir.as_path());
                let matching = if source == Some(common_dir) { &mut *included } else { &mut *excluded };
                matching.insert(worker.id);
            }
        }
        included.contains(repo)
    }

    /// Sends a subscriber an event. During shutdown, a subscriber that takes none is not waited for.
    async fn send_event(&self, sink: &SubscriptionSink, event: &Event) -> SubscriptionResult {
        let message = serde_json::value::to_raw_value(event)?;
        tokio::select! {
            biased;
            sent = sink.send(message) => Ok(sent?),
            () = self.shutdown.cancelled() => Err("the subscriber takes no events".into()),
        }
    }

    /// Builds the event that tells a subscriber it missed something, with the number of the latest event.
    fn lagged_event(&self) -> Arc<Event> {
        let seq = self.events.last_seq();
        let time = runner_os::clock::now();
        Arc::new(Event { seq, time, repo: None, run: None, iter: None, kind: EventKind::Lagged })
    }
}

/// Waits for output, forever if the subscriber did not request it; output that was too fast for it is dropped.
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
