//! The daemon's end of a shim: commands down, messages up, and the process itself.
//!
//! Dropping it closes the line, which makes the shim kill everything and exit.

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

use supervisor::{SHIM_COMMAND, ShimMessage, VARIABLE};

use super::{ProgramSpec, pipe_reader::PipeReader};

/// Time limit for a shim to exit after its last message.
const EXIT_LIMIT: Duration = Duration::from_secs(5);

/// A running shim.
pub(super) struct ShimLink {
    child: Child,
    writer: OwnedWriteHalf,
    messages: Lines<BufReader<OwnedReadHalf>>,
}

/// The reading ends of a program's output.
pub(super) struct OutputPipes {
    /// Its standard error; also its standard output, in order, if [`separate`](Self::separate) is `None`.
    pub(super) combined: PipeReader,
    /// Its standard output, if it is split off.
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
        Ok((
            Self { child, writer, messages: BufReader::new(incoming).lines() },
            OutputPipes { combined: common, separate: apart },
        ))
    }

    /// Sends bytes to the shim. Errors are ignored: if the shim is gone, its messages end.
    pub(super) async fn send(&mut self, bytes: &[u8]) {
        let _ = self.writer.write_all(bytes).await;
    }

    /// Waits for the next message; `None` means that the shim is gone. Cancel-safe.
    pub(super) async fn next_message(&mut self) -> Option<ShimMessage> {
        let line = self.messages.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }

    /// Kills the shim itself, even a stopped one, and waits for its exit.
    pub(super) async fn kill(&mut self) {
        let _ = self.child.start_kill();
        let _ = timeout(EXIT_LIMIT, self.child.wait()).await;
    }

    /// Waits for the exit of a shim that has sent its last message.
    pub(super) async fn close(&mut self) {
        if timeout(EXIT_LIMIT, self.child.wait()).await.is_err() {
            self.kill().await;
        }
    }
}
