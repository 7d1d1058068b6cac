//! The state from which every request is answered: one daemon, on this machine or another one.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use protocol::client::ConnectOptions;
use protocol::host::Host;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::access::AccessKeys;
use crate::args::Args;
use crate::daemon_link::{self, DaemonStatus};
use crate::hub::EventHub;
use crate::records::WorkTreeRecords;
use crate::wire::Health;

/// The server's state; clones share it.
#[derive(Debug, Clone)]
pub struct App {
    /// Access control.
    pub(crate) keys: Arc<AccessKeys>,
    /// Events of the daemon.
    pub(crate) hub: EventHub,
    /// A path in the only repository that is shown, if restricted to one.
    pub(crate) only_path: Option<Arc<PathBuf>>,
    /// The records at that path.
    pub(crate) records: Option<WorkTreeRecords>,
    /// Cancelled to end all streams.
    pub(crate) stop: CancellationToken,
    /// The daemon's machine, if it is another one.
    host: Option<Host>,
    /// All machines that have a page, in the order of their paths.
    hosts: Arc<[String]>,
    daemon_status: watch::Receiver<DaemonStatus>,
    started_at: Timestamp,
}

impl App {
    /// Connects to the daemons and keeps connecting: one per named machine, else this machine's. If there is only one,
    /// this waits for the first attempt.
    pub async fn open(args: &Args, keys: &Arc<AccessKeys>, stop: &CancellationToken) -> Vec<Self> {
        let open = |host: Option<&Host>| Self::for_host(host.cloned(), args, Arc::clone(keys), stop.clone());
        if args.host.len() > 1 {
            return args.host.iter().map(|host| open(Some(host))).collect();
        }
        let mut app = open(args.host.first());
        app.daemon_status.wait_for(|status| !matches!(status, DaemonStatus::Untried)).await.ok();
        vec![app]
    }

    fn for_host(host: Option<Host>, args: &Args, keys: Arc<AccessKeys>, stop: CancellationToken) -> Self {
        let hub = EventHub::default();
        let options = ConnectOptions {
            host: host.clone(),
            socket: args.socket.clone(),
            client_name: "runner-ui".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            ..ConnectOptions::default()
        };
        let daemon_status = if args.from_records {
            watch::channel(DaemonStatus::NeverAnswered).1
        } else {
            daemon_link::spawn_relay(options, hub.clone(), stop.clone())
        };
        let only = args.path.clone().map(|path| std::path::absolute(&path).unwrap_or(path));
        let records = only.as_deref().filter(|_| host.is_none()).and_then(WorkTreeRecords::find_around);
        let only = only.map(Arc::new);
        let hosts = args.host.iter().map(ToString::to_string).collect();
        Self { keys, hub, only_path: only, records, stop, host, hosts, daemon_status, started_at: Timestamp::now() }
    }

    /// Returns the state of the connection to the daemon.
    pub(crate) fn daemon_status(&self) -> DaemonStatus {
        self.daemon_status.borrow().clone()
    }

    /// Returns who answers, as far as known without asking the daemon.
    pub(crate) fn health(&self) -> Health {
        let status = self.daemon_status();
        let (connected, as_of, daemon) = match &status {
            DaemonStatus::Untried | DaemonStatus::NeverAnswered | DaemonStatus::Unreachable(_) => (false, None, None),
            DaemonStatus::Connected(connection) => (true, Some(Timestamp::now()), Some(connection.daemon().clone())),
            DaemonStatus::Disconnected { since } => (false, Some(*since), None),
        };
        Health {
            version: env!("CARGO_PKG_VERSION").into(),
            started_at: self.started_at,
            connected,
            as_of,
            from_records: false,
            only: None,
            daemon,
            steers: self.keys.can_steer(),
            host: self.host.as_ref().map(ToString::to_string),
            hosts: self.hosts.to_vec(),
        }
    }
}
