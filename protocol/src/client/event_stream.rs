//! Events that go on: a connection that is made again when it is lost, and a subscription that takes up where it was.
//!
//! Nothing here knows what is done with the events. No daemon is started: somebody has stopped it, or another one follows.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jsonrpsee::core::client::Subscription as Stream;
use tokio::time::sleep;

use super::{CallError, ConnectError, ConnectOptions, Connection};
use crate::api::EventApiClient as _;
use crate::event::{Event, EventKind};
use crate::request::Subscription;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The same for another machine, to which each try is a login.
const LONGEST_PAUSE_FAR: Duration = Duration::from_secs(10);

/// What a link tells.
#[derive(Debug)]
pub enum StreamUpdate {
    /// A daemon answers, and its events follow.
    Connected(Arc<Connection>),
    /// Something happened.
    Event(Box<Event>),
    /// An event of a later version: the state tells what it did.
    Unreadable,
    /// The daemon went away. It is looked for as long as news is waited for.
    Lost,
    /// It cannot be reached, for another reason than the one before: not only that nobody listens.
    Unreachable(ConnectError),
}

/// The events of one daemon after the other.
#[derive(Debug)]
pub struct EventStream {
    options: ConnectOptions,
    wanted: Subscription,
    /// The daemon that was followed last, and the event of it that comes next.
    daemon: Option<(u32, Timestamp)>,
    since: Option<u64>,
    live: Option<LiveSubscription>,
    pause: Duration,
    /// Why the daemon could not be reached when that was told last.
    told: Option<String>,
}

#[derive(Debug)]
struct LiveSubscription {
    connection: Arc<Connection>,
    events: Stream<Event>,
    /// Whether the daemon has said that it goes down.
    is_ending: bool,
}

impl EventStream {
    /// Wants these events of every daemon; `since` is the first of each, and those of one that was followed before go on
    /// where they were.
    pub fn new(options: ConnectOptions, wanted: Subscription) -> Self {
        let options = ConnectOptions { spawn: false, unattended: true, ..options };
        Self { options, wanted, daemon: None, since: None, live: None, pause: FIRST_PAUSE, told: None }
    }

    /// Follows the daemon of a connection that was made.
    ///
    /// # Errors
    ///
    /// Fails if the daemon refuses the subscription or is gone.
    pub async fn follow(&mut self, connection: Arc<Connection>) -> Result<(), CallError> {
        let daemon = Some((connection.daemon().pid, connection.daemon().started_at));
        if self.daemon != daemon {
            (self.daemon, self.since) = (daemon, self.wanted.since);
        }
        let events = self.subscribe(&connection).await?;
        self.live = Some(LiveSubscription { connection, events, is_ending: false });
        (self.pause, self.told) = (FIRST_PAUSE, None);
        Ok(())
    }

    /// Looks for a daemon once. It is followed before anybody hears of it: one that ends next must not seem to have died.
    ///
    /// # Errors
    ///
    /// Fails if none can be reached, or it refuses the subscription.
    pub async fn connect(&mut self) -> Result<Arc<Connection>, ConnectError> {
        let connection = Arc::new(Connection::open(&self.options).await?);
        match self.follow(Arc::clone(&connection)).await {
            Ok(()) => Ok(connection),
            Err(CallError::Refused(refusal)) => Err(refusal.into()),
            Err(_) => Err(ConnectError::closed(connection.address())),
        }
    }

    /// Returns the connection, where there is one at this moment.
    pub fn connection(&self) -> Option<&Arc<Connection>> {
        self.live.as_ref().map(|live| &live.connection)
    }

    /// Waits for a connection where there is none, however long that takes.
    pub async fn connected(&mut self) -> Arc<Connection> {
        loop {
            match self.connection() {
                Some(connection) => return Arc::clone(connection),
                None => drop(self.reconnect().await),
            }
        }
    }

    /// Waits for the next piece of news. Nothing is lost where the waiting is given up.
    pub async fn next(&mut self) -> StreamUpdate {
        loop {
            let Some(live) = &mut self.live else { return self.reconnect().await };
            match live.events.next().await {
                Some(Ok(event)) => {
                    live.is_ending |= event.kind == EventKind::Stopping;
                    self.since = self.since.max(Some(event.seq + 1));
                    return StreamUpdate::Event(Box::new(event));
                }
                Some(Err(_)) => return StreamUpdate::Unreadable,
                None => {
                    if !self.resume().await {
                        self.live = None;
                        return StreamUpdate::Lost;
                    }
                }
            }
        }
    }

    /// Subscribes again where no more than the subscription has ended.
    async fn resume(&mut self) -> bool {
        let Some(LiveSubscription { connection, is_ending, .. }) = &self.live else { return false };
        let connection = Arc::clone(connection);
        if *is_ending {
            // It tells no more, and may take its time.
            connection.client().on_disconnect().await;
        }
        let events = if connection.client().is_connected() { self.subscribe(&connection).await.ok() } else { None };
        match (&mut self.live, events) {
            (Some(live), Some(events)) => live.events = events,
            _ => return false,
        }
        true
    }

    async fn subscribe(&self, connection: &Connection) -> Result<Stream<Event>, CallError> {
        let wanted = Subscription { since: self.since, ..self.wanted.clone() };
        Ok(connection.client().subscribe_events(wanted).await?)
    }

    /// Looks for a daemon until there is one, or something to tell.
    async fn reconnect(&mut self) -> StreamUpdate {
        loop {
            sleep(self.pause).await;
            let longest = if self.options.host.is_some() { LONGEST_PAUSE_FAR } else { LONGEST_PAUSE };
            self.pause = (self.pause * 2).min(longest);
            match self.connect().await {
                Ok(connection) => return StreamUpdate::Connected(connection),
                Err(error) if error.is_absence() => {}
                Err(error) => {
                    let why = Some(error.to_string());
                    if self.told != why {
                        self.told = why;
                        return StreamUpdate::Unreachable(error);
                    }
                }
            }
        }
    }
}
