//! The effects: a connection that is made again when it is lost, and the requests over it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jsonrpsee::core::client::Client;
use protocol::api::EventApiClient as _;
use protocol::client::{ConnectError, ConnectOptions, Connection};
use protocol::event::{Event, EventKind};
use protocol::path::WirePath;
use protocol::request::Subscription;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::message::{Message, Request};
use super::requests::answer;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What comes from outside.
pub(crate) enum News {
    /// Something for the model.
    Message(Message),
    /// A connection was made.
    Connected(Arc<Connection>),
    /// The terminal is gone.
    Hangup,
}

/// The connection, as long as there is one.
pub(crate) struct Link {
    to: Sender<News>,
    connection: Option<Arc<Connection>>,
    followed: Option<(WirePath, JoinHandle<()>)>,
}

impl Link {
    /// Keeps up a connection from now on, beginning with one that was made.
    pub(crate) fn keep(options: ConnectOptions, first: Connection, to: Sender<News>) -> Self {
        tokio::spawn(keep(options, first, to.clone()));
        Self { to, connection: None, followed: None }
    }

    /// Takes a connection that was made.
    pub(crate) fn connected(&mut self, connection: Arc<Connection>) {
        self.lost();
        self.connection = Some(connection);
    }

    /// Forgets a connection that is gone.
    pub(crate) fn lost(&mut self) {
        self.connection = None;
        self.unfollow();
    }

    /// Begins to do what the model asks of the daemon.
    pub(crate) fn perform(&mut self, request: Request) {
        let Some(connection) = self.connection.clone() else { return };
        let to = self.to.clone();
        if let Request::Follow(path) = request {
            if self.followed.as_ref().is_none_or(|(followed, task)| *followed != path || task.is_finished()) {
                self.unfollow();
                self.followed = Some((path.clone(), tokio::spawn(follow(connection, path, to))));
            }
            return;
        }
        tokio::spawn(async move {
            if let Some(message) = answer(&connection, request).await {
                let _ = to.send(News::Message(message)).await;
            }
        });
    }

    fn unfollow(&mut self) {
        if let Some((_, task)) = self.followed.take() {
            task.abort();
        }
    }
}

/// Sends the events of every daemon that answers, one after the other, until nobody listens to this.
async fn keep(options: ConnectOptions, first: Connection, to: Sender<News>) {
    let mut place = Place::default();
    let mut next = Some(first);
    loop {
        let connection = match next.take() {
            Some(connection) => connection,
            None => reconnect(&options, &to).await,
        };
        place.enter(&connection);
        let connection = Arc::new(connection);
        if to.send(News::Connected(Arc::clone(&connection))).await.is_err() {
            return;
        }
        events(&connection, &mut place, &to).await;
        drop(connection);
        if send(&to, Message::Lost("the daemon went away".into())).await.is_err() {
            return;
        }
    }
}

/// How far the stream of a daemon was read.
#[derive(Debug, Default)]
struct Place {
    daemon: Option<(u32, Timestamp)>,
    seq: u64,
}

impl Place {
    /// Begins anew where another daemon answers: its events are counted from the first.
    fn enter(&mut self, connection: &Connection) {
        let daemon = Some((connection.daemon().pid, connection.daemon().started_at));
        if self.daemon != daemon {
            *self = Self { daemon, seq: 0 };
        }
    }
}

/// Sends events until the connection is gone.
async fn events(connection: &Connection, place: &mut Place, to: &Sender<News>) {
    let client = connection.client();
    while client.is_connected() {
        let wanted = Subscription { path: None, since: Some(place.seq + 1), output: false };
        let Ok(mut stream) = client.subscribe_events(wanted).await else { return };
        while let Some(event) = stream.next().await {
            // An event of a later version: the state tells what it did.
            let event = event.unwrap_or_else(|_| unreadable(place.seq));
            place.seq = place.seq.max(event.seq);
            if send(to, Message::Event(Box::new(event))).await.is_err() {
                return;
            }
        }
    }
}

fn unreadable(seq: u64) -> Event {
    Event { seq, time: Timestamp::now(), repo: None, run: None, iter: None, kind: EventKind::Lagged }
}

/// Sends what the agent and the guard of a repository do, and nothing else of it.
async fn follow(connection: Arc<Connection>, path: WirePath, to: Sender<News>) {
    let wanted = Subscription { path: Some(path), since: None, output: true };
    let client: &Client = connection.client();
    let Ok(mut stream) = client.subscribe_events(wanted).await else { return };
    while let Some(event) = stream.next().await {
        let Ok(event) = event else { continue };
        let is_output = matches!(event.kind, EventKind::Output { .. } | EventKind::Activity(_));
        if is_output && send(&to, Message::Event(Box::new(event))).await.is_err() {
            return;
        }
    }
}

/// Looks for a daemon until there is one; it is for others to start it.
async fn reconnect(options: &ConnectOptions, to: &Sender<News>) -> Connection {
    let mut pause = FIRST_PAUSE;
    let options = ConnectOptions { spawn: false, ..options.clone() };
    let mut said = None;
    loop {
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        match Connection::open(&options).await {
            Ok(connection) => return connection,
            Err(ConnectError::NoDaemon { .. }) => {}
            Err(error) => {
                let why = error.to_string();
                if said.as_ref() != Some(&why) {
                    let _ = send(to, Message::Lost(why.clone())).await;
                    said = Some(why);
                }
            }
        }
    }
}

async fn send(to: &Sender<News>, message: Message) -> Result<(), ()> {
    to.send(News::Message(message)).await.map_err(|_| ())
}
