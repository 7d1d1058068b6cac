//! The output of a running program on its way from the pipe to the log and to whoever watches.

use std::{io, mem};

use tokio::{net::unix::pipe, sync::mpsc};

use super::{
    capture::{Capture, Captured},
    link::OUTPUT_PIPE,
    spec::Piece,
};

/// Size of the chunks for a watcher, so that its channel bounds its memory.
const PIECE: usize = 1 << 13;

/// The reading end of the output pipe, and where its bytes go.
pub(super) struct Output {
    pipe: pipe::Receiver,
    is_open: bool,
    buffer: Vec<u8>,
    capture: Capture,
    watch: Option<Watch>,
}

/// Whoever watches, and whether they missed what came last.
struct Watch {
    watcher: mpsc::Sender<Piece>,
    has_missed: bool,
}

impl Output {
    pub(super) fn new(pipe: pipe::Receiver, capture: Capture, watcher: Option<mpsc::Sender<Piece>>) -> Self {
        let watch = watcher.map(|watcher| Watch { watcher, has_missed: false });
        Self { pipe, is_open: true, buffer: vec![0; OUTPUT_PIPE], capture, watch }
    }

    /// Returns whether a process may still write.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Waits until there is something to take. May be dropped and called again without loss.
    pub(super) async fn ready(&self) {
        let _ = self.pipe.readable().await;
    }

    /// Takes one chunk, if there is one.
    pub(super) async fn take(&mut self) {
        let read = self.pipe.try_read(&mut self.buffer);
        self.keep(read).await;
    }

    /// Takes what is in the pipe now, and no more than fits into it: a writer that nobody could find may still be there.
    pub(super) async fn take_rest(&mut self) {
        let mut left = OUTPUT_PIPE;
        while self.is_open && left > 0 {
            // Asks the kernel: the runtime may not have heard yet that there is something.
            let read = nix::unistd::read(&self.pipe, &mut self.buffer[..left]).map_err(io::Error::from);
            let count = *read.as_ref().unwrap_or(&0);
            self.keep(read).await;
            if count == 0 {
                break;
            }
            left -= count;
        }
    }

    /// Completes the log.
    pub(super) async fn finish(self) -> Captured {
        self.capture.finish().await
    }

    async fn keep(&mut self, read: io::Result<usize>) {
        match read {
            Ok(0) => self.is_open = false,
            Ok(count) => {
                let chunk = &self.buffer[..count];
                if let Some(watch) = &mut self.watch {
                    watch.offer(chunk);
                }
                self.capture.take(chunk).await;
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.is_open = false,
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
