//! Runs a program of the person's own with their environment, never through a shell; what it says is kept within bounds.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{ExitStatus as Ended, Stdio};

use protocol::error::ExitStatus;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::failure::Failure;

/// Most bytes of an answer; what is more is read and forgotten, and the answer not taken.
const MAX_SAID: usize = 16 << 20;
/// Variables by which git is told which repository it works on, as `git rev-parse --local-env-vars` lists them.
const LOCAL: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];
/// Lines of a complaint that are told.
const TOLD_LINES: usize = 20;

/// One start of a program.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// The program and its arguments.
    pub(crate) argv: Vec<OsString>,
    /// The folder that it works in.
    pub(crate) folder: &'a Path,
    /// Variables beside the person's own.
    pub(crate) env: &'static [(&'static str, &'static str)],
    /// What it reads from standard input.
    pub(crate) input: Vec<u8>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Said {
    /// How it ended.
    pub(crate) ended: Ended,
    /// What it printed.
    pub(crate) out: String,
    /// What it complained.
    pub(crate) complaint: String,
}

/// Why there is nothing to tell of a program.
#[derive(Debug)]
pub(crate) enum Unstarted {
    /// There is no such program.
    Missing,
    /// Something else of the system.
    Failed(Failure),
}

impl Said {
    /// Returns what it printed where it ended well; else the failure, which says what was being done.
    pub(crate) fn fine(self, kind: &'static str, doing: &str) -> Result<String, Failure> {
        if self.ended.success() { Ok(self.out) } else { Err(self.failure(kind, doing)) }
    }

    /// Returns the failure of a program that has complained.
    pub(crate) fn failure(&self, kind: &'static str, doing: &str) -> Failure {
        let lines: Vec<&str> = self.complaint.lines().filter(|line| !line.trim().is_empty()).collect();
        let told = lines[lines.len().saturating_sub(TOLD_LINES)..].join("\n");
        let cause = if told.is_empty() { format!("it ended with {}", self.ended) } else { told };
        Failure::new(ExitStatus::Error, kind, doing).caused_by(cause)
    }
}

/// Runs a program to its end.
pub(crate) async fn run(call: Call<'_>) -> Result<Said, Unstarted> {
    let name = call.argv.first().cloned().unwrap_or_default();
    let failed = |error: io::Error| {
        Unstarted::Failed(Failure::io(format!("running {} in {}", name.display(), call.folder.display()), &error))
    };
    let mut command = Command::new(&name);
    command.args(call.argv.iter().skip(1)).current_dir(call.folder).envs(call.env.iter().copied());
    // Whoever calls from within git, such as a hook, has a repository of their own in mind.
    for variable in LOCAL {
        command.env_remove(variable);
    }
    command.stdin(if call.input.is_empty() { Stdio::null() } else { Stdio::piped() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = match command.spawn() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Unstarted::Missing),
        child => child.map_err(failed)?,
    };
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read what it is told is not wrong for that.
            let _ = stdin.write_all(&call.input).await;
        }
    };
    let ((), out, complaint, ended) = tokio::join!(write, kept(stdout), kept(stderr), child.wait());
    Ok(Said {
        ended: ended.map_err(failed)?,
        out: out.map_err(failed)?,
        complaint: complaint.unwrap_or_else(|error| error.to_string()),
    })
}

/// Reads a stream to its end.
async fn kept(stream: Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let Some(mut stream) = stream else { return Ok(String::new()) };
    let (mut kept, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    let mut is_too_much = false;
    loop {
        match stream.read(&mut piece).await? {
            0 if is_too_much => return Err(io::Error::other(format!("it said more than {MAX_SAID} bytes"))),
            0 => return Ok(String::from_utf8_lossy(&kept).into_owned()),
            read if kept.len() + read > MAX_SAID => is_too_much = true,
            read => kept.extend_from_slice(&piece[..read]),
        }
    }
}
