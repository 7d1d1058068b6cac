//! The protocol between daemon and shim: one order down, commands down, messages up.
//!
//! Both ends are built from the same source, which the daemon checks ([`BUILD`](crate::BUILD)), so there is no version.
//! The order is sent through a socket, never through argv or environment, where every process on the machine could read
//! it.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead, Write as _},
    time::Duration,
};

use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::namespace::NamespaceMode;

/// First argument that makes a program a shim.
pub const SHIM_COMMAND: &str = "__shim";

/// How a program is asked to exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopPolicy {
    /// SIGTERM to the program and all its descendants.
    Terminate,
    /// SIGINT to the program alone, which then ends what it has started and reports what it consumed.
    Interrupt,
}

/// Everything that a shim needs to know.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShimOrder {
    /// Path of the program.
    pub program: OsString,
    /// Its arguments, starting with its name.
    pub argv: Vec<OsString>,
    /// The folder in which it starts.
    pub cwd: OsString,
    /// Its whole environment, except for the mark.
    pub env: Vec<(OsString, OsString)>,
    /// The content of its standard input.
    pub stdin: Vec<u8>,
    /// Text of its mark.
    pub mark: String,
    /// File that stays locked as long as any of its processes may be alive.
    pub lock: OsString,
    /// When it is killed: time since boot.
    pub deadline: Duration,
    /// Time between the request to exit and the kill.
    pub grace: Duration,
    /// How it is asked to exit.
    pub farewell: StopPolicy,
    /// Whether it is denied privileges beyond the user's own (`no_new_privs`).
    pub no_new_privs: bool,
    /// Limit on open descriptors; `None` for the daemon's limit.
    pub descriptors: Option<u64>,
    /// Folder of the control group to create for the program.
    pub cgroup: Option<OsString>,
    /// Namespaces to put around it; `None` if the machine has no PID namespaces.
    pub namespaces: Option<NamespaceMode>,
    /// Folder to hide from the program; only with namespaces.
    pub hidden: Option<OsString>,
}

/// One byte from the daemon; the end of the line means [`ShimCommand::Kill`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShimCommand {
    /// Ask to exit, wait for the grace, then SIGKILL.
    Stop,
    /// SIGKILL at once.
    Kill,
}

impl ShimCommand {
    /// Returns the byte to send.
    pub fn to_byte(self) -> u8 {
        match self {
            Self::Stop => b'T',
            Self::Kill => b'K',
        }
    }

    /// Decodes a byte; an unknown one counts as the safe command.
    pub(crate) fn from_byte(byte: u8) -> Self {
        if byte == b'T' { Self::Stop } else { Self::Kill }
    }
}

/// A message to the daemon, one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub enum ShimMessage {
    /// The leader is running.
    Started,
    /// The leader could not be started; nothing ran. The last message.
    Refused {
        /// The step that failed.
        step: StartStep,
        /// The error number of the system.
        errno: i32,
    },
    /// The leader exited on its own and others are left: the output may be drained before [`ShimCommand::Kill`].
    LeaderGone,
    /// Everything is over. The last message.
    Over(FinalReport),
}

/// The step in which starting a program failed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum StartStep {
    /// Preparing the shim.
    SetUp,
    /// Checking that the shim has only one thread.
    Threads,
    /// Creating or entering the control group.
    Cgroup,
    /// Creating the PID namespace.
    Namespace,
    /// Covering the folder to hide from the program.
    Hide,
    /// Opening the lock file.
    LockFile,
    /// Locking it: another process holds the lock.
    Lock,
    /// Entering the program's folder.
    Folder,
    /// Executing the program.
    Exec,
}

/// How a program ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct FinalReport {
    /// What ended it first.
    pub cause: EndCause,
    /// Number of processes killed in addition to the leader.
    pub survivors: u32,
    /// Process ids that survived the kill.
    pub still_alive: Vec<i32>,
}

/// What ended a program first.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum EndCause {
    /// The leader exited with a code.
    Exited(i32),
    /// A signal ended the leader.
    Signaled(i32),
    /// Its deadline passed.
    Deadline,
    /// The daemon asked for it, or is gone.
    Asked,
}

impl EndCause {
    /// Converts the wait status of a process.
    pub(crate) fn from_status(status: WaitStatus) -> Self {
        match status.terminating_signal() {
            Some(signal) => Self::Signaled(signal),
            None => Self::Exited(status.exit_status().unwrap_or(0)),
        }
    }
}

/// Serializes a message as one line.
pub fn to_line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("BUG: messages to and from the shim are plain data");
    line.push(b'\n');
    line
}

/// Sends a message to the daemon.
pub(crate) fn send_message(mut status: &File, word: &ShimMessage) -> io::Result<()> {
    status.write_all(&to_line(word))
}

/// Reads the message on the next line.
pub(crate) fn read_line<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<T> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}
