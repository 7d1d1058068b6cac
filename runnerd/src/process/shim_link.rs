//! The daemon's end of a shim: commands down, words up, and the process itself.
//!
//! Dropping it closes the line between both, which makes the shim kill everything and end.

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as Socket},
    path::Path,
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    process::{Child, Command as Program},
    time::timeout,
};

use supervisor::{SHIM_COMMAND, VARIABLE, ShimMessage};

use super::{ProgramSpec, pipe_reader::PipeReader};

/// Time for a shim to end after its last word.
const EXIT_LIMIT: Duration = Duration::from_secs(5);

/// A running shim.
pub(super) struct ShimLink {
    child: Child,
    writer: OwnedWriteHalf,
    messages: Lines<BufReader<OwnedReadHalf>>,
}

/// The reading ends of a program's output.
pub(super) struct OutputPipes {
    /// Its standard error; without [`apart`](Self::apart) also its standard output, in order.
    pub(super) combined: PipeReader,
    /// Its standard output, where that is kept apart.
    pub(super) separate: Option<PipeReader>,
}

impl ShimLink {
    /// Starts a shim, which then waits for its order, and returns the reading ends of its program's output.
    pub(super) fn open_shim(shim: &Path, spec: &ProgramSpec<'_>) -> io::Result<(Self, OutputPipes)> {
        let (own_end, shim_end) = Socket::pair()?;
        own_end.set_nonblocking(true)?;
        let (common, error_writer) = PipeReader::open_pipe()?;
        let (apart, output_writer) = if spec.separates_output {
            let (apart, writer) = PipeReader::open_pipe()?;
            (Some(apart), writer)
        } else {
            (None, error_writer.try_clone()?)
        };
        let child = Program::new(shim)
            .arg(SHIM_COMMAND)
            .env_clear()
            .env(VARIABLE, spec.mark.as_str())
            .stdin(Stdio::from(OwnedFd::from(shim_end)))
            .stdout(output_writer)
            .stderr(error_writer)
            .spawn()?;
        let (incoming, writer) = UnixStream::from_std(own_end)?.into_split();
        Ok((Self { child, writer, messages: BufReader::new(incoming).lines() }, OutputPipes { combined: common, separate: apart }))
    }

    /// Sends bytes down. A shim that is gone is seen by its words, which end.
    pub(super) async fn send(&mut self, bytes: &[u8]) {
        let _ = self.writer.write_all(bytes).await;
    }

    /// Waits for the next word; `None` means that the shim is gone. May be dropped and called again without loss.
    pub(super) async fn next_message(&mut self) -> Option<ShimMessage> {
        let line = self.messages.next_line().await.ok()??;
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
