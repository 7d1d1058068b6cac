//! The daemon's end of a shim: commands down, words up, and the process itself.
//!
//! Dropping it closes the live pipe, which makes the shim kill everything and end.

use std::{io, path::Path, process::Stdio, time::Duration};

use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    unistd::pipe2,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::unix::pipe,
    process::{Child, ChildStdin, ChildStdout, Command as Program},
    time::timeout,
};

use super::{
    mark::{self, Mark},
    wire::{SHIM_COMMAND, Word},
};

/// Size of the output pipe, where the system allows it, and of the reads from it.
pub(super) const OUTPUT_PIPE: usize = 1 << 20;
/// Time for a shim to end after its last word.
const EXIT_LIMIT: Duration = Duration::from_secs(5);

/// A running shim.
pub(super) struct Link {
    child: Child,
    live: ChildStdin,
    words: Lines<BufReader<ChildStdout>>,
}

impl Link {
    /// Starts a shim, which then waits for its order, and returns the reading end of its program's output.
    pub(super) fn open(shim: &Path, mark: &Mark) -> io::Result<(Self, pipe::Receiver)> {
        let (output, writer) = pipe2(OFlag::O_CLOEXEC)?;
        // Refused to a user who holds many pipes; the default size is only slower.
        let _ = fcntl(&output, FcntlArg::F_SETPIPE_SZ(1 << 20));
        let mut child = Program::new(shim)
            .arg(SHIM_COMMAND)
            .env_clear()
            .env(mark::VARIABLE, mark.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(writer)
            .spawn()?;
        let live = child.stdin.take().expect("BUG: standard input is a pipe");
        let status = child.stdout.take().expect("BUG: standard output is a pipe");
        let link = Self { child, live, words: BufReader::new(status).lines() };
        Ok((link, pipe::Receiver::from_owned_fd(output)?))
    }

    /// Sends bytes down. A shim that is gone is seen by its words, which end.
    pub(super) async fn send(&mut self, bytes: &[u8]) {
        let _ = self.live.write_all(bytes).await;
    }

    /// Waits for the next word; `None` means that the shim is gone. May be dropped and called again without loss.
    pub(super) async fn next_word(&mut self) -> Option<Word> {
        let line = self.words.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }

    /// Kills the shim itself, which also works on one that is stopped, and waits for its end.
    pub(super) async fn kill(&mut self) {
        let _ = self.child.start_kill();
        let _ = timeout(EXIT_LIMIT, self.child.wait()).await;
    }

    /// Waits for the end of a shim that has said its last word.
    pub(super) async fn close(&mut self) {
        if timeout(EXIT_LIMIT, self.child.wait()).await.is_err() {
            self.kill().await;
        }
    }
}
