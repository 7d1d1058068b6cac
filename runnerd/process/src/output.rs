//! Moves the output of a running program from the pipes to the log and to listeners.

use std::{future::poll_fn, mem, task::Poll};

use tokio::sync::mpsc;

use super::{
    capture::{CaptureReport, LogCapture},
    pipe_reader::{FillResult, PIPE_BYTES, PipeReader},
    shim_link::OutputPipes,
    spec::{OutputFollower, OutputPiece, OutputStream},
};

/// Size in bytes of the chunks for everything except watchers.
const CHUNK_BYTES: usize = 1 << 17;

/// Size in bytes of the chunks for a watcher, whose channel thus bounds its memory.
const PIECE_BYTES: usize = 1 << 13;

/// The output of a program, and where its bytes go.
pub(super) struct ProgramOutput<'a> {
    sources: Vec<OutputSource>,
    buffer: Vec<u8>,
    sink: OutputSink<'a>,
}

/// A reading end of a program's output.
struct OutputSource {
    reader: PipeReader,
    is_open: bool,
    /// The stream that comes through it; `None` if both do.
    stream: Option<OutputStream>,
}

/// Receivers of a program's output in addition to its log.
pub(super) struct OutputListeners<'a> {
    pub(super) follower: Option<Box<dyn OutputFollower + 'a>>,
    pub(super) watcher: Option<mpsc::Sender<OutputPiece>>,
}

struct OutputSink<'a> {
    capture: LogCapture,
    follower: Option<Box<dyn OutputFollower + 'a>>,
    watcher: Option<OutputWatch>,
}

/// A watcher, and whether it missed the last part.
struct OutputWatch {
    watcher: mpsc::Sender<OutputPiece>,
    has_gap: bool,
}

impl<'a> ProgramOutput<'a> {
    pub(super) fn new(pipes: OutputPipes, capture: LogCapture, listeners: OutputListeners<'a>) -> Self {
        let OutputListeners { follower, watcher } = listeners;
        let watcher = watcher.map(|watcher| OutputWatch { watcher, has_gap: false });
        let source = |tap, stream| OutputSource { reader: tap, is_open: true, stream };
        let sources = match pipes.separate {
            None => vec![source(pipes.combined, None)],
            Some(apart) => {
                vec![source(apart, Some(OutputStream::Output)), source(pipes.combined, Some(OutputStream::Error))]
            }
        };
        Self { sources, buffer: vec![0; CHUNK_BYTES], sink: OutputSink { capture, follower, watcher } }
    }

    /// Whether a process may still write.
    pub(super) fn is_open(&self) -> bool {
        self.sources.iter().any(|source| source.is_open)
    }

    /// Whether the program has given its answer.
    pub(super) fn has_answered(&mut self) -> bool {
        self.sink.follower.as_mut().is_some_and(|follower| follower.has_answered())
    }

    /// Waits until there is something to read. Cancel-safe.
    pub(super) async fn wait_ready(&self) {
        poll_fn(|context| {
            let mut open = self.sources.iter().filter(|source| source.is_open);
            if open.any(|source| source.reader.poll_readable(context).is_ready()) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Reads the available bytes of each pipe.
    pub(super) async fn drain(&mut self) {
        for source in self.sources.iter_mut().filter(|source| source.is_open) {
            source.is_open = source.reader.fill() != FillResult::End;
            self.sink.deliver(source, &mut self.buffer).await;
        }
    }

    /// Reads what is in the pipes now, and no more than fits into them: an undetected writer may still be running.
    pub(super) async fn drain_rest(&mut self) {
        for source in &mut self.sources {
            let mut remaining = PIPE_BYTES;
            while let FillResult::Bytes(count) = source.reader.fill_up_to(remaining) {
                self.sink.deliver(source, &mut self.buffer).await;
                remaining -= count;
            }
        }
    }

    /// Completes the log.
    pub(super) async fn finish(self) -> CaptureReport {
        self.sink.capture.finish_log().await
    }
}

impl OutputSink<'_> {
    /// Stores the bytes that were drawn.
    async fn deliver(&mut self, source: &OutputSource, buffer: &mut [u8]) {
        while let Some(chunk) = source.reader.read_chunk(buffer) {
            if let Some(watch) = &mut self.watcher {
                watch.send_chunk(chunk);
            }
            if let (Some(follower), Some(stream)) = (&mut self.follower, source.stream) {
                follower.on_output(stream, chunk);
            }
            self.capture.write_chunk(chunk).await;
        }
    }
}

impl OutputWatch {
    /// Sends a chunk to the watcher. One that does not keep up misses a part; the program must not wait for it.
    fn send_chunk(&mut self, chunk: &[u8]) {
        for part in chunk.chunks(PIECE_BYTES) {
            let Ok(permit) = self.watcher.try_reserve() else {
                self.has_gap = true;
                return;
            };
            permit.send(OutputPiece { bytes: part.to_vec(), after_gap: mem::take(&mut self.has_gap) });
        }
    }
}
