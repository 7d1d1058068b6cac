//! The client's half of the control socket: connects, starts the daemon if none is running, and compares versions.
//!
//! Requests are sent with the generated `…ApiClient` traits on [`Connection::client`]. Nothing here knows what the
//! methods do.

mod address;
pub mod caller_env;
mod dial;
mod error;
mod event_stream;
mod greeting;
mod handshake;
mod one_shot;
mod ssh;
mod start;

use std::collections::BTreeMap;
use std::path::PathBuf;

use jsonrpsee::core::client::Client;
use tokio::net::UnixStream;

pub use self::address::Address;
use self::dial::SocketCandidates;
pub use self::error::{CallError, ConnectError, StartError};
pub use self::event_stream::{EventStream, StreamUpdate};
pub use self::greeting::StdioGreeting;
pub use self::one_shot::OneShotClient;
use self::one_shot::TransportHalves;
pub use self::ssh::SshError;
pub use self::start::daemon_program;
use crate::host::Host;
use crate::paths::Paths;
use crate::view::DaemonView;

/// How to reach the daemon.
#[derive(Debug, Clone, Default)]
pub struct ConnectOptions {
    /// The machine that the daemon runs on; default: this one.
    pub host: Option<Host>,
    /// No one is present to answer ssh's questions.
    pub unattended: bool,
    /// The socket on this machine; default: the one from [`Paths::find`].
    pub socket: Option<PathBuf>,
    /// Start a daemon if none is running.
    pub spawn: bool,
    /// The daemon's program; default: `runnerd` next to this program, otherwise from `PATH`.
    pub program: Option<PathBuf>,
    /// Name of this client's program.
    pub client_name: String,
    /// Version of this client's program.
    pub version: String,
}

/// A connection to a daemon that speaks this version of the API.
#[derive(Debug)]
pub struct Connection {
    client: Client,
    daemon: DaemonView,
    route: ConnectionRoute,
}

/// The transport of a connection.
#[derive(Debug)]
struct ConnectionRoute {
    address: Address,
    /// The variables of the login on another machine, and the program that connects to it.
    login: Option<(BTreeMap<String, String>, ssh::SshProcess)>,
    /// Whether the daemon was started for this connection, on this machine.
    has_started_daemon: bool,
}

impl Connection {
    /// Connects, starting the daemon if allowed and necessary, and exchanges versions.
    ///
    /// Takes at most 10 seconds to connect to a running daemon, and twice that to start one; a minute on another
    /// machine, because ssh may have to ask a person first.
    ///
    /// # Errors
    ///
    /// Fails if no daemon responds and none can be started, or if its version differs.
    pub async fn open(options: &ConnectOptions) -> Result<Self, ConnectError> {
        let (halves, route) = open_transport(options).await?;
        let client = dial::build_client(halves, &route.address)?;
        let daemon = handshake::perform_handshake(&client, options, &route.address).await?;
        Ok(Self { client, daemon, route })
    }

    /// Returns the client for the generated traits.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Describes the daemon at the time of connecting.
    pub fn daemon(&self) -> &DaemonView {
        &self.daemon
    }

    /// Returns the address of the daemon.
    pub fn address(&self) -> &Address {
        &self.route.address
    }

    /// Whether the daemon was started for this connection, on this machine.
    pub fn has_started_daemon(&self) -> bool {
        self.route.has_started_daemon
    }

    /// Returns the variables of the login on the daemon's machine, if that is another machine.
    pub fn environment(&self) -> Option<&BTreeMap<String, String>> {
        self.route.login.as_ref().map(|(environment, _)| environment)
    }
}

/// Connects like [`Connection::open`], sends requests, and returns the replies.
///
/// The first request is sent together with the exchange of versions, which takes one round trip instead of two. The
/// requests must not change anything, because a daemon of another version may interpret them differently; its reply is
/// not returned.
///
/// # Errors
///
/// Fails if no daemon responds and none can be started, or if its version differs.
pub async fn query<T>(
    options: &ConnectOptions,
    request: impl AsyncFnOnce(&OneShotClient) -> T,
) -> Result<T, ConnectError> {
    let (halves, route) = open_transport(options).await?;
    let client = OneShotClient::new(halves);
    let answer = async { Ok(request(&client).await) };
    let (_, answer) = tokio::try_join!(handshake::perform_handshake(&client, options, &route.address), answer)?;
    Ok(answer)
}

/// Connects to the daemon of this machine, starting it if allowed and necessary, on behalf of another client: sends
/// nothing.
///
/// # Errors
///
/// Fails if no one is listening and no daemon can be started.
pub async fn connect_stream(options: &ConnectOptions) -> Result<UnixStream, ConnectError> {
    let listeners = SocketCandidates::find(options.socket.as_deref())?;
    match dial::dial_first(&listeners).await? {
        Some(stream) => Ok(stream),
        None => start_daemon(options, listeners).await.map(|(stream, _)| stream),
    }
}

async fn open_transport(options: &ConnectOptions) -> Result<(TransportHalves, ConnectionRoute), ConnectError> {
    if let Some(host) = &options.host {
        return open_remote_transport(host, options).await;
    }
    let listeners = SocketCandidates::find(options.socket.as_deref())?;
    if let Some((halves, at)) = dial::connect_any(&listeners).await? {
        return Ok((halves, ConnectionRoute { address: at, login: None, has_started_daemon: false }));
    }
    let (stream, at) = start_daemon(options, listeners).await?;
    let halves = dial::open_websocket(stream, &at).await?.ok_or_else(|| ConnectError::connection_closed(&at))?;
    Ok((halves, ConnectionRoute { address: at, login: None, has_started_daemon: true }))
}

async fn start_daemon(
    options: &ConnectOptions,
    listeners: SocketCandidates,
) -> Result<(UnixStream, Address), ConnectError> {
    if !options.spawn {
        return Err(ConnectError::NoDaemon { socket: listeners.socket });
    }
    let paths = Paths::find(options.socket.as_deref())?;
    let stream = start::start(&paths, options.program.as_deref()).await?;
    Ok((stream, Address::Socket(paths.socket)))
}

/// Connects to another machine; retries once if the daemon there was just exiting.
async fn open_remote_transport(
    host: &Host,
    options: &ConnectOptions,
) -> Result<(TransportHalves, ConnectionRoute), ConnectError> {
    let address = Address::Host(host.clone());
    for _ in 0..2 {
        let ssh::SshConnection { stream, environment, program } = ssh::connect(host, options).await?;
        if let Some(halves) = dial::open_websocket(stream, &address).await? {
            return Ok((
                halves,
                ConnectionRoute { address, login: Some((environment, program)), has_started_daemon: false },
            ));
        }
    }
    Err(ConnectError::connection_closed(&address))
}
