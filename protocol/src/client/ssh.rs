//! A connection to the daemon of another machine through the user's own `ssh`, which runs `runnerctl stdio` there.
//!
//! One end of a socket pair is ssh's standard input and output; the other is used like the daemon's own socket. ssh
//! asks a person for passwords and the like directly on the terminal.

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::{ExitStatus as ProcessStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::ConnectOptions;
use super::greeting::StdioGreeting;
use crate::error::ExitStatus;
use crate::host::Host;
use crate::startup::MARK_VARIABLE;

/// Time for ssh to connect, for a person to answer ssh's questions, and for a daemon to be started.
const CONNECT_TIMEOUT: Duration = Duration::from_mins(1);
/// Time for a program to exit after it has closed its output, or was told to.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for a program that was killed to exit, so that a command leaves no process behind it.
const REAP_TIMEOUT: Duration = Duration::from_millis(500);
/// Time between two looks at whether it has exited.
const REAP_INTERVAL: Duration = Duration::from_millis(1);
/// Time for the remaining output of a program that has exited: a process that it left may hold its standard error.
const STDERR_TIMEOUT: Duration = Duration::from_millis(200);
/// Number of bytes kept from the end of standard error.
const STDERR_BYTES: usize = 4096;

/// The exit code of ssh for its own errors.
const SSH_FAILED: i32 = 255;
/// The exit code of a shell for a program that it does not find.
const NOT_FOUND: i32 = 127;

/// Why there is no connection to another machine.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// A process of an iteration may not connect to other machines.
    #[error("{host} is not asked from inside an iteration")]
    InsideIteration {
        /// The machine.
        host: Host,
    },
    /// The program cannot be executed.
    #[error("cannot run ssh to get to {host}")]
    Spawn {
        /// The machine.
        host: Host,
        /// The system's error.
        source: io::Error,
    },
    /// ssh could not connect.
    #[error("ssh did not get to {host}{}", message_suffix(.words))]
    Ssh {
        /// The machine.
        host: Host,
        /// ssh's message.
        words: String,
    },
    /// The login there finds no client program.
    #[error("there is no runnerctl in the PATH of a login to {host}{}", message_suffix(.words))]
    NotFound {
        /// The machine.
        host: Host,
        /// The message of the shell there.
        words: String,
    },
    /// The client there reported why it cannot reach its daemon.
    #[error("on {host}: {message}")]
    Remote {
        /// The machine.
        host: Host,
        /// The exit code there.
        code: i32,
        /// Its message.
        message: String,
        /// What to do about it there.
        hint: Option<String>,
    },
    /// The program exited without output that can be parsed.
    #[error("the line to {host} ended before a daemon answered ({status}){}", message_suffix(.words))]
    Exited {
        /// The machine.
        host: Host,
        /// How it exited.
        status: ProcessStatus,
        /// Its output on standard error.
        words: String,
    },
    /// Nothing was received in time.
    #[error("{host} did not answer within {seconds} seconds{}", message_suffix(.words))]
    TimedOut {
        /// The machine.
        host: Host,
        /// How long it was waited for.
        seconds: u64,
        /// Its output on standard error.
        words: String,
    },
    /// The connection cannot be read from.
    #[error("cannot talk to ssh to get to {host}")]
    Io {
        /// The machine.
        host: Host,
        /// The system's error.
        source: io::Error,
    },
}

fn message_suffix(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

impl SshError {
    /// Returns what the user can do, with the command to type.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::InsideIteration { .. } => Some("ask from outside of the run".into()),
            Self::Spawn { .. } => Some("install OpenSSH's client, so that PATH finds `ssh`".into()),
            Self::Ssh { host, .. }
            | Self::TimedOut { host, .. }
            | Self::Exited { host, .. }
            | Self::Io { host, .. } => {
                Some(format!("try it by hand: {}", host.ssh_command_line("runnerctl daemon status")))
            }
            Self::NotFound { host, .. } => Some(format!(
                "install both programs there, in a directory that this prints: {}",
                host.ssh_command_line("echo $PATH")
            )),
            Self::Remote { host, hint, .. } => hint.as_ref().map(|hint| format!("on {host}: {hint}")),
        }
    }

    /// Returns the exit code for a command that fails with this.
    pub(super) fn exit_status(&self) -> ExitStatus {
        match self {
            Self::InsideIteration { .. } => ExitStatus::Refused,
            Self::Remote { code, .. } => {
                let status = ExitStatus::TABLE.iter().find(|(status, _)| i32::from(status.code()) == *code);
                status.map_or(ExitStatus::Error, |(status, _)| *status)
            }
            Self::Spawn { .. }
            | Self::Ssh { .. }
            | Self::NotFound { .. }
            | Self::Exited { .. }
            | Self::TimedOut { .. }
            | Self::Io { .. } => ExitStatus::NoDaemon,
        }
    }
}

/// A connection, and the login at its other end.
#[derive(Debug)]
pub(super) struct SshConnection {
    /// The socket to the daemon.
    pub(super) stream: UnixStream,
    /// The variables of the login there.
    pub(super) environment: BTreeMap<String, String>,
    /// The program.
    pub(super) program: SshProcess,
}

/// The program of a connection, which is killed and reaped when no one needs the connection any more.
#[derive(Debug)]
pub(super) struct SshProcess {
    child: Child,
    /// Reads standard error, so that the program never waits to write there.
    _stderr: StderrTail,
}

