//! Starts the daemon if none is running, only once even if many clients request it at the same time.
//!
//! If the service is installed, the service manager starts it. Otherwise the daemon reports on a pipe that it gets as
//! its standard output ([`crate::startup`]), and leaves the client's session on its own. Never starts a daemon from
//! inside an iteration: it would run in the agent's sandbox and look like a normal one.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::dial::dial;
use super::{ConnectError, StartError};
use crate::paths::{Paths, SOCKET_VARIABLE};
use crate::service::{SERVICE_UNIT, SOCKET_UNIT, listen_line};
use crate::{private_dir, startup};

/// Time for a daemon to become ready, and the same for one started by another client.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often another client's start is checked; a lock sends no event.
const POLL_INTERVAL: Duration = Duration::from_millis(25);
const TAIL_BYTES: u64 = 2048;

/// Starts a daemon and connects to it, or to one that was started by someone else meanwhile.
pub(super) async fn start(paths: &Paths, program: Option<&Path>) -> Result<UnixStream, ConnectError> {
    if env::var_os(startup::MARK_VARIABLE).is_some() {
        return Err(ConnectError::InsideIteration { socket: paths.socket.clone() });
    }
    start_with_lock(paths, program).await
}

/// Starts a daemon if no other client is doing so; connects as soon as one is listening.
async fn start_with_lock(paths: &Paths, program: Option<&Path>) -> Result<UnixStream, ConnectError> {
    let deadline = Instant::now() + 2 * READY_TIMEOUT;
    let lock = open_lock(paths)?;
    while lock.try_lock().is_err() {
        if let Some(stream) = dial(&paths.socket).await? {
            return Ok(stream);
        }
        if Instant::now() >= deadline {
            return Err(StartError::LockTimeout { lock: paths.start_lock() }.into());
        }
        sleep(POLL_INTERVAL).await;
    }
    if start_service(paths).await
        && let Some(stream) = dial(&paths.socket).await?
    {
        return Ok(stream);
    }
    start_locked(paths, &program.map_or_else(daemon_program, Path::to_owned), Instant::now() + READY_TIMEOUT).await
}

/// Makes the service manager start the daemon, if the service is installed for this socket; false otherwise.
async fn start_service(paths: &Paths) -> bool {
    let Some(listen_directive) = listen_line(&paths.socket) else { return false };
    let is_installed = fs::read_to_string(paths.socket_unit())
        .is_ok_and(|unit| paths.service_unit().exists() && unit.lines().any(|line| line == listen_directive));
    if !is_installed {
        return false;
    }
    let mut start = Command::new("systemctl");
    start.args(["--user", "start", SOCKET_UNIT, SERVICE_UNIT]);
    start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    matches!(timeout(READY_TIMEOUT, start.status()).await, Ok(Ok(status)) if status.success())
}

/// Starts a daemon while no other client does.
///
/// A daemon that is shutting down still holds its locks: then the new one exits at once, and is started again.
async fn start_locked(paths: &Paths, program: &Path, deadline: Instant) -> Result<UnixStream, ConnectError> {
    let mut pause = POLL_INTERVAL;
    loop {
        if let Some(stream) = dial(&paths.socket).await? {
            return Ok(stream);
        }
        let reason = match launch(paths, program, deadline).await? {
            LaunchOutcome::Ready => match dial(&paths.socket).await? {
                Some(stream) => return Ok(stream),
                None => format!("it reported that it is ready, but no process listens on {}", paths.socket.display()),
            },
            LaunchOutcome::Occupied(reason) => reason,
        };
        if Instant::now() + pause >= deadline {
            return Err(StartError::Reported { program: program.to_owned(), reason }.into());
        }
        sleep(pause).await;
        pause = (2 * pause).min(Duration::from_secs(1));
    }
}

/// The result of a start.
enum LaunchOutcome {
    Ready,
    /// Another daemon is running; contains the reason it gave.
    Occupied(String),
}

async fn launch(paths: &Paths, program: &Path, deadline: Instant) -> Result<LaunchOutcome, StartError> {
    let log = paths.startup_log();
    let mut child = spawn_daemon(paths, program, open_log(&log)?)?;
    let program = program.to_owned();
    let Ok(line) = timeout_at(deadline, read_first_line(&mut child)).await else {
        return Err(StartError::NotReady { program, seconds: READY_TIMEOUT.as_secs(), tail: read_log_tail(&log), log });
    };
    if line.as_deref() == Some(startup::READY) {
        return Ok(LaunchOutcome::Ready);
    }
    let reason = line.as_deref().and_then(|line| line.strip_prefix(startup::FAILED)).map(str::to_owned);
    let Ok(Ok(status)) = timeout(READY_TIMEOUT, child.wait()).await else {
        let reason = reason.unwrap_or_else(|| "it closed its standard output and did not end".into());
        return Err(StartError::Reported { program, reason });
    };
    match reason {
        reason if status.code() == Some(startup::EXIT_OCCUPIED.into()) => {
            Ok(LaunchOutcome::Occupied(reason.unwrap_or_else(|| "another daemon runs".into())))
        }
        Some(reason) => Err(StartError::Reported { program, reason }),
        None => Err(StartError::Exited { program, status, tail: read_log_tail(&log), log }),
    }
}

/// Reads the line that the daemon prints; `None` if it exited without one.
async fn read_first_line(child: &mut Child) -> Option<String> {
    let output = child.stdout.take()?;
    BufReader::new(output).lines().next_line().await.ok().flatten()
}

fn spawn_daemon(paths: &Paths, program: &Path, log: File) -> Result<Child, StartError> {
    Command::new(program)
        .arg(startup::FLAG)
        .env(SOCKET_VARIABLE, &paths.socket)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|source| StartError::Spawn { program: program.to_owned(), source })
}

/// Finds the daemon's program: next to this one (the same release), otherwise in `PATH`.
pub fn daemon_program() -> PathBuf {
    let sibling = || env::current_exe().ok().map(|own| own.with_file_name("runnerd")).filter(|path| path.is_file());
    sibling().unwrap_or_else(|| PathBuf::from("runnerd"))
}

fn open_lock(paths: &Paths) -> Result<File, StartError> {
    open_private(&paths.start_lock())
}

/// Opens the log and truncates it. A daemon that is shutting down may still write to it, so writes are appended.
fn open_log(path: &Path) -> Result<File, StartError> {
    let log = open_private(path)?;
    log.set_len(0).map_err(|source| StartError::File { path: path.to_owned(), source })?;
    Ok(log)
}

fn open_private(path: &Path) -> Result<File, StartError> {
    private_dir::create_private_dir(path.parent().unwrap_or(path))?;
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    opened.map_err(|source| StartError::File { path: path.to_owned(), source })
}

/// Returns the end of the daemon's log, as far as it can be read.
fn read_log_tail(log: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let from = file.metadata()?.len().saturating_sub(TAIL_BYTES);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).trim_end().to_owned()
}

#[cfg(test)]
mod tests;
