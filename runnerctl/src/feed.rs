//! What happens to one run or to all repositories, as a stream that outlives a restart of the daemon.
//!
//! Events are passed on as they come; after them the state is read once. What is shown is in `progress` and `status`.

use std::future::ready;
use std::time::Duration;

use jsonrpsee::core::client::{Client, Error, Subscription as Stream};
use protocol::api::{EventApiClient as _, RunApiClient as _};
use protocol::client::{CallError, Connection};
use protocol::error::ExitStatus;
use protocol::event::Event;
use protocol::path::WirePath;
use protocol::request::{AtRun, Subscription};
use protocol::view::StatusView;
use tokio::time::{Instant, sleep};

use crate::failure::Failure;
use crate::invocation::Invocation;

/// What is told while the daemon is away.
pub(crate) const AWAY: &str = "the daemon went away; waiting for it to come back";
/// A daemon that is away for longer is given up.
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What is followed.
pub(crate) trait Subject {
    /// Its state.
    type View;

    /// Returns a path in the only repository whose events matter; none: all do.
    fn path(&self) -> Option<&WirePath>;

    /// Reads its state.
    async fn read(&self, client: &Client) -> Result<Self::View, Error>;
}

impl Subject for AtRun {
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
pub(crate) enum News<V> {
    /// Something happened in a repository that is followed.
    Event(Box<Event>),
    /// The state after all events so far.
    Status(Box<V>),
    /// The daemon went away; the next piece of news is awaited from its successor.
    Lost,
}

/// Follows one run, or all there is.
#[derive(Debug)]
pub(crate) struct Feed<'a, S> {
    invocation: &'a Invocation<'a>,
    subject: S,
    link: Option<Link>,
    /// Whether the state is older than the last event.
    stale: bool,
}

#[derive(Debug)]
struct Link {
    connection: Connection,
    events: Stream<Event>,
}

impl<'a, S: Subject> Feed<'a, S> {
    /// Subscribes to the events of what the daemon knows.
    pub(crate) async fn open(invocation: &'a Invocation<'a>, subject: S) -> Result<Self, Failure> {
        let link = Link::open(invocation.connect().await?, &subject).await?;
        Ok(Self { invocation, subject, link: Some(link), stale: true })
    }

    /// Returns the connection, where there is one at this moment.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.link.as_ref().map(|link| &link.connection)
    }

    /// Waits for the next piece of news; fails where the daemon stays away.
    pub(crate) async fn next(&mut self) -> Result<News<S::View>, Failure> {
        if self.link.is_none() {
            let open = async |connection| Link::open(connection, &self.subject).await;
            self.link = Some(reconnect(self.invocation, open).await?);
            self.stale = true;
        }
        let link = self.link.as_mut().expect("BUG: a link was just made");
        let Some(news) = link.next(self.stale, &self.subject).await? else {
            self.link = None;
            return Ok(News::Lost);
        };
        self.stale = matches!(news, News::Event(_));
        Ok(news)
    }
}

impl Link {
    async fn open(connection: Connection, subject: &impl Subject) -> Result<Self, CallError> {
        let wanted = Subscription { path: subject.path().cloned(), since: None, output: false };
        let events = connection.client().subscribe_events(wanted).await?;
        Ok(Self { connection, events })
    }

    /// Returns the next event, or the state once no event is left to be read; none where the connection is gone.
    ///
    /// The state that is returned is never older than an event that came before it.
    async fn next<S: Subject>(&mut self, mut stale: bool, subject: &S) -> Result<Option<News<S::View>>, Failure> {
        let mut answer = None;
        loop {
            tokio::select! {
                biased;
                event = self.events.next() => match event {
                    Some(Ok(event)) => return Ok(Some(News::Event(Box::new(event)))),
                    // An event of a later version: the state tells what it did.
                    Some(Err(_)) => (stale, answer) = (true, None),
                    None => return Ok(None),
                },
                () = ready(()), if answer.is_some() => return Ok(answer),
                () = ready(()), if stale => match self.state(subject).await? {
                    None => return Ok(None),
                    read => answer = read,
                },
            }
        }
    }

    async fn state<S: Subject>(&self, subject: &S) -> Result<Option<News<S::View>>, Failure> {
        match subject.read(self.connection.client()).await.map_err(CallError::from) {
            Ok(status) => Ok(Some(News::Status(Box::new(status)))),
            Err(CallError::Gone) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Connects to the daemon that follows one that went away, and opens what is wanted of it; it is for others to start it.
pub(crate) async fn reconnect<T>(
    invocation: &Invocation<'_>,
    open: impl AsyncFn(Connection) -> Result<T, CallError>,
) -> Result<T, Failure> {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = FIRST_PAUSE;
    loop {
        if let Ok(connection) = invocation.connect_running().await
            && let Ok(opened) = open(connection).await
        {
            return Ok(opened);
        }
        if Instant::now() + pause > deadline {
            let lost = format!("the daemon went away and did not come back within {} s", PATIENCE.as_secs());
            return Err(Failure::new(ExitStatus::NoDaemon, "no_daemon", lost)
                .hint("runnerctl status (starts the daemon, and the run goes on)"));
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
