//! What daemon and shim say to each other: one order down, commands down, words up.
//!
//! Both ends are built of the same source, which the daemon makes sure of ([`BUILD`](crate::BUILD)), so there is no version. The
//! order travels through a socket, never through argv or environment, where every process of the machine could read it.

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

/// How a program is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopPolicy {
    /// SIGTERM to it and to all that descends from it.
    Terminate,
    /// SIGINT to the program alone, which then ends what it has started and says what it consumed.
    Interrupt,
}

/// All that a shim has to know.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShimOrder {
    /// File of the program.
    pub program: OsString,
    /// Its arguments, its name first.
    pub argv: Vec<OsString>,
    /// Folder that it starts in.
    pub cwd: OsString,
    /// Its whole environment, but for the mark.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads.
    pub stdin: Vec<u8>,
    /// Text of its mark.
    pub mark: String,
    /// File that is locked as long as anything of it may be alive.
    pub lock: OsString,
    /// When it is killed: time since boot.
    pub deadline: Duration,
    /// Time between the request to end and the kill.
    pub grace: Duration,
    /// How it is asked to end.
    pub farewell: StopPolicy,
    /// Whether it is denied privileges beyond the user's own.
    pub no_new_privs: bool,
    /// Most descriptors that may be open; none for as many as in the daemon.
    pub descriptors: Option<u64>,
    /// Folder of the control group that is made for the program.
    pub cgroup: Option<OsString>,
    /// What is put around it besides; none where the machine has no PID namespaces.
    pub namespaces: Option<NamespaceMode>,
    /// Folder that the program is not to see; only where there are namespaces.
    pub hidden: Option<OsString>,
}

/// One byte from the daemon; the end of the line means [`Command::Kill`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShimCommand {
    /// The request to end, the grace, SIGKILL.
    Stop,
    /// SIGKILL.
    Kill,
}

impl ShimCommand {
    /// Returns what is sent.
    pub fn to_byte(self) -> u8 {
        match self {
            Self::Stop => b'T',
            Self::Kill => b'K',
        }
    }

    /// Reads a byte; one that means nothing is taken for the safe command.
    pub(crate) fn from_byte(byte: u8) -> Self {
        if byte == b'T' { Self::Stop } else { Self::Kill }
    }
}

/// One line to the daemon.
#[derive(Debug, Serialize, Deserialize)]
pub enum ShimMessage {
    /// The leader runs.
    Started,
    /// The leader could not be started; nothing ran. The last word.
    Refused {
        /// What was being done.
        step: StartStep,
        /// What the system says.
        errno: i32,
    },
    /// The leader ended by itself and others are left: the output may be drained before [`Command::Kill`].
    LeaderGone,
    /// Everything is over. The last word.
    Over(FinalReport),
}

/// What the shim was doing when it failed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum StartStep {
    /// It was getting ready.
    SetUp,
    /// The shim has more threads than one.
    Threads,
    /// The control group could not be made or entered.
    Cgroup,
    /// The PID namespace could not be made.
    Namespace,
    /// The folder that the program is not to see could not be covered.
    Hide,
    /// The lock file could not be opened.
    LockFile,
    /// Another process holds it.
    Lock,
    /// The program's folder could not be entered.
    Folder,
    /// The program could not be run.
    Exec,
}

/// How it ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct FinalReport {
    /// What happened first.
    pub cause: EndCause,
    /// How many processes were killed besides the leader.
    pub survivors: u32,
    /// Those that the kill has left.
    pub still_alive: Vec<i32>,
}

/// What happened first.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum EndCause {
    /// The leader exited with a code.
    Exited(i32),
    /// A signal ended the leader.
    Signaled(i32),
    /// Its time was over.
    Deadline,
    /// The daemon asked, or is gone.
    Asked,
}

impl EndCause {
    /// Reads how a process ended.
    pub(crate) fn from_status(status: WaitStatus) -> Self {
        match status.terminating_signal() {
            Some(signal) => Self::Signaled(signal),
            None => Self::Exited(status.exit_status().unwrap_or(0)),
        }
    }
}

/// Puts a message on a line of its own.
pub fn to_line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("BUG: messages to and from the shim are plain data");
    line.push(b'\n');
    line
}

/// Tells the daemon.
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
