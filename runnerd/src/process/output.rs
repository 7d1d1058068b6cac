//! The output of a running program on its way from the pipes to the log and to whoever listens.

use std::{future::poll_fn, mem, task::Poll};

use tokio::sync::mpsc;

use super::{
    capture::{Capture, Captured},
    link::Pipes,
    spec::{Follower, Piece, Stream},
    tap::{Drawn, PIPE_BYTES, Tap},
};

/// Size of the chunks that everything else gets to see.
const CHUNK: usize = 1 << 17;

/// Size of the chunks for a watcher, so that its channel bounds its memory.
const PIECE: usize = 1 << 13;

/// The output of a program, and where its bytes go.
pub(super) struct Output<'a> {
    sources: Vec<Source>,
    buffer: Vec<u8>,
    sink: Sink<'a>,
}

/// A reading end of a program's output.
struct Source {
    tap: Tap,
    is_open: bool,
    /// The one stream that comes through it; none where both do.
    stream: Option<Stream>,
}

/// Who gets to know what a program prints, besides its log.
pub(super) struct Listeners<'a> {
    pub(super) follower: Option<Box<dyn Follower + 'a>>,
    pub(super) watcher: Option<mpsc::Sender<Piece>>,
}

struct Sink<'a> {
    capture: Capture,
    follower: Option<Box<dyn Follower + 'a>>,
    watch: Option<Watch>,
}

/// Whoever watches, and whether they missed what came last.
struct Watch {
    watcher: mpsc::Sender<Piece>,
    has_missed: bool,
}

impl<'a> Output<'a> {
    pub(super) fn new(pipes: Pipes, capture: Capture, listeners: Listeners<'a>) -> Self {
        let Listeners { follower, watcher } = listeners;
        let watch = watcher.map(|watcher| Watch { watcher, has_missed: false });
        let source = |tap, stream| Source { tap, is_open: true, stream };
        let sources = match pipes.apart {
            None => vec![source(pipes.common, None)],
            Some(apart) => vec![source(apart, Some(Stream::Output)), source(pipes.common, Some(Stream::Error))],
        };
        Self { sources, buffer: vec![0; CHUNK], sink: Sink { capture, follower, watch } }
    }

    /// Returns whether a process may still write.
    pub(super) fn is_open(&self) -> bool {
        self.sources.iter().any(|source| source.is_open)
    }

    /// Returns whether the program has given its answer.
    pub(super) fn has_answered(&mut self) -> bool {
        self.sink.follower.as_mut().is_some_and(|follower| follower.has_answered())
    }

    /// Waits until there is something to take. May be dropped and called again without loss.
    pub(super) async fn ready(&self) {
        poll_fn(|context| {
            let mut open = self.sources.iter().filter(|source| source.is_open);
            if open.any(|source| source.tap.poll_ready(context).is_ready()) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Takes what is in each pipe.
    pub(super) async fn take(&mut self) {
        for source in self.sources.iter_mut().filter(|source| source.is_open) {
            source.is_open = source.tap.draw() != Drawn::End;
            self.sink.keep(source, &mut self.buffer).await;
        }
    }

    /// Takes what is in the pipes now, and no more than fits into them: a writer that nobody could find may still be
    /// there.
    pub(super) async fn take_rest(&mut self) {
        for source in &mut self.sources {
            let mut left = PIPE_BYTES;
            while let Drawn::Bytes(count) = source.tap.draw_now(left) {
                self.sink.keep(source, &mut self.buffer).await;
                left -= count;
            }
        }
    }

    /// Completes the log.
    pub(super) async fn finish(self) -> Captured {
        self.sink.capture.finish().await
    }
}

impl Sink<'_> {
    /// Keeps what was drawn.
    async fn keep(&mut self, source: &Source, buffer: &mut [u8]) {
        while let Some(chunk) = source.tap.read(buffer) {
            if let Some(watch) = &mut self.watch {
                watch.offer(chunk);
            }
            if let (Some(follower), Some(stream)) = (&mut self.follower, source.stream) {
                follower.hear(stream, chunk);
            }
            self.capture.take(chunk).await;
        }
    }
}

impl Watch {
    /// A watcher that does not keep up misses a part; the program must not wait for it.
    fn offer(&mut self, chunk: &[u8]) {
        for part in chunk.chunks(PIECE) {
            let Ok(place) = self.watcher.try_reserve() else {
                self.has_missed = true;
                return;
            };
            place.send(Piece { bytes: part.to_vec(), after_gap: mem::take(&mut self.has_missed) });
        }
    }
}
