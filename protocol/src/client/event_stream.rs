//! A stream of events that survives lost connections: it reconnects, and subscribes again where it stopped.
//!
//! Does not know what the events are used for. Starts no daemon: if someone has stopped it, that is respected;
//! otherwise another one will follow.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jsonrpsee::core::client::Subscription as Stream;
use tokio::time::sleep;

use super::{CallError, ConnectError, ConnectOptions, Connection};
use crate::api::EventApiClient as _;
use crate::event::{Event, EventKind};
use crate::request::Subscription;

const FIRST_RETRY_DELAY: Duration = Duration::from_millis(50);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(1);
/// The same for another machine, where every attempt is a login.
const MAX_REMOTE_RETRY_DELAY: Duration = Duration::from_secs(10);

/// News from a link.
#[derive(Debug)]
pub enum StreamUpdate {
    /// A daemon responds, and its events follow.
    Connected(Arc<Connection>),
    /// Something happened.
    Event(Box<Event>),
    /// An event of a later version: read the state to learn its effect.
    Unreadable,
    /// The connection was lost. The link keeps trying to reconnect.
    Disconnected,
    /// Connecting fails for a new reason, other than a missing listener.
    Unreachable(ConnectError),
}

/// The events of one daemon after another.
#[derive(Debug)]
pub struct EventStream {
    options: ConnectOptions,
    subscription: Subscription,
    /// The daemon followed last, and the number of its next event.
    daemon: Option<(u32, Timestamp)>,
    since: Option<u64>,
    current: Option<LiveSubscription>,
    retry_delay: Duration,
    /// The last reported reason why the daemon could not be reached.
    last_reason: Option<String>,
}

#[derive(Debug)]
struct LiveSubscription {
    connection: Arc<Connection>,
    events: Stream<Event>,
    /// Whether the daemon has announced its shutdown.
    is_stopping: bool,
}

impl EventStream {
    /// Creates a stream of these events from every daemon; `since` is the first one to send. For a daemon that was
    /// followed before, its events continue where they stopped.
    pub fn new(options: ConnectOptions, subscription: Subscription) -> Self {
        let options = ConnectOptions { spawn: false, unattended: true, ..options };
        Self {
            options,
            subscription,
            daemon: None,
            since: None,
            current: None,
            retry_delay: FIRST_RETRY_DELAY,
            last_reason: None,
        }
    }

    /// Follows the daemon of an existing connection.
    ///
    /// # Errors
    ///
    /// Fails if the daemon refuses the subscription or is gone.
    pub async fn follow(&mut self, connection: Arc<Connection>) -> Result<(), CallError> {
        let daemon = Some((connection.daemon().pid, connection.daemon().started_at));
        if self.daemon != daemon {
            (self.daemon, self.since) = (daemon, self.subscription.since);
        }
        let events = self.subscribe(&connection).await?;
        self.current = Some(LiveSubscription { connection, events, is_stopping: false });
        (self.retry_delay, self.last_reason) = (FIRST_RETRY_DELAY, None);
        Ok(())
    }

    /// Tries once to reach a daemon. Subscribes before reporting it: one that exits right afterwards must not look as
    /// if it had crashed.
    ///
    /// # Errors
    ///
    /// Fails if no daemon can be reached, or if it refuses the subscription.
    pub async fn connect(&mut self) -> Result<Arc<Connection>, ConnectError> {
        let connection = Arc::new(Connection::open(&self.options).await?);
        match self.follow(Arc::clone(&connection)).await {
            Ok(()) => Ok(connection),
            Err(CallError::Refused(refusal)) => Err(refusal.into()),
            Err(_) => Err(ConnectError::connection_closed(connection.address())),
        }
    }

    /// Returns the current connection, if there is one.
    pub fn connection(&self) -> Option<&Arc<Connection>> {
        self.current.as_ref().map(|live| &live.connection)
    }

    /// Waits for a connection if there is none, without a time limit.
    pub async fn wait_for_connection(&mut self) -> Arc<Connection> {
        loop {
            match self.connection() {
                Some(connection) => return Arc::clone(connection),
                None => drop(self.reconnect().await),
            }
        }
    }

    /// Waits for the next piece of news. Cancelling the wait loses nothing.
    pub async fn next(&mut self) -> StreamUpdate {
        loop {
            let Some(current) = &mut self.current else { return self.reconnect().await };
            match current.events.next().await {
                Some(Ok(event)) => {
                    current.is_stopping |= event.kind == EventKind::Stopping;
                    self.since = self.since.max(Some(event.seq + 1));
                    return StreamUpdate::Event(Box::new(event));
                }
                Some(Err(_)) => return StreamUpdate::Unreadable,
                None => {
                    if !self.resubscribe().await {
                        self.current = None;
                        return StreamUpdate::Disconnected;
                    }
                }
            }
        }
    }

    /// Subscribes again if only the subscription has ended.
    async fn resubscribe(&mut self) -> bool {
        let Some(LiveSubscription { connection, is_stopping: is_ending, .. }) = &self.current else { return false };
        let connection = Arc::clone(connection);
        if *is_ending {
            // It sends no more events, and may take its time to exit.
            connection.client().on_disconnect().await;
        }
        let events = if connection.client().is_connected() { self.subscribe(&connection).await.ok() } else { None };
        match (&mut self.current, events) {
            (Some(live), Some(events)) => live.events = events,
            _ => return false,
        }
        true
    }

    async fn subscribe(&self, connection: &Connection) -> Result<Stream<Event>, CallError> {
        let subscription = Subscription { since: self.since, ..self.subscription.clone() };
        Ok(connection.client().subscribe_events(subscription).await?)
    }

    /// Tries to reach a daemon until one responds, or there is something to report.
    async fn reconnect(&mut self) -> StreamUpdate {
        loop {
            sleep(self.retry_delay).await;
            let longest = if self.options.host.is_some() { MAX_REMOTE_RETRY_DELAY } else { MAX_RETRY_DELAY };
            self.retry_delay = (self.retry_delay * 2).min(longest);
            match self.connect().await {
                Ok(connection) => return StreamUpdate::Connected(connection),
                Err(error) if error.is_no_daemon() => {}
                Err(error) => {
                    let why = Some(error.to_string());
                    if self.last_reason != why {
                        self.last_reason = why;
                        return StreamUpdate::Unreachable(error);
                    }
                }
            }
        }
    }
}
