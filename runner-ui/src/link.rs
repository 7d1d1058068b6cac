//! The connection to the daemon, made again when it is lost; what comes over it goes to the hub.
//!
//! A daemon that has ended in order, and that no other follows, ends the server too.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jsonrpsee::core::client::Client;
use protocol::api::EventApiClient as _;
use protocol::client::{ConnectOptions, Connection};
use protocol::event::{Event, EventKind};
use protocol::request::Subscription;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::hub::{EventId, Hub, News};
use crate::wire::Notice;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Time for the successor of a daemon that has ended in order, as at an update.
const SUCCESSION: Duration = Duration::from_secs(5);

/// Whether there is a daemon.
#[derive(Debug, Clone, Default)]
pub(crate) enum Standing {
    /// None has answered yet.
    #[default]
    Never,
    /// One answers.
    Up(Arc<Connection>),
    /// It went away.
    Away {
        /// When.
        since: Timestamp,
    },
}

/// Keeps up a connection until the task is ended; returns once it was tried for the first time. `stop` is cancelled at the
/// end of a daemon without a successor.
pub(crate) async fn keep(options: ConnectOptions, hub: Hub, stop: CancellationToken) -> watch::Receiver<Standing> {
    let (standing, seen) = watch::channel(Standing::Never);
    let mut link = Link { options, hub, standing, stop, is_ending: false, is_started_by_asking: false };
    let first = link.connect().await;
    tokio::spawn(async move { link.run(first).await });
    seen
}

/// A connection, and the events that come over it.
struct Line {
    connection: Arc<Connection>,
    events: Events,
}

type Events = jsonrpsee::core::client::Subscription<Event>;

struct Link {
    options: ConnectOptions,
    hub: Hub,
    standing: watch::Sender<Standing>,
    stop: CancellationToken,
    /// Whether the daemon has said that it goes down.
    is_ending: bool,
    /// Whether whoever connects starts a daemon.
    is_started_by_asking: bool,
}

impl Link {
    async fn run(&mut self, mut next: Option<Line>) {
        loop {
            let line = match next.take() {
                Some(line) => line,
                None if self.is_ending => match self.successor().await {
                    Some(line) => line,
                    None => return self.stop.cancel(),
                },
                None => self.reconnect().await,
            };
            let output = self.relay_output(&line.connection);
            self.relay_events(line).await;
            output.abort();
            self.standing.send_replace(Standing::Away { since: Timestamp::now() });
            self.hub.tell(News::Gone(notice("the daemon went away")));
        }
    }

    /// Waits for the successor of a daemon that has ended in order. Where a service manager keeps the socket, asking for one
    /// would start it: what a person has just stopped stays so.
    async fn successor(&mut self) -> Option<Line> {
        if self.is_started_by_asking {
            return None;
        }
        timeout(SUCCESSION, self.reconnect()).await.ok()
    }

    async fn reconnect(&mut self) -> Line {
        let mut pause = FIRST_PAUSE;
        loop {
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            if let Some(line) = self.connect().await {
                self.hub.tell(News::Back(notice("a daemon answers")));
                return line;
            }
        }
    }

    /// Connects, and follows the events before anybody hears of it: a daemon that ends next must not seem to have died.
    /// Another daemon than before counts them anew.
    async fn connect(&mut self) -> Option<Line> {
        let connection = Connection::open(&self.options).await.ok()?;
        let life = connection.daemon().started_at.as_millisecond();
        if self.hub.last().is_none_or(|last| last.life != life) {
            self.hub.begin(EventId { life, seq: 0 });
            self.is_ending = false;
        }
        let events = self.subscribe(connection.client()).await?;
        self.is_started_by_asking = connection.daemon().socket_passed;
        let connection = Arc::new(connection);
        self.standing.send_replace(Standing::Up(Arc::clone(&connection)));
        Some(Line { connection, events })
    }

    /// Asks for the events after the last one that is known.
    async fn subscribe(&self, client: &Client) -> Option<Events> {
        let since = self.hub.last()?.seq + 1;
        client.subscribe_events(Subscription { path: None, since: Some(since), output: false }).await.ok()
    }

    /// Passes events on until the connection is gone.
    async fn relay_events(&mut self, Line { connection, events }: Line) {
        let mut next = Some(events);
        while let Some(mut events) = next {
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event { kind: EventKind::Lagged, seq, .. }) => self.resync(seq),
                    Ok(event) => {
                        self.is_ending |= event.kind == EventKind::Stopping;
                        self.hub.publish(event);
                    }
                    // An event of a later version: the state tells what it did.
                    Err(_) => self.hub.tell(News::Resync(notice("an event is not known here"))),
                }
            }
            let client = connection.client();
            if self.is_ending {
                // It tells no more, and may take its time.
                client.on_disconnect().await;
                return;
            }
            next = self.subscribe(client).await;
        }
    }

    fn resync(&self, seq: u64) {
        if let Some(last) = self.hub.last() {
            self.hub.begin(EventId { seq, ..last });
            self.hub.tell(News::Resync(notice("some events are lost")));
        }
    }

    /// Passes output on as long as a page looks at it.
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

async fn relay_output(client: &Client, hub: &Hub) {
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

/// Returns what is noticed now.
pub(crate) fn notice(message: &str) -> Notice {
    Notice { message: message.to_owned(), time: Timestamp::now() }
}
