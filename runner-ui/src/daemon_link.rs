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
const SUCCESSION: Duration = Duration::from_secs(5);

/// State of the connection to the daemon.
#[derive(Debug, Clone, Default)]
pub(crate) enum DaemonStatus {
    /// No connection was attempted yet.
    #[default]
    Untried,
    /// No daemon has answered yet.
    Never,
    /// Connected.
    Up(Arc<Connection>),
    /// The connection was lost.
    Away {
        /// When it was lost.
        since: Timestamp,
    },
    /// Connecting failed for a reason worth reporting: another version, or a problem reaching another machine.
    Failed(Arc<ConnectError>),
}

/// Keeps a connection until the task is aborted. Cancels `stop` when this machine's daemon ends without a successor.
pub(crate) fn keep(options: ConnectOptions, hub: EventHub, stop: CancellationToken) -> watch::Receiver<DaemonStatus> {
    let (standing, seen) = watch::channel(DaemonStatus::Untried);
    let is_far = options.host.is_some();
    let events = EventStream::new(options, Subscription { path: None, since: Some(1), output: false });
    let mut relay =
        EventRelay { events, hub, standing, is_far, output: None, is_ending: false, is_started_by_asking: false };
    tokio::spawn(async move {
        match relay.events.connect().await {
            Ok(connection) => relay.answered(connection),
            Err(error) => relay.unreachable(error),
        }
        while let Some(news) = relay.next().await {
            relay.pass_on(news);
        }
        stop.cancel();
    });
    seen
}

/// Forwards from the connection to the hub.
struct EventRelay {
    events: EventStream,
    hub: EventHub,
    standing: watch::Sender<DaemonStatus>,
    /// Whether the daemon is on another machine.
    is_far: bool,
    /// The task that forwards output.
    output: Option<AbortHandle>,
    /// Whether the daemon has announced its shutdown.
    is_ending: bool,
    /// Whether connecting starts a daemon (socket activation).
    is_started_by_asking: bool,
}

impl EventRelay {
    /// Waits for the next update; `None` after the daemon has shut down in order without a successor.
    async fn next(&mut self) -> Option<client::StreamUpdate> {
        let is_over = self.is_ending && !self.is_far && self.events.connection().is_none();
        if !is_over {
            return Some(self.events.next().await);
        }
        // If a service manager owns the socket, connecting to look for a successor would restart a daemon that the user
        // has just stopped.
        if self.is_started_by_asking {
            return None;
        }
        timeout(SUCCESSION, self.events.connected()).await.ok().map(client::StreamUpdate::Connected)
    }

    fn pass_on(&mut self, news: client::StreamUpdate) {
        match news {
            client::StreamUpdate::Connected(connection) => self.answered(connection),
            client::StreamUpdate::Event(event) if event.kind == EventKind::Lagged => self.resync(event.seq),
            client::StreamUpdate::Event(event) => {
                self.is_ending |= event.kind == EventKind::Stopping;
                self.hub.publish(*event);
            }
            client::StreamUpdate::Unreadable => self.hub.tell(HubMessage::Resync(notice("an event is not known here"))),
            client::StreamUpdate::Lost => self.lost(),
            client::StreamUpdate::Unreachable(error) => self.unreachable(error),
        }
    }

    /// Handles a new connection and reports it to the hub.
    fn answered(&mut self, connection: Arc<Connection>) {
        self.connected(connection);
        self.hub.tell(HubMessage::Back(notice("a daemon answers")));
    }

    /// Handles a new connection; a different daemon numbers its events from the start.
    fn connected(&mut self, connection: Arc<Connection>) {
        let life = connection.daemon().started_at.as_millisecond();
        if self.hub.last().is_none_or(|last| last.life != life) {
            self.hub.begin(EventId { life, seq: 0 });
            self.is_ending = false;
        }
        self.is_started_by_asking = connection.daemon().socket_passed;
        self.output = Some(self.relay_output(&connection));
        self.standing.send_replace(DaemonStatus::Up(connection));
    }

    fn lost(&mut self) {
        if let Some(output) = self.output.take() {
            output.abort();
        }
        self.standing.send_replace(DaemonStatus::Away { since: Timestamp::now() });
        self.hub.tell(HubMessage::Gone(notice("the daemon went away")));
    }

    /// Stores the reason, unless it is only that no daemon is listening.
    fn unreachable(&self, error: ConnectError) {
        if self.is_far || matches!(error, ConnectError::ProtocolMismatch { .. } | ConnectError::DevelopmentBuild { .. })
        {
            self.hub.tell(HubMessage::Gone(notice("no daemon can be talked to")));
            self.standing.send_replace(DaemonStatus::Failed(Arc::new(error)));
        } else if self.is_untried() {
            self.standing.send_replace(DaemonStatus::Never);
        }
    }

    fn is_untried(&self) -> bool {
        matches!(*self.standing.borrow(), DaemonStatus::Untried)
    }

    fn resync(&self, seq: u64) {
        if let Some(last) = self.hub.last() {
            self.hub.begin(EventId { seq, ..last });
            self.hub.tell(HubMessage::Resync(notice("some events are lost")));
        }
    }

    /// Forwards output while a page is subscribed to it.
    fn relay_output(&self, connection: &Arc<Connection>) -> AbortHandle {
        let (hub, connection) = (self.hub.clone(), Arc::clone(connection));
        tokio::spawn(async move {
            let mut lookers = hub.lookers();
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
        let wanted = Subscription { path: None, since: None, output: true };
        let Ok(mut events) = client.subscribe_events(wanted).await else { return };
        while let Some(event) = events.next().await {
            if let Ok(event @ Event { kind: EventKind::Output { .. } | EventKind::Activity(_), .. }) = event {
                hub.publish_output(event);
            }
        }
    }
}

/// Creates a notice with the current time.
pub(crate) fn notice(message: &str) -> Notice {
    Notice { message: message.to_owned(), time: Timestamp::now() }
}
