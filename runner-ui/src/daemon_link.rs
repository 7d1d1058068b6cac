//! Keeps a connection to the daemon, reconnecting when it is lost, and forwards events to the hub.
//!
//! If this machine's daemon shuts down in order and no successor follows, the server ends, too. A daemon on another
//! machine never ends the server; it is retried as long as the server runs.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jsonrpsee::core::client::Client;
use protocol::api::EventApiClient as _;
use protocol::client::{self, ConnectError, ConnectOptions, Connection, EventStream};
use protocol::event::{Event, EventKind};
use protocol::request::Subscription;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::hub::{EventHub, EventId, HubMessage};
use crate::wire::Notice;

/// How long to wait for the successor of a daemon that shut down in order, as in an update.
const SUCCESSOR_TIMEOUT: Duration = Duration::from_secs(5);

/// State of the connection to the daemon.
#[derive(Debug, Clone, Default)]
pub(crate) enum DaemonStatus {
    /// No connection was attempted yet.
    #[default]
    Untried,
    /// No daemon has answered yet.
    NeverAnswered,
    /// Connected.
    Connected(Arc<Connection>),
    /// The connection was lost.
    Disconnected {
        /// When it was lost.
        since: Timestamp,
    },
    /// Connecting failed for a reason worth reporting: another version, or a problem reaching another machine.
    Unreachable(Arc<ConnectError>),
}

/// Keeps a connection until the task is aborted. Cancels `stop` when this machine's daemon ends without a successor.
pub(crate) fn spawn_relay(
    options: ConnectOptions,
    hub: EventHub,
    stop: CancellationToken,
) -> watch::Receiver<DaemonStatus> {
    let (status_sender, status_receiver) = watch::channel(DaemonStatus::Untried);
    let is_remote = options.host.is_some();
    let events = EventStream::new(options, Subscription { path: None, since: Some(1), output: false });
    let mut relay = EventRelay {
        events,
        hub,
        status: status_sender,
        is_remote,
        output: None,
        is_stopping: false,
        is_socket_activated: false,
    };
    tokio::spawn(async move {
        match relay.events.connect().await {
            Ok(connection) => relay.on_answer(connection),
            Err(error) => relay.on_unreachable(error),
        }
        while let Some(news) = relay.next_news().await {
            relay.forward(news);
        }
        stop.cancel();
    });
    status_receiver
}

/// Forwards from the connection to the hub.
struct EventRelay {
    events: EventStream,
    hub: EventHub,
    status: watch::Sender<DaemonStatus>,
    /// Whether the daemon is on another machine.
    is_remote: bool,
    /// The task that forwards output.
    output: Option<AbortHandle>,
    /// Whether the daemon has announced its shutdown.
    is_stopping: bool,
    /// Whether connecting starts a daemon (socket activation).
    is_socket_activated: bool,
}

impl EventRelay {
    /// Waits for the next update; `None` after the daemon has shut down in order without a successor.
    async fn next_news(&mut self) -> Option<client::StreamUpdate> {
        let has_stopped = self.is_stopping && !self.is_remote && self.events.connection().is_none();
        if !has_stopped {
            return Some(self.events.next().await);
        }
        // If a service manager owns the socket, connecting to look for a successor would restart a daemon that the user
        // has just stopped.
        if self.is_socket_activated {
            return None;
        }
        timeout(SUCCESSOR_TIMEOUT, self.events.wait_for_connection()).await.ok().map(client::StreamUpdate::Connected)
    }

    fn forward(&mut self, news: client::StreamUpdate) {
        match news {
            client::StreamUpdate::Connected(connection) => self.on_answer(connection),
            client::StreamUpdate::Event(event) if event.kind == EventKind::Lagged => self.resync(event.seq),
            client::StreamUpdate::Event(event) => {
                self.is_stopping |= event.kind == EventKind::Stopping;
                self.hub.publish_event(*event);
            }
            client::StreamUpdate::Unreadable => {
                self.hub.broadcast(HubMessage::Resync(new_notice("an event is not known here")));
            }
            client::StreamUpdate::Disconnected => self.on_lost(),
            client::StreamUpdate::Unreachable(error) => self.on_unreachable(error),
        }
    }

    /// Handles a new connection and reports it to the hub.
    fn on_answer(&mut self, connection: Arc<Connection>) {
        self.set_connection(connection);
        self.hub.broadcast(HubMessage::DaemonBack(new_notice("a daemon answers")));
    }

    /// Handles a new connection; a different daemon numbers its events from the start.
    fn set_connection(&mut self, connection: Arc<Connection>) {
        let epoch = connection.daemon().started_at.as_millisecond();
        if self.hub.last_id().is_none_or(|last| last.epoch != epoch) {
            self.hub.restart_after(EventId { epoch, seq: 0 });
            self.is_stopping = false;
        }
        self.is_socket_activated = connection.daemon().socket_passed;
        self.output = Some(self.spawn_output_relay(&connection));
        self.status.send_replace(DaemonStatus::Connected(connection));
    }

    fn on_lost(&mut self) {
        if let Some(output) = self.output.take() {
            output.abort();
        }
        self.status.send_replace(DaemonStatus::Disconnected { since: Timestamp::now() });
        self.hub.broadcast(HubMessage::DaemonGone(new_notice("the daemon went away")));
    }

    /// Stores the reason, unless it is only that no daemon is listening.
    fn on_unreachable(&self, error: ConnectError) {
        if self.is_remote
            || matches!(error, ConnectError::ProtocolMismatch { .. } | ConnectError::DevelopmentBuild { .. })
        {
            self.hub.broadcast(HubMessage::DaemonGone(new_notice("no daemon can be talked to")));
            self.status.send_replace(DaemonStatus::Unreachable(Arc::new(error)));
        } else if self.is_untried() {
            self.status.send_replace(DaemonStatus::NeverAnswered);
        }
    }

    fn is_untried(&self) -> bool {
        matches!(*self.status.borrow(), DaemonStatus::Untried)
    }

    fn resync(&self, seq: u64) {
        if let Some(last) = self.hub.last_id() {
            self.hub.restart_after(EventId { seq, ..last });
            self.hub.broadcast(HubMessage::Resync(new_notice("some events are lost")));
        }
    }

    /// Forwards output while a page is subscribed to it.
    fn spawn_output_relay(&self, connection: &Arc<Connection>) -> AbortHandle {
        let hub = self.hub.clone();
        let connection = Arc::clone(connection);
        tokio::spawn(async move {
            let mut lookers = hub.watch_output_subscribers();
            while lookers.wait_for(|count| *count > 0).await.is_ok() {
                tokio::select! {
                    () = relay_output(connection.client(), &hub) => return,
                    _ = lookers.wait_for(|count| *count == 0) => {}
                }
            }
        })
        .abort_handle()
    }
}

async fn relay_output(client: &Client, hub: &EventHub) {
    while client.is_connected() {
        let subscription = Subscription { path: None, since: None, output: true };
        let Ok(mut events) = client.subscribe_events(subscription).await else { return };
        while let Some(event) = events.next().await {
            if let Ok(event @ Event { kind: EventKind::Output { .. } | EventKind::Activity(_), .. }) = event {
                hub.publish_output(event);
            }
        }
    }
}

/// Creates a notice with the current time.
pub(crate) fn new_notice(message: &str) -> Notice {
    Notice { message: message.to_owned(), time: Timestamp::now() }
}
