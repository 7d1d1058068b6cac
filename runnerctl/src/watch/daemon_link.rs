//! The effects: news from a connection that is restored when it is lost, and the requests over it.

use std::sync::Arc;

use jiff::Timestamp;
use jsonrpsee::core::client::Client;
use protocol::api::EventApiClient as _;
use protocol::client::{self, ConnectOptions, Connection};
use protocol::event::{Event, EventKind};
use protocol::path::WirePath;
use protocol::request::Subscription;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::SendError;
use tokio::task::JoinHandle;

use super::message::{Message, Request};
use super::requests::perform_request;

/// A message from outside.
pub(crate) enum SessionInput {
    /// A message for the model.
    Message(Message),
    /// A connection was established.
    Connected(Arc<Connection>),
    /// The terminal is gone.
    Hangup,
}

/// The sender of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InputSource {
    /// The user, and the terminal.
    Terminal,
    /// The daemon at this index.
    Daemon(usize),
}

/// The destination for messages of one daemon.
#[derive(Clone)]
struct InputSender {
    from: InputSource,
    to: Sender<(InputSource, SessionInput)>,
}

impl InputSender {
    async fn send(&self, news: SessionInput) -> Result<(), SendError<(InputSource, SessionInput)>> {
        self.to.send((self.from, news)).await
    }
}

/// The connection, if there is one.
pub(crate) struct DaemonLink {
    sender: InputSender,
    connection: Option<Arc<Connection>>,
    followed: Option<(WirePath, JoinHandle<()>)>,
}

impl DaemonLink {
    /// Maintains a connection to the daemon at this index, starting with an existing one if given.
    pub(crate) fn spawn(
        options: ConnectOptions,
        first: Option<Connection>,
        at: usize,
        to: Sender<(InputSource, SessionInput)>,
    ) -> Self {
        let to = InputSender { from: InputSource::Daemon(at), to };
        tokio::spawn(run_connection(options, first, to.clone()));
        Self { sender: to, connection: None, followed: None }
    }

    /// Stores a new connection.
    pub(crate) fn set_connection(&mut self, connection: Arc<Connection>) {
        self.clear_connection();
        self.connection = Some(connection);
    }

    /// Forgets a lost connection.
    pub(crate) fn clear_connection(&mut self) {
        self.connection = None;
        self.stop_following();
    }

    /// Starts what the model requests from the daemon.
    pub(crate) fn send_request(&mut self, request: Request) {
        let Some(connection) = self.connection.clone() else { return };
        let to = self.sender.clone();
        if let Request::Follow(path) = request {
            if self.followed.as_ref().is_none_or(|(followed, task)| *followed != path || task.is_finished()) {
                self.stop_following();
                self.followed = Some((path.clone(), tokio::spawn(forward_output(connection, path, to))));
            }
            return;
        }
        tokio::spawn(async move {
            if let Some(message) = perform_request(&connection, request).await {
                let _ = to.send(SessionInput::Message(message)).await;
            }
        });
    }

    fn stop_following(&mut self) {
        if let Some((_, task)) = self.followed.take() {
            task.abort();
        }
    }
}

/// Sends the events of every daemon that responds, one after another, until no one receives them.
async fn run_connection(options: ConnectOptions, first: Option<Connection>, to: InputSender) {
    let all = Subscription { path: None, since: Some(1), output: false };
    let mut events = client::EventStream::new(options.clone(), all);
    let first = match first {
        Some(first) => Ok(first),
        // No questions can be asked: the terminal is in use.
        None => Connection::open(&ConnectOptions { unattended: true, ..options }).await,
    };
    let mut news = match first.map(Arc::new) {
        Err(error) => client::StreamUpdate::Unreachable(error),
        Ok(first) => match events.follow(Arc::clone(&first)).await {
            Ok(()) => client::StreamUpdate::Connected(first),
            Err(_) => client::StreamUpdate::Disconnected,
        },
    };
    loop {
        let input = match news {
            client::StreamUpdate::Connected(connection) => SessionInput::Connected(connection),
            client::StreamUpdate::Event(event) => SessionInput::Message(Message::Event(event)),
            client::StreamUpdate::Unreadable => SessionInput::Message(Message::Event(Box::new(lagged_event()))),
            client::StreamUpdate::Disconnected => SessionInput::Message(Message::Lost("the daemon went away".into())),
            client::StreamUpdate::Unreachable(why) => SessionInput::Message(Message::Lost(why.to_string())),
        };
        if to.send(input).await.is_err() {
            return;
        }
        news = events.next().await;
    }
}

/// Requests the state, which shows the effect of the event.
fn lagged_event() -> Event {
    Event { seq: 0, time: Timestamp::now(), repo: None, run: None, iter: None, kind: EventKind::Lagged }
}

/// Sends the output of a repository's agent and guard, and nothing else about it.
async fn forward_output(connection: Arc<Connection>, path: WirePath, to: InputSender) {
    let subscription = Subscription { path: Some(path), since: None, output: true };
    let client: &Client = connection.client();
    let Ok(mut stream) = client.subscribe_events(subscription).await else { return };
    while let Some(event) = stream.next().await {
        let Ok(event) = event else { continue };
        let is_output = matches!(event.kind, EventKind::Output { .. } | EventKind::Activity(_));
        if is_output && to.send(SessionInput::Message(Message::Event(Box::new(event)))).await.is_err() {
            return;
        }
    }
}
