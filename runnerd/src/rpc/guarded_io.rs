//! A stream that a peer cannot use to pile up work or to hold a connection forever.
//!
//! While the peer has as many calls in progress as allowed, nothing more is read from it (`backpressure.rs`). While the
//! peer does not read what was written, nothing more is read from it; if that lasts too long, both directions fail. A
//! peer that reads slowly is read from as slowly. A peer that makes no call for too long is cut off; one that falls
//! silent later, when its place is needed (`backpressure.rs`).

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::backpressure::PeerConnection;

/// A Unix stream with a limit on how long a write may make no progress.
#[derive(Debug)]
pub(super) struct GuardedIo<Resource> {
    stream: UnixStream,
    limit: Duration,
    /// Runs while a write is blocked by the peer.
    stall_timer: Option<Pin<Box<Sleep>>>,
    /// Whether the peer has read something since it was last read from: a busy subscription stalls writes most of the
    /// time, and must not block the peer's requests.
    peer_has_read: bool,
    failed: bool,
    /// The task that reads; kept even while the kernel has no data for it, since it must learn that the writer gave up.
    reader: Option<Waker>,
    /// How long the peer may be silent.
    silence_limit: Option<SilenceLimit>,
    /// What lives as long as the stream, such as its place among the connections.
    _resource: Resource,
}

/// The time limit on a peer's silence.
#[derive(Debug)]
struct SilenceLimit {
    connection: PeerConnection,
    /// Runs until the first call is due.
    first_call: Option<Pin<Box<Sleep>>>,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Whether something was read that may contain calls which have not started yet.
    has_read: bool,
}

impl SilenceLimit {
    /// Whether the peer must be cut off.
    fn has_expired(&mut self, cx: &mut Context<'_>) -> bool {
        if self.first_call.as_mut().is_some_and(|greeting| greeting.as_mut().poll(cx).is_ready()) {
            self.first_call = None;
            if !self.connection.has_called() {
                return true;
            }
        }
        self.closing.as_mut().poll(cx).is_ready()
    }

    /// Whether nothing may be read now; if so, the reader is woken later.
    ///
    /// Requests that were read are processed by other tasks, which are counted when they start: they go first.
    fn must_wait(&mut self, cx: &Context<'_>) -> bool {
        if std::mem::take(&mut self.has_read) {
            cx.waker().wake_by_ref();
            return true;
        }
        self.connection.is_full(cx.waker())
    }
}

impl<Resource> GuardedIo<Resource> {
    pub(super) fn new(stream: UnixStream, limit: Duration, resource: Resource) -> Self {
        Self {
            stream,
            limit,
            stall_timer: None,
            peer_has_read: false,
            failed: false,
            reader: None,
            silence_limit: None,
            _resource: resource,
        }
    }

    /// Cuts the peer off when its line is closed, or if it makes no call within `first_call`.
    pub(super) fn with_silence_limit(mut self, line: PeerConnection, first_call: Duration) -> Self {
        let closing = Box::pin(line.closing().clone().cancelled_owned());
        self.silence_limit = Some(SilenceLimit {
            connection: line,
            first_call: Some(Box::pin(sleep(first_call))),
            closing,
            has_read: false,
        });
        self
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// Tells the line how many bytes the peer has taken.
    fn record_written(&self, attempt: &Poll<io::Result<usize>>) {
        if let (Poll::Ready(Ok(bytes)), Some(patience)) = (attempt, &self.silence_limit) {
            patience.connection.record_written(*bytes);
        }
    }

    /// Handles the result of an attempt to write.
    fn check_progress<T>(&mut self, cx: &mut Context<'_>, attempt: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.stall_timer = None;
            self.peer_has_read = true;
            self.wake_reader();
            return attempt;
        }
        let limit = self.limit;
        let timer = self.stall_timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.failed = true;
        self.wake_reader();
        Poll::Ready(Err(timeout_error()))
    }
}

impl<Resource: Unpin> AsyncRead for GuardedIo<Resource> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.failed {
            return Poll::Ready(Err(timeout_error()));
        }
        if self.silence_limit.as_mut().is_some_and(|patience| patience.has_expired(cx)) {
            self.failed = true;
            return Poll::Ready(Err(timeout_error()));
        }
        self.reader = Some(cx.waker().clone());
        if self.stall_timer.is_some() && !self.peer_has_read {
            return Poll::Pending;
        }
        if self.silence_limit.as_mut().is_some_and(|patience| patience.must_wait(cx)) {
            return Poll::Pending;
        }
        let attempt = Pin::new(&mut self.stream).poll_read(cx, buf);
        if attempt.is_ready() {
            self.peer_has_read = false;
            if let Some(patience) = &mut self.silence_limit {
                patience.has_read = true;
            }
        }
        attempt
    }
}

impl<Resource: Unpin> AsyncWrite for GuardedIo<Resource> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.failed {
            return Poll::Ready(Err(timeout_error()));
        }
        let attempt = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.record_written(&attempt);
        self.check_progress(cx, attempt)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.failed {
            return Poll::Ready(Err(timeout_error()));
        }
        let attempt = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.record_written(&attempt);
        self.check_progress(cx, attempt)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

fn timeout_error() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the peer does not read, or does not speak")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    /// Writes until the peer's buffer is full and the limit has passed.
    async fn write_until_error(io: &mut (impl AsyncWrite + Unpin)) -> io::Error {
        loop {
            if let Err(error) = io.write_all(&[0; 4096]).await {
                return error;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_never_reads_fails_the_writer_and_the_reader() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let (mut reading, mut writing) = tokio::io::split(GuardedIo::new(ours, LIMIT, ()));
        let reader = tokio::spawn(async move { reading.read_u8().await });
        let begin = tokio::time::Instant::now();
        assert_eq!(write_until_error(&mut writing).await.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begin.elapsed().as_secs(), LIMIT.as_secs());
        assert_eq!(reader.await.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn nothing_is_read_while_the_peer_does_not_read() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut io = GuardedIo::new(ours, LIMIT, ());
        theirs.write_all(b"request").await.unwrap();
        let filled = std::future::poll_fn(|cx| {
            loop {
                match Pin::new(&mut io).poll_write(cx, &[0; 4096]) {
                    Poll::Ready(result) => drop(result.unwrap()),
                    Poll::Pending => return Poll::Ready(()),
                }
            }
        });
        filled.await;
        assert_eq!(io.read(&mut [0; 16]).await.unwrap(), 7, "the peer may have read before");
        theirs.write_all(b"request").await.unwrap();
        io.stream.readable().await.unwrap();
        assert!(poll_read_once(&mut io).await.is_pending());
        while theirs.try_read(&mut [0; 4096]).is_ok() {}
        io.write_all(&[0]).await.unwrap();
        assert!(poll_read_once(&mut io).await.is_ready(), "the peer has read");
    }

    async fn poll_read_once(io: &mut GuardedIo<()>) -> Poll<io::Result<()>> {
        std::future::poll_fn(|cx| {
            let mut bytes = [0; 16];
            Poll::Ready(Pin::new(&mut *io).poll_read(cx, &mut ReadBuf::new(&mut bytes)))
        })
        .await
    }

    #[tokio::test]
    async fn what_is_held_is_released_with_the_stream() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let place = Arc::new(());
        let io = GuardedIo::new(ours, LIMIT, Arc::clone(&place));
        assert_eq!(Arc::strong_count(&place), 2);
        drop(io);
        assert_eq!(Arc::strong_count(&place), 1);
    }
}