impl Drop for SshProcess {
    fn drop(&mut self) {
        // It fails only where the program has exited.
        let _ = self.child.start_kill();
        let deadline = Instant::now() + REAP_TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(REAP_INTERVAL);
        }
    }
}

/// Opens a connection to the daemon of a machine.
pub(super) async fn connect(host: &Host, options: &ConnectOptions) -> Result<SshConnection, SshError> {
    if env::var_os(MARK_VARIABLE).is_some() {
        return Err(SshError::InsideIteration { host: host.clone() });
    }
    connect_within(CONNECT_TIMEOUT, host, options).await
}

async fn connect_within(limit: Duration, host: &Host, options: &ConnectOptions) -> Result<SshConnection, SshError> {
    let to_io_error = |source| SshError::Io { host: host.clone(), source };
    let (mut stream, child_end) = socket_pair().map_err(to_io_error)?;
    let (child, stderr) = spawn_ssh(host, options, child_end)?;
    match timeout(limit, StdioGreeting::read(&mut stream)).await {
        Ok(Ok(Some(greeting))) => {
            let program = SshProcess { child, _stderr: stderr };
            Ok(SshConnection { stream, environment: greeting.environment, program })
        }
        Ok(Ok(None)) => {
            drop(stream);
            Err(exit_error(host, child, stderr).await)
        }
        Ok(Err(error)) => Err(to_io_error(error)),
        Err(_) => {
            terminate(child).await;
            Err(SshError::TimedOut { host: host.clone(), seconds: limit.as_secs(), words: stderr.finish().await })
        }
    }
}

fn socket_pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (our_end, child_end) = StdStream::pair()?;
    our_end.set_nonblocking(true)?;
    Ok((UnixStream::from_std(our_end)?, child_end.into()))
}

/// Starts ssh with a fixed remote command. All of its words are constants or checked by [`Host`].
fn spawn_ssh(host: &Host, options: &ConnectOptions, child_end: OwnedFd) -> Result<(Child, StderrTail), SshError> {
    let failed = |source| SshError::Spawn { host: host.clone(), source };
    let mut command = Command::new("ssh");
    command.arg("-T");
    if options.unattended {
        command.args(["-o", "BatchMode=yes"]);
    }
    command.args(host.ssh_arguments()).args(["runnerctl", "stdio", "--json"]);
    if !options.spawn {
        command.arg("--no-spawn");
    }
    command.stdin(child_end.try_clone().map_err(failed)?).stdout(child_end).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(failed)?;
    let stderr = StderrTail::capture(child.stderr.take());
    Ok((child, stderr))
}

/// Lets ssh exit on its own: it may have turned off the terminal's echo.
async fn terminate(mut child: Child) {
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
        // If it has exited, no signal is needed.
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
    // It is killed on drop.
    let _ = timeout(EXIT_TIMEOUT, child.wait()).await;
}

/// Returns why a program has exited, from its exit code and its output.
async fn exit_error(host: &Host, mut child: Child, stderr: StderrTail) -> SshError {
    let host = host.clone();
    let status = match timeout(EXIT_TIMEOUT, child.wait()).await {
        Ok(Ok(status)) => status,
        Ok(Err(source)) => return SshError::Io { host, source },
        Err(_) => return SshError::TimedOut { host, seconds: EXIT_TIMEOUT.as_secs(), words: stderr.finish().await },
    };
    let stderr_text = stderr.finish().await;
    match (status.code(), RemoteError::parse_last(&stderr_text)) {
        (Some(SSH_FAILED), _) => SshError::Ssh { host, words: stderr_text },
        (Some(NOT_FOUND), _) => SshError::NotFound { host, words: stderr_text },
        (Some(code), Some(RemoteError { message, causes, hint })) => {
            let message = [vec![message], causes].concat().join(": ");
            SshError::Remote { host, code, message, hint }
        }
        (_, _) => SshError::Exited { host, status, words: stderr_text },
    }
}

/// The output of the client there on standard error, with `--json`.
#[derive(Debug, Deserialize)]
struct RemoteError {
    message: String,
    #[serde(default)]
    causes: Vec<String>,
    hint: Option<String>,
}

#[derive(Debug, Deserialize)]
struct RemoteErrorObject {
    error: RemoteError,
}

impl RemoteError {
    fn parse_last(stderr: &str) -> Option<Self> {
        stderr
            .lines()
            .rev()
            .find_map(|line| serde_json::from_str::<RemoteErrorObject>(line).ok())
            .map(|outer| outer.error)
    }
}

/// A program's standard error, of which the end is kept.
#[derive(Debug)]
struct StderrTail {
    end: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl StderrTail {
    fn capture(stream: Option<ChildStderr>) -> Self {
        let end = Arc::default();
        Self { reader: tokio::spawn(read_tail(stream, Arc::clone(&end))), end }
    }

    /// Returns the output once the program has exited.
    async fn finish(mut self) -> String {
        let _ = timeout(STDERR_TIMEOUT, &mut self.reader).await;
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&end).trim().to_owned()
    }
}

impl Drop for StderrTail {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn read_tail(stream: Option<ChildStderr>, end: Arc<Mutex<Vec<u8>>>) {
    let Some(mut stream) = stream else { return };
    let mut chunk = [0; STDERR_BYTES];
    while let Ok(read) = stream.read(&mut chunk).await {
        if read == 0 {
            return;
        }
        let mut end = end.lock().unwrap_or_else(PoisonError::into_inner);
        end.extend_from_slice(&chunk[..read]);
        let excess = end.len().saturating_sub(STDERR_BYTES);
        end.drain(..excess);
    }
}
