//! What can go wrong between a client and the daemon, and what the user can do about it.
//!
//! The daemon's own refusals arrive as [`ErrorData`] and are passed on as they are.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus as ProcessStatus;

use jsonrpsee::core::ClientError;
use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::types::error::{INTERNAL_ERROR_CODE, METHOD_NOT_FOUND_CODE};

use super::address::Address;
use super::ssh::SshError;
use crate::api::API_VERSION;
use crate::error::{ERROR_CODE, ErrorData, ErrorKind, ExitStatus};
use crate::paths::{PathsError, SOCKET_VARIABLE, STATE_VARIABLE};
use crate::private_dir::PrivateDirError;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The paths cannot be found.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// No daemon is running, and none was to be started.
    #[error("no daemon listens on {socket}")]
    NoDaemon {
        /// The socket.
        socket: PathBuf,
    },
    /// No daemon is running, and a process of an iteration may not start one.
    #[error("no daemon listens on {socket}, and none is started from inside an iteration")]
    InsideIteration {
        /// The socket.
        socket: PathBuf,
    },
    /// The socket exists but cannot be connected to.
    #[error("cannot connect to {socket}")]
    Unreachable {
        /// The socket.
        socket: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system refuses this program another thread.
    #[error("cannot start the thread of a connection")]
    Thread(#[source] io::Error),
    /// The listening process belongs to another user.
    #[error("the process that listens on {socket} belongs to user {owner}: nothing was sent")]
    Foreign {
        /// The socket.
        socket: PathBuf,
        /// User id of the listener.
        owner: u32,
    },
    /// The listener does not respond as a daemon does.
    #[error("no daemon answers on {at}: {reason}")]
    Handshake {
        /// The address used.
        at: Address,
        /// What was received instead.
        reason: String,
    },
    /// Client and daemon speak different versions.
    #[error(
        "this client speaks version {} of the API, the daemon on {at} (runnerd {daemon_version}) speaks {api_version}",
        API_VERSION
    )]
    ProtocolMismatch {
        /// The address used.
        at: Address,
        /// Version of the daemon's program.
        daemon_version: String,
        /// Version of its API.
        api_version: u32,
    },
    /// The daemon does not know this client's first request.
    #[error(
        "the daemon on {at}{process} is of a development build, which this client does not speak to",
        process = .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    DevelopmentBuild {
        /// The address used.
        at: Address,
        /// Its process id, on its own machine.
        pid: Option<u32>,
    },
    /// The daemon refused the first request.
    #[error(transparent)]
    Refused(#[from] ErrorData),
    /// The daemon could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Another machine could not be reached.
    #[error(transparent)]
    Ssh(#[from] SshError),
}

/// Why the daemon could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The folder of the socket or of the state cannot be used.
    #[error(transparent)]
    Folder(#[from] crate::private_dir::PrivateDirError),
    /// A file required for the start cannot be used.
    #[error("cannot open {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The program cannot be executed.
    #[error("cannot run {program}")]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The daemon exited before it was ready.
    #[error("{program} did not start ({status}){}", excerpt(.log, .tail))]
    Exited {
        /// The program.
        program: PathBuf,
        /// How it exited.
        status: ProcessStatus,
        /// The log that it wrote.
        log: PathBuf,
        /// The end of that log.
        tail: String,
    },
    /// The daemon reported why it cannot start.
    #[error("{program} did not start: {reason}")]
    Reported {
        /// The program.
        program: PathBuf,
        /// Its message.
        reason: String,
    },
    /// The daemon was not ready in time; its start continues.
    #[error("{program} was not ready within {seconds} seconds{}", excerpt(.log, .tail))]
    NotReady {
        /// The program.
        program: PathBuf,
        /// How long the client waited.
        seconds: u64,
        /// The log that it writes.
        log: PathBuf,
        /// The end of that log.
        tail: String,
    },
    /// Another client was starting the daemon the whole time.
    #[error("another client holds {lock} and the daemon it starts does not come up")]
    LockTimeout {
        /// The lock.
        lock: PathBuf,
    },
}

fn excerpt(log: &Path, tail: &str) -> String {
    if tail.is_empty() {
        return format!("; it wrote nothing to {}", log.display());
    }
    format!("; the end of {}:\n{tail}", log.display())
}

impl ConnectError {
    /// The listener closed the connection before it replied.
    pub(super) fn connection_closed(at: &Address) -> Self {
        Self::Handshake { at: at.clone(), reason: "it closed the connection".into() }
    }

    /// Whether the error only says that no daemon is running: one may start later.
    pub fn is_no_daemon(&self) -> bool {
        let no_daemon = i32::from(ExitStatus::NoDaemon.code());
        matches!(self, Self::NoDaemon { .. })
            || matches!(self, Self::Ssh(SshError::Remote { code, .. }) if *code == no_daemon)
    }

    /// Returns what the user can do, with the command to type.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoDaemon { .. } => Some("`runnerctl daemon run`, or the same command without --no-spawn".into()),
            Self::InsideIteration { .. } => Some("start the daemon from outside: `runnerctl status`".into()),
            Self::ProtocolMismatch { api_version, .. } if *api_version > API_VERSION => {
                Some("the client is the older one: update runnerctl".into())
            }
            Self::ProtocolMismatch { at: Address::Host(host), .. } => Some(format!(
                "the daemon is the older one: update runnerd on {host}, then `runnerctl --host {host} daemon stop`; the \
                 next command starts it"
            )),
            Self::ProtocolMismatch { .. } => Some(
                "the daemon is the older one: update runnerd, then `runnerctl daemon stop`; the next command starts it"
                    .into(),
            ),
            Self::DevelopmentBuild { at, pid } => {
                let kill = format!("kill {}", (*pid)?);
                let command = at.host().map_or_else(|| kill.clone(), |host| host.ssh_command_line(&kill));
                Some(format!(
                    "`{command}` stops it as a daemon is stopped; the next command starts the one that is installed"
                ))
            }
            Self::Refused(refusal) => refusal.hint.clone(),
            Self::Ssh(error) => error.hint(),
            Self::Start(StartError::Spawn { .. }) => Some("install runnerd beside runnerctl or in PATH".into()),
            Self::Start(StartError::Folder(PrivateDirError::Create { .. })) => Some(format!(
                "name a directory that can be written to: {STATE_VARIABLE}=/PATH; sockets have {SOCKET_VARIABLE}"
            )),
            Self::Paths(_)
            | Self::Unreachable { .. }
            | Self::Thread(_)
            | Self::Foreign { .. }
            | Self::Handshake { .. }
            | Self::Start(_) => None,
        }
    }

    /// Returns the exit code for a command that fails with this.
    pub fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Paths(_) => ExitStatus::Usage,
            Self::NoDaemon { .. } | Self::Unreachable { .. } | Self::Handshake { .. } | Self::Start(_) => {
                ExitStatus::NoDaemon
            }
            Self::Thread(_) => ExitStatus::Error,
            Self::InsideIteration { .. } | Self::Foreign { .. } => ExitStatus::Refused,
            Self::ProtocolMismatch { .. } | Self::DevelopmentBuild { .. } => ExitStatus::ProtocolMismatch,
            Self::Refused(refusal) => refusal.kind.into(),
            Self::Ssh(error) => error.exit_status(),
        }
    }
}

