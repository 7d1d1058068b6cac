//! A private daemon for a single command, with its state in a temporary folder: it ends with the command.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use protocol::api::DaemonApiClient as _;
use protocol::client::Connection;
use protocol::error::ExitStatus;
use protocol::paths::{SOCKET_VARIABLE, STATE_VARIABLE};
use protocol::startup::{FAILED, FLAG, READY};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::commands::daemon::find_daemon_program;
use crate::failure::Failure;
use crate::invocation::Invocation;

const START_TIMEOUT: Duration = Duration::from_secs(10);
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// The daemon. It is killed where this is dropped before [`TempDaemon::stop`].
#[derive(Debug)]
pub(crate) struct TempDaemon {
    process: Child,
    socket: PathBuf,
    _folder: TempDir,
}

impl TempDaemon {
    /// Starts the daemon and waits until it listens.
    pub(crate) async fn start() -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("runnerd-").tempdir();
        let folder = folder.map_err(|error| Failure::temp_file(&error))?;
        let socket = folder.path().join("socket/runnerd.sock");
        let program = find_daemon_program();
        let mut process = Command::new(&program)
            .arg(FLAG)
            .env(SOCKET_VARIABLE, &socket)
            .env(STATE_VARIABLE, folder.path().join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Failure::io(format!("starting {}", program.display()), &error))?;
        wait_until_ready(&program, &mut process).await?;
        Ok(Self { process, socket, _folder: folder })
    }

    /// Returns the socket it listens on.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Stops the daemon and everything it drives, and removes its state.
    pub(crate) async fn stop(mut self, invocation: &Invocation<'_>) -> Result<(), Failure> {
        if let Ok(connection) = invocation.connect_running().await {
            shut_down(&connection).await;
        }
        match timeout(STOP_TIMEOUT, self.process.wait()).await {
            Ok(_) => Ok(()),
            Err(_) => {
                Err(Failure::new(ExitStatus::Error, "timeout", "the command's own daemon did not end and was killed"))
            }
        }
    }
}

/// Asks the daemon to shut down; one that is gone already needs no request.
async fn shut_down(connection: &Connection) {
    let _ = timeout(STOP_TIMEOUT, connection.client().shutdown()).await;
}

async fn wait_until_ready(program: &Path, process: &mut Child) -> Result<(), Failure> {
    let output = process.stdout.take().expect("BUG: the output is a pipe");
    let mut lines = BufReader::new(output).lines();
    let line = timeout(START_TIMEOUT, lines.next_line()).await;
    let reason = match line {
        Ok(Ok(Some(line))) if line == READY => return Ok(()),
        Ok(Ok(Some(line))) => line.trim_start_matches(FAILED).to_owned(),
        Ok(Ok(None)) => "it ended".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it was not ready within {} s", START_TIMEOUT.as_secs()),
    };
    let message = format!("{} did not start", program.display());
    Err(Failure::new(ExitStatus::NoDaemon, "no_daemon", message).caused_by(reason))
}
