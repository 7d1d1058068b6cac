//! What happens to one run or to all repositories, as a stream that outlives a restart of the daemon.
//!
//! Events are passed on as they come; after them the state is read once. What is shown is in `progress` and `status`.

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

/// What is told while the daemon is away.
pub(crate) const AWAY: &str = "the daemon went away; waiting for it to come back";
/// A daemon that is away for longer is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is followed.
pub(crate) trait FeedSource {
    /// Its state.
    type View;

    /// Returns a path in the only repository whose events matter; none: all do.
    fn path(&self) -> Option<&WirePath>;

    /// Reads its state.
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

/// One piece of news.
#[derive(Debug)]
pub(crate) enum FeedUpdate<V> {
    /// Something happened in a repository that is followed.
    Event(Box<Event>),
    /// The state after all events so far.
    Status(Box<V>),
    /// The daemon went away; the next piece of news is awaited from its successor.
    Lost,
}

/// Follows one run, or all there is.
#[derive(Debug)]
pub(crate) struct EventFeed<S> {
    subject: S,
    link: EventStream,
    /// Whether the state is older than the last event.
    stale: bool,
}

impl<S: FeedSource> EventFeed<S> {
    /// Subscribes to the events of what the daemon knows.
    pub(crate) async fn open(invocation: &Invocation<'_>, subject: S) -> Result<Self, Failure> {
        let wanted = Subscription { path: subject.path().cloned(), since: None, output: false };
        let mut link = EventStream::new(invocation.connect_options(false), wanted);
        link.follow(Arc::new(invocation.connect().await?)).await?;
        Ok(Self { subject, link, stale: true })
    }

    /// Returns the connection, where there is one at this moment.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.link.connection().map(Arc::as_ref)
    }

    /// Waits for the next piece of news; fails where the daemon stays away.
    ///
    /// The state that is returned is never older than an event that came before it.
    pub(crate) async fn next(&mut self) -> Result<FeedUpdate<S::View>, Failure> {
        self.stale |= self.link.connection().is_none();
        let connection = connected(&mut self.link).await?;
        let mut answer = None;
        loop {
            tokio::select! {
                biased;
                told = self.link.next() => match told {
                    client::StreamUpdate::Event(event) => {
                        self.stale = true;
                        return Ok(FeedUpdate::Event(event));
                    }
                    client::StreamUpdate::Unreadable => (self.stale, answer) = (true, None),
                    client::StreamUpdate::Lost | client::StreamUpdate::Connected(_) | client::StreamUpdate::Unreachable(_) => return Ok(FeedUpdate::Lost),
                },
                () = ready(()), if answer.is_some() => break,
                () = ready(()), if self.stale => {
                    answer = self.state(&connection).await?;
                    self.stale = false;
                }
            }
        }
        Ok(answer.map_or(FeedUpdate::Lost, FeedUpdate::Status))
    }

    /// Reads the state; none where the connection is gone.
    async fn state(&self, connection: &Connection) -> Result<Option<Box<S::View>>, Failure> {
        match self.subject.read(connection.client()).await.map_err(CallError::from) {
            Ok(status) => Ok(Some(Box::new(status))),
            Err(CallError::Gone) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Waits for the daemon where it is away; it is for others to start it.
pub(crate) async fn connected(link: &mut EventStream) -> Result<Arc<Connection>, Failure> {
    timeout(PATIENCE, link.connected()).await.map_err(|_| {
        let lost = format!("the daemon went away and did not come back within {} s", PATIENCE.as_secs());
        Failure::new(ExitStatus::NoDaemon, "no_daemon", lost)
            .hint("runnerctl status (starts the daemon, and the run goes on)")
    })
}
