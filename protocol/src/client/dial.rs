//! Connects a JSON-RPC client to the path of a socket: one WebSocket over a Unix stream.
//!
//! Distinguishes a missing listener, for which the daemon can be started, from all other errors.

use std::error::Error;
use std::fs;
use std::io::{self, ErrorKind};
use std::iter;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use jsonrpsee::client_transport::ws::{Url, WsHandshakeError, WsTransportClientBuilder};
use jsonrpsee::core::client::async_client::PingConfig;
use jsonrpsee::core::client::{Client, ClientBuilder};
use tokio::net::UnixStream;

use super::ConnectError;
use super::address::Address;
use super::one_shot::{REQUEST_TIMEOUT, TransportHalves};
use crate::paths::{Paths, PathsError};

pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a daemon on another machine is pinged, and how long it may fail to respond.
const PING_INTERVAL: Duration = Duration::from_secs(15);
const SILENCE_LIMIT: Duration = Duration::from_secs(40);
const MAX_REQUEST_BYTES: u32 = 1 << 20;
const MAX_REPLY_BYTES: u32 = 32 << 20;
/// Number of events that may be queued for this client before its subscription is ended.
const SUBSCRIPTION_BUFFER: usize = 1024;

/// The sockets that a daemon may listen on.
pub(super) struct SocketCandidates {
    /// The one named by the user, or derived.
    pub(super) socket: PathBuf,
    /// The one announced by the daemon that uses the same state folder.
    announced: Option<PathBuf>,
}

impl SocketCandidates {
    /// Finds the sockets; `flag` is the one named on the command line.
    ///
    /// The environments of a login shell, cron and a service lead to different sockets, but to the same state folder. A
    /// socket named by the user is the only one tried, and needs no state folder.
    pub(super) fn find(flag: Option<&Path>) -> Result<Self, PathsError> {
        if let Some(socket) = Paths::named_socket(flag)? {
            return Ok(Self { socket, announced: None });
        }
        let paths = Paths::find(None)?;
        Ok(Self { announced: announced_socket(&paths), socket: paths.socket })
    }

    fn iter(&self) -> impl Iterator<Item = &PathBuf> {
        iter::once(&self.socket).chain(&self.announced)
    }
}

/// Connects to the daemon, and returns the socket used. `None` means that no one is listening.
pub(super) async fn connect_any(
    candidates: &SocketCandidates,
) -> Result<Option<(TransportHalves, Address)>, ConnectError> {
    for socket in candidates.iter() {
        let at = Address::Socket(socket.clone());
        if let Some(stream) = dial(socket).await?
            && let Some(halves) = open_websocket(stream, &at).await?
        {
            return Ok(Some((halves, at)));
        }
    }
    Ok(None)
}

/// Connects to the first socket with a listener.
pub(super) async fn dial_first(candidates: &SocketCandidates) -> Result<Option<UnixStream>, ConnectError> {
    for socket in candidates.iter() {
        if let Some(stream) = dial(socket).await? {
            return Ok(Some(stream));
        }
    }
    Ok(None)
}

/// Connects to the socket; `None` means that no one is listening.
pub(super) async fn dial(socket: &Path) -> Result<Option<UnixStream>, ConnectError> {
    let unreachable = |source| ConnectError::Unreachable { socket: socket.to_owned(), source };
    let stream = match UnixStream::connect(socket).await {
        Ok(stream) => stream,
        Err(error) if is_not_listening(&error) => return Ok(None),
        Err(error) => return Err(unreachable(error)),
    };
    let owner = stream.peer_cred().map_err(unreachable)?.uid();
    if owner == nix::unistd::getuid().as_raw() {
        Ok(Some(stream))
    } else {
        Err(ConnectError::Foreign { socket: socket.to_owned(), owner })
    }
}

/// Upgrades a connected stream to a WebSocket; `None` if the listener closed it, as a daemon that is shutting down
/// does.
pub(super) async fn open_websocket(stream: UnixStream, at: &Address) -> Result<Option<TransportHalves>, ConnectError> {
    let failed = |reason: String| ConnectError::Handshake { at: at.clone(), reason };
    let url = Url::parse("ws://localhost/").map_err(|error| failed(error.to_string()))?;
    let transport = WsTransportClientBuilder::default()
        .connection_timeout(HANDSHAKE_TIMEOUT)
        .max_request_size(MAX_REQUEST_BYTES)
        .max_response_size(MAX_REPLY_BYTES)
        .build_with_stream(url, stream);
    match transport.await {
        Ok(halves) => Ok(Some(halves)),
        Err(error) if is_disconnected(&error) => Ok(None),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Creates a client that supports subscriptions.
pub(super) fn build_client((sender, receiver): TransportHalves, at: &Address) -> Result<Client, ConnectError> {
    // The library's timer runs on its own thread, and panics if that cannot be started.
    thread::Builder::new().spawn(|| ()).map_err(ConnectError::Thread)?;
    let mut client = ClientBuilder::default()
        .request_timeout(REQUEST_TIMEOUT)
        .max_buffer_capacity_per_subscription(SUBSCRIPTION_BUFFER);
    if at.host().is_some() {
        // A network connection can die unnoticed; a local socket cannot.
        client = client.enable_ws_ping(PingConfig::new().ping_interval(PING_INTERVAL).inactive_limit(SILENCE_LIMIT));
    }
    Ok(client.build_with_tokio(sender, receiver))
}

/// A socket without a listener refuses connections; one whose listener has just closed may reset them.
fn is_not_listening(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset)
}

fn is_disconnected(error: &WsHandshakeError) -> bool {
    let mut source: Option<&dyn Error> = Some(error);
    while let Some(cause) = source {
        if let Some(cause) = cause.downcast_ref::<io::Error>() {
            return matches!(
                cause.kind(),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof
            );
        }
        source = cause.source();
    }
    false
}

/// Reads the second line of the state folder's lock, which the daemon wrote.
fn announced_socket(paths: &Paths) -> Option<PathBuf> {
    let lock = fs::read_to_string(paths.state_lock()).ok()?;
    lock.lines().nth(1).map(PathBuf::from).filter(|socket| *socket != paths.socket && socket.is_absolute())
}
