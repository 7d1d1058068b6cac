//! What daemon and shim say to each other: one order down, commands down, words up.
//!
//! Both ends are the same binary, so there is no version. The order travels through a socket, never through argv or
//! environment, where every process of the machine could read it.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead, Write as _},
    time::Duration,
};

use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Farewell, namespace::Namespaces};

/// First argument that makes the daemon's binary a shim.
pub const SHIM_COMMAND: &str = "__shim";

/// All that a shim has to know.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub program: OsString,
    pub argv: Vec<OsString>,
    pub cwd: OsString,
    pub env: Vec<(OsString, OsString)>,
    pub stdin: Vec<u8>,
    pub mark: String,
    pub lock: OsString,
    /// Time since boot.
    pub deadline: Duration,
    pub grace: Duration,
    pub farewell: Farewell,
    pub no_new_privs: bool,
    /// Most descriptors that may be open; none for as many as in the daemon.
    pub descriptors: Option<u64>,
    /// Folder of the control group that is made for the program.
    pub cgroup: Option<OsString>,
    pub namespaces: Option<Namespaces>,
    /// Folder that the program is not to see; only where there are namespaces.
    pub hidden: Option<OsString>,
}

/// One byte from the daemon; the end of the line means [`Command::Kill`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// The request to end, the grace, SIGKILL.
    Stop,
    /// SIGKILL.
    Kill,
}

impl Command {
    pub(super) fn to_byte(self) -> u8 {
        match self {
            Self::Stop => b'T',
            Self::Kill => b'K',
        }
    }

    /// Reads a byte; one that means nothing is taken for the safe command.
    pub(super) fn from_byte(byte: u8) -> Self {
        if byte == b'T' { Self::Stop } else { Self::Kill }
    }
}

/// One line to the daemon.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// The leader runs.
    Started,
    /// The leader could not be started; nothing ran. The last word.
    Refused { step: Step, errno: i32 },
    /// The leader ended by itself and others are left: the output may be drained before [`Command::Kill`].
    LeaderGone,
    /// Everything is over. The last word.
    Over(Over),
}

/// What the shim was doing when it failed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Step {
    SetUp,
    /// The shim has more threads than one.
    Threads,
    Cgroup,
    Namespace,
    /// The folder that the program is not to see could not be covered.
    Hide,
    LockFile,
    /// Another process holds it.
    Lock,
    Folder,
    Exec,
}

/// How it ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Over {
    pub cause: Cause,
    pub survivors: u32,
    pub still_alive: Vec<i32>,
}

/// What happened first.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Cause {
    Exited(i32),
    Signaled(i32),
    Deadline,
    /// The daemon asked, or is gone.
    Asked,
}

impl Cause {
    /// Reads how a process ended.
    pub(super) fn of(status: WaitStatus) -> Self {
        match status.terminating_signal() {
            Some(signal) => Self::Signaled(signal),
            None => Self::Exited(status.exit_status().unwrap_or(0)),
        }
    }
}

/// Puts a message on a line of its own.
pub(super) fn to_line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("BUG: messages to and from the shim are plain data");
    line.push(b'\n');
    line
}

/// Tells the daemon.
pub(super) fn say(mut status: &File, word: &Word) -> io::Result<()> {
    status.write_all(&to_line(word))
}

/// Reads the message on the next line.
pub(super) fn read_line<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<T> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}