/// Why a request got no reply.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The daemon returned an error.
    #[error(transparent)]
    Refused(ErrorData),
    /// The daemon exited or closed the connection; it is unknown whether it acted on the request.
    #[error("the daemon is gone")]
    Gone,
    /// The daemon did not reply in time.
    #[error("the daemon did not reply in time")]
    Timeout,
    /// This client cannot parse the reply.
    #[error("the daemon's reply is not understood: {0}")]
    Protocol(String),
}

impl CallError {
    /// Returns the exit code for a command that fails with this.
    pub fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Refused(refusal) => refusal.kind.into(),
            Self::Gone => ExitStatus::NoDaemon,
            Self::Timeout | Self::Protocol(_) => ExitStatus::Error,
        }
    }
}

impl From<ClientError> for CallError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Call(object) => from_error_object(&object),
            ClientError::Transport(_) | ClientError::RestartNeeded(_) | ClientError::ServiceDisconnect => Self::Gone,
            ClientError::RequestTimeout => Self::Timeout,
            other => Self::Protocol(other.to_string()),
        }
    }
}

fn from_error_object(object: &ErrorObjectOwned) -> CallError {
    let data = object.data().map(|data| serde_json::from_str::<ErrorData>(data.get()));
    match (object.code(), data) {
        (ERROR_CODE, Some(Ok(refusal))) => CallError::Refused(refusal),
        // Only a later version knows this kind: the person still sees the message.
        (ERROR_CODE, _) => CallError::Refused(ErrorData::new(ErrorKind::Fault, object.message())),
        (METHOD_NOT_FOUND_CODE, _) => CallError::Refused(
            ErrorData::new(ErrorKind::ProtocolMismatch, "the daemon does not know this request")
                .hint("update runnerd, then `runnerctl daemon stop`; the next command starts it"),
        ),
        (INTERNAL_ERROR_CODE, _) => CallError::Refused(ErrorData::new(ErrorKind::Bug, object.message())),
        (code, _) => CallError::Protocol(format!("{} (code {code})", object.message())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_survives_the_wire() {
        let refusal = ErrorData::new(ErrorKind::DirtyTree, "2 files are not committed").hint("git commit");
        let CallError::Refused(back) = ClientError::Call(refusal.clone().into()).into() else {
            panic!("not a refusal")
        };
        assert_eq!(back, refusal);
    }

    #[test]
    fn a_kind_of_a_later_version_keeps_its_message() {
        let data = serde_json::json!({"kind": "moon_phase", "message": "m"});
        let object = ErrorObjectOwned::owned(ERROR_CODE, "the moon is full", Some(data));
        let CallError::Refused(back) = ClientError::Call(object).into() else { panic!("not a refusal") };
        assert_eq!((back.kind, back.message.as_str()), (ErrorKind::Fault, "the moon is full"));
    }

    #[test]
    fn an_unknown_method_says_that_the_daemon_is_older() {
        let object = ErrorObjectOwned::owned(METHOD_NOT_FOUND_CODE, "Method not found", None::<()>);
        let error = CallError::from(ClientError::Call(object));
        assert_eq!(error.exit_status(), ExitStatus::ProtocolMismatch);
    }

    #[test]
    fn the_older_side_is_the_one_to_update() {
        let mismatch = |api_version| ConnectError::ProtocolMismatch {
            at: Address::Socket("/run/r.sock".into()),
            daemon_version: "9.9".into(),
            api_version,
        };
        assert!(mismatch(API_VERSION + 1).hint().unwrap().contains("update runnerctl"));
        assert!(mismatch(API_VERSION - 1).hint().unwrap().contains("update runnerd"));
        assert_eq!(mismatch(2).exit_status(), ExitStatus::ProtocolMismatch);
    }

    #[test]
    fn a_daemon_of_a_development_build_is_named_with_the_command_that_stops_it() {
        let development_build = |at, pid| ConnectError::DevelopmentBuild { at, pid };
        let local_build = development_build(Address::Socket("/run/r.sock".into()), Some(4711));
        assert!(
            local_build.to_string().starts_with("the daemon on /run/r.sock (pid 4711) is of a development build"),
            "{local_build}"
        );
        assert!(local_build.hint().unwrap().starts_with("`kill 4711` "));
        assert_eq!(local_build.exit_status(), ExitStatus::ProtocolMismatch);
        let remote_build = development_build(Address::Host("ssh://me@there".parse().unwrap()), Some(4711));
        assert_eq!(remote_build.hint().unwrap().split('`').nth(1), Some("ssh -t -l me there 'kill 4711'"));
        assert_eq!(
            development_build(Address::Socket("/run/r.sock".into()), None).hint(),
            None,
            "nobody is to be guessed"
        );
    }
}
