//! The client's half of the control socket: connecting, starting the daemon where none runs, agreeing on
//! the version.
//!
//! Requests are sent with the generated `…ApiClient` traits on [`Connection::client`]. Nothing here knows
//! what the methods do.

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
    /// Nobody is there to answer what ssh may ask.
    pub unattended: bool,
    /// The socket on this machine; default: where [`Paths::find`] says.
    pub socket: Option<PathBuf>,
    /// Start a daemon where none runs.
    pub spawn: bool,
    /// The daemon's program; default: `runnerd` beside this program, else from `PATH`.
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
    reached: ConnectionRoute,
}

/// What a conversation goes over.
#[derive(Debug)]
struct ConnectionRoute {
    at: Address,
    /// The variables of the login on another machine, and the program that leads there.
    login: Option<(BTreeMap<String, String>, ssh::SshProcess)>,
    /// Whether the daemon was started for it, on this machine.
    is_new: bool,
}

impl Connection {
    /// Connects, starting the daemon if it may and must, and exchanges versions.
    ///
    /// Takes 10 seconds at most to connect to a daemon that runs, and twice that to start one; a minute on another machine,
    /// where ssh may have to ask a person first.
    ///
    /// # Errors
    ///
    /// Fails if no daemon answers and none can be started, or if it speaks another version.
    pub async fn open(options: &ConnectOptions) -> Result<Self, ConnectError> {
        let (halves, reached) = reach(options).await?;
        let client = dial::lasting(halves, &reached.at)?;
        let daemon = handshake::exchange(&client, options, &reached.at).await?;
        Ok(Self { client, daemon, reached })
    }

    /// Returns what the generated client traits are called on.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Describes the daemon as it was when the connection was made.
    pub fn daemon(&self) -> &DaemonView {
        &self.daemon
    }

    /// Returns where the daemon was reached.
    pub fn address(&self) -> &Address {
        &self.reached.at
    }

    /// Tells whether the daemon was started for this connection, on this machine.
    pub fn has_started_daemon(&self) -> bool {
        self.reached.is_new
    }

    /// Returns the variables of the login on the daemon's machine, where that is another one.
    pub fn environment(&self) -> Option<&BTreeMap<String, String>> {
        self.reached.login.as_ref().map(|(environment, _)| environment)
    }
}

/// Connects as [`Connection::open`] does, asks, and returns the answer.
///
/// The first request goes with the exchange of versions, which takes one way to the daemon and back instead of two. The
/// requests must change nothing: a daemon of another version may take them for something else. What it answers is not
/// returned.
///
/// # Errors
///
/// Fails if no daemon answers and none can be started, or if it speaks another version.
pub async fn ask<T>(
    options: &ConnectOptions,
    question: impl AsyncFnOnce(&OneShotClient) -> T,
) -> Result<T, ConnectError> {
    let (halves, reached) = reach(options).await?;
    let client = OneShotClient::new(halves);
    let answer = async { Ok(question(&client).await) };
    let (_, answer) = tokio::try_join!(handshake::exchange(&client, options, &reached.at), answer)?;
    Ok(answer)
}

/// Connects to the daemon of this machine, starting it if it may and must, for somebody else to talk to: no word is said.
///
/// # Errors
///
/// Fails if nobody listens and no daemon can be started.
pub async fn stream(options: &ConnectOptions) -> Result<UnixStream, ConnectError> {
    let listeners = SocketCandidates::find(options.socket.as_deref())?;
    match dial::dial_any(&listeners).await? {
        Some(stream) => Ok(stream),
        None => start(options, listeners).await.map(|(stream, _)| stream),
    }
}

async fn reach(options: &ConnectOptions) -> Result<(TransportHalves, ConnectionRoute), ConnectError> {
    if let Some(host) = &options.host {
        return reach_far(host, options).await;
    }
    let listeners = SocketCandidates::find(options.socket.as_deref())?;
    if let Some((halves, at)) = dial::reach(&listeners).await? {
        return Ok((halves, ConnectionRoute { at, login: None, is_new: false }));
    }
    let (stream, at) = start(options, listeners).await?;
    let halves = dial::speak(stream, &at).await?.ok_or_else(|| ConnectError::closed(&at))?;
    Ok((halves, ConnectionRoute { at, login: None, is_new: true }))
}

async fn start(options: &ConnectOptions, listeners: SocketCandidates) -> Result<(UnixStream, Address), ConnectError> {
    if !options.spawn {
        return Err(ConnectError::NoDaemon { socket: listeners.socket });
    }
    let paths = Paths::find(options.socket.as_deref())?;
    let stream = start::start(&paths, options.program.as_deref()).await?;
    Ok((stream, Address::Socket(paths.socket)))
}

/// Goes to another machine; once more where the daemon there was just ending.
async fn reach_far(host: &Host, options: &ConnectOptions) -> Result<(TransportHalves, ConnectionRoute), ConnectError> {
    let at = Address::Host(host.clone());
    for _ in 0..2 {
        let ssh::SshConnection { stream, environment, program } = ssh::open(host, options).await?;
        if let Some(halves) = dial::speak(stream, &at).await? {
            return Ok((halves, ConnectionRoute { at, login: Some((environment, program)), is_new: false }));
        }
    }
    Err(ConnectError::closed(&at))
}
