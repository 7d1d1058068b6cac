//! Events of one run or of all repositories, as a stream that survives a restart of the daemon.
//!
//! Events are passed on as they come; after them the state is read once. `progress` and `status` do the rendering.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::core::client::{Client, Error};
use protocol::api::RunApiClient as _;
use protocol::client::{self, CallError, Connection, EventStream};
use protocol::error::ExitStatus;
use protocol::event::Event;
use protocol::path::WirePath;
use protocol::request::{AtRun, Subscription};
use protocol::view::StatusView;
use tokio::time::timeout;

use crate::failure::Failure;
use crate::invocation::Invocation;

/// Message shown while the daemon is away.
pub(crate) const DAEMON_AWAY: &str = "the daemon went away; waiting for it to come back";
/// How long to wait for the daemon before giving up.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// What is followed.
pub(crate) trait FeedSource {
    /// The state that is read.
    type View;

    /// Path in the only repository whose events matter; `None` means all do.
    fn path(&self) -> Option<&WirePath>;

    /// Reads the state.
    async fn read(&self, client: &Client) -> Result<Self::View, Error>;
}

impl FeedSource for AtRun {
    type View = StatusView;

    fn path(&self) -> Option<&WirePath> {
        Some(&self.path)
    }

    async fn read(&self, client: &Client) -> Result<StatusView, Error> {
        client.status(self.clone()).await
    }
}

/// An update of the feed.
#[derive(Debug)]
pub(crate) enum FeedUpdate<V> {
    /// Something happened in a followed repository.
    Event(Box<Event>),
    /// The state after all events so far.
    Status(Box<V>),
    /// The connection was lost; the next update comes from the daemon's successor.
    Lost,
}

/// Follows one run, or everything.
#[derive(Debug)]
pub(crate) struct EventFeed<S> {
    source: S,
    link: EventStream,
    /// Whether the state is older than the last event.
    stale: bool,
}

impl<S: FeedSource> EventFeed<S> {
    /// Subscribes to the events.
    pub(crate) async fn open(invocation: &Invocation<'_>, source: S) -> Result<Self, Failure> {
        let subscription = Subscription { path: source.path().cloned(), since: None, output: false };
        let mut link = EventStream::new(invocation.connect_options(false), subscription);
        link.follow(Arc::new(invocation.connect().await?)).await?;
        Ok(Self { source, link, stale: true })
    }

    /// Returns the connection, if there is one at the moment.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.link.connection().map(Arc::as_ref)
    }

    /// Waits for the next update; fails if the daemon does not come back.
    ///
    /// A returned state is never older than an event returned before it.
    pub(crate) async fn next(&mut self) -> Result<FeedUpdate<S::View>, Failure> {
        self.stale |= self.link.connection().is_none();
        let connection = wait_for_connection(&mut self.link).await?;
        let mut state = None;
        loop {
            tokio::select! {
                biased;
                news = self.link.next() => match news {
                    client::StreamUpdate::Event(event) => {
                        self.stale = true;
                        return Ok(FeedUpdate::Event(event));
                    }
                    client::StreamUpdate::Unreadable => (self.stale, state) = (true, None),
                    client::StreamUpdate::Disconnected | client::StreamUpdate::Connected(_) | client::StreamUpdate::Unreachable(_) => return Ok(FeedUpdate::Lost),
                },
                () = ready(()), if state.is_some() => break,
                () = ready(()), if self.stale => {
                    state = self.read_state(&connection).await?;
                    self.stale = false;
                }
            }
        }
        Ok(state.map_or(FeedUpdate::Lost, FeedUpdate::Status))
    }

    /// Reads the state; `None` if the connection was lost.
    async fn read_state(&self, connection: &Connection) -> Result<Option<Box<S::View>>, Failure> {
        match self.source.read(connection.client()).await.map_err(CallError::from) {
            Ok(status) => Ok(Some(Box::new(status))),
            Err(CallError::Gone) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Waits for a daemon that is away; starting it is left to others.
pub(crate) async fn wait_for_connection(link: &mut EventStream) -> Result<Arc<Connection>, Failure> {
    timeout(RECONNECT_TIMEOUT, link.wait_for_connection()).await.map_err(|_| {
        let message = format!("the daemon went away and did not come back within {} s", RECONNECT_TIMEOUT.as_secs());
        Failure::new(ExitStatus::NoDaemon, "no_daemon", message)
            .hint("runnerctl status (starts the daemon, and the run continues)")
    })
}
