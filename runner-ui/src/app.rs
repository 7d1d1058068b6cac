//! What every request is answered from.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use protocol::client::ConnectOptions;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::access::Keys;
use crate::args::Args;
use crate::hub::Hub;
use crate::link::{self, Standing};
use crate::records::Records;
use crate::wire::Health;

/// The server's state; a copy is the same one.
#[derive(Debug, Clone)]
pub struct App {
    /// Who may ask.
    pub(crate) keys: Arc<Keys>,
    /// What happens.
    pub(crate) hub: Hub,
    /// A path in the only repository that is shown.
    pub(crate) only: Option<Arc<PathBuf>>,
    /// The records at that path.
    pub(crate) records: Option<Records>,
    /// Ends all streams.
    pub(crate) stop: CancellationToken,
    standing: watch::Receiver<Standing>,
    started_at: Timestamp,
}

impl App {
    /// Looks for a daemon, and goes on looking.
    pub async fn open(args: &Args, keys: Arc<Keys>, stop: CancellationToken) -> Self {
        let hub = Hub::default();
        let options = ConnectOptions {
            socket: args.socket.clone(),
            client_name: "runner-ui".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            ..ConnectOptions::default()
        };
        let standing = if args.from_records {
            watch::channel(Standing::Never).1
        } else {
            link::keep(options, hub.clone(), stop.clone()).await
        };
        let only = args.path.clone().map(|path| std::path::absolute(&path).unwrap_or(path));
        let records = only.as_deref().and_then(Records::around);
        let only = only.map(Arc::new);
        Self { keys, hub, only, records, stop, standing, started_at: Timestamp::now() }
    }

    /// Returns whether there is a daemon.
    pub(crate) fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// Tells who answers, as far as that is known without asking.
    pub(crate) fn health(&self) -> Health {
        let standing = self.standing();
        let (connected, as_of, daemon) = match &standing {
            Standing::Never | Standing::Unlike(_) => (false, None, None),
            Standing::Up(connection) => (true, Some(Timestamp::now()), Some(connection.daemon().clone())),
            Standing::Away { since } => (false, Some(*since), None),
        };
        Health {
            version: env!("CARGO_PKG_VERSION").into(),
            started_at: self.started_at,
            connected,
            as_of,
            from_records: false,
            only: None,
            daemon,
            steers: self.keys.steers(),
        }
    }
}
