//! The client's half of the control socket: connecting, starting the daemon where none runs, agreeing on
//! the version.
//!
//! Requests are sent with the generated `…ApiClient` traits on [`Connection::client`]. Nothing here knows
//! what the methods do.

mod brief;
pub mod caller_env;
mod dial;
mod error;
mod hello;
mod link;
mod start;

use std::path::{Path, PathBuf};

use jsonrpsee::core::client::Client;

pub use self::brief::Brief;
use self::brief::Halves;
use self::dial::Listeners;
pub use self::error::{CallError, ConnectError, StartError};
pub use self::link::{Link, News};
use crate::paths::Paths;
use crate::view::DaemonView;

/// How to reach the daemon.
#[derive(Debug, Clone, Default)]
pub struct ConnectOptions {
    /// The socket; default: where [`Paths::find`] says.
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
    socket: PathBuf,
}

impl Connection {
    /// Connects, starting the daemon if it may and must, and exchanges versions.
    ///
    /// Takes 10 seconds at most to connect to a daemon that runs, and twice that to start one.
    ///
    /// # Errors
    ///
    /// Fails if no daemon answers and none can be started, or if it speaks another version.
    pub async fn open(options: &ConnectOptions) -> Result<Self, ConnectError> {
        let (halves, socket) = reach(options).await?;
        let client = dial::lasting(halves)?;
        let daemon = hello::exchange(&client, options, &socket).await?;
        Ok(Self { client, daemon, socket })
    }

    /// Returns what the generated client traits are called on.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Describes the daemon as it was when the connection was made.
    pub fn daemon(&self) -> &DaemonView {
        &self.daemon
    }

    /// Returns the socket that the daemon was reached by.
    pub fn socket(&self) -> &Path {
        &self.socket
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
pub async fn ask<T>(options: &ConnectOptions, question: impl AsyncFnOnce(&Brief) -> T) -> Result<T, ConnectError> {
    let (halves, socket) = reach(options).await?;
    let client = Brief::new(halves);
    let answer = async { Ok(question(&client).await) };
    let (_, answer) = tokio::try_join!(hello::exchange(&client, options, &socket), answer)?;
    Ok(answer)
}

async fn reach(options: &ConnectOptions) -> Result<(Halves, PathBuf), ConnectError> {
    let listeners = Listeners::find(options.socket.as_deref())?;
    match dial::reach(&listeners).await? {
        Some(reached) => Ok(reached),
        None if !options.spawn => Err(ConnectError::NoDaemon { socket: listeners.socket }),
        None => {
            let paths = Paths::find(options.socket.as_deref())?;
            let stream = start::start(&paths, options.program.as_deref()).await?;
            let halves = dial::speak(stream, &paths.socket).await?;
            Ok((halves.ok_or_else(|| ConnectError::closed(&paths.socket))?, paths.socket))
        }
    }
}
