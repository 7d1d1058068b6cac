//! Takes any amount of output and keeps a bounded part of it: the beginning and the end.
//!
//! Bytes stay bytes. Nothing here can hold the writer up: beyond the cap they are counted, and a disk that refuses them
//! is reported at the end.

use std::io::{self, SeekFrom};

use tokio::{
    fs::{self, File},
    io::{AsyncSeekExt as _, AsyncWriteExt as _},
};

use super::{LogFile, SpawnError};

/// Output on its way to a log.
pub(super) struct Capture {
    file: File,
    /// Bytes that the file holds at most, and how many of them are the beginning once something is left out.
    cap: u64,
    head: u64,
    tail: Tail,
    total: u64,
    fault: Option<io::Error>,
}

/// What became of the output, in bytes.
pub(super) struct Captured {
    pub kept: u64,
    pub dropped: u64,
    pub fault: Option<io::Error>,
}

impl Capture {
    /// Makes the log anew. Whatever has its name is unlinked first, so that a planted link leads nowhere.
    pub(super) async fn create(log: &LogFile) -> Result<Self, SpawnError> {
        let in_log = |source| SpawnError::Log { path: log.path.clone(), source };
        let file = create(log).await.map_err(|error| SpawnError::of(error, in_log))?;
        let head = log.cap_bytes / 2;
        let tail = usize::try_from(log.cap_bytes - head).unwrap_or(usize::MAX);
        Ok(Self { file, cap: log.cap_bytes, head, tail: Tail::new(tail), total: 0, fault: None })
    }

    /// Takes a chunk. The file follows it up to the cap, so that a reader, and a crash, find all there is.
    pub(super) async fn take(&mut self, chunk: &[u8]) {
        let room = usize::try_from(self.cap.saturating_sub(self.total)).unwrap_or(usize::MAX);
        let part = &chunk[..chunk.len().min(room)];
        self.total += chunk.len() as u64;
        self.tail.push(chunk);
        if !part.is_empty() && self.fault.is_none() {
            self.fault = self.file.write_all(part).await.err();
        }
    }

    /// Completes the log: if something is left out, its second half becomes one line that counts it, and the end.
    pub(super) async fn finish(mut self) -> Captured {
        if self.fault.is_none() {
            self.fault = self.write_end().await.err();
        }
        let kept = match self.fault {
            None => self.total.min(self.cap),
            Some(_) => self.file.metadata().await.map_or(0, |file| file.len()).min(self.total),
        };
        Captured { kept, dropped: self.total - kept, fault: self.fault }
    }

    async fn write_end(&mut self) -> io::Result<()> {
        self.file.flush().await?;
        let dropped = self.total.saturating_sub(self.cap);
        if dropped > 0 {
            self.file.set_len(self.head).await?;
            self.file.seek(SeekFrom::Start(self.head)).await?;
            self.file.write_all(format!("\n[… {dropped} bytes omitted …]\n").as_bytes()).await?;
            let (older, newer) = self.tail.parts();
            self.file.write_all(older).await?;
            self.file.write_all(newer).await?;
            self.file.flush().await?;
        }
        if self.total > 0 { self.file.sync_data().await } else { Ok(()) }
    }
}

async fn create(log: &LogFile) -> io::Result<File> {
    match fs::remove_file(&log.path).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::options().write(true).create_new(true).open(&log.path).await,
    }
}

/// The last bytes of a stream.
struct Tail {
    ring: Vec<u8>,
    next: usize,
    is_full: bool,
}

impl Tail {
    fn new(capacity: usize) -> Self {
        Self { ring: vec![0; capacity], next: 0, is_full: false }
    }

    fn push(&mut self, chunk: &[u8]) {
        let capacity = self.ring.len();
        let chunk = &chunk[chunk.len().saturating_sub(capacity)..];
        let (first, second) = chunk.split_at(chunk.len().min(capacity - self.next));
        self.ring[self.next..self.next + first.len()].copy_from_slice(first);
        self.ring[..second.len()].copy_from_slice(second);
        self.is_full |= self.next + chunk.len() >= capacity;
        self.next = (self.next + chunk.len()).checked_rem(capacity).unwrap_or(0);
    }

    /// The older part and the newer one.
    fn parts(&self) -> (&[u8], &[u8]) {
        let (newer, older) = self.ring.split_at(self.next);
        (if self.is_full { older } else { &[] }, newer)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    async fn log_of(chunks: &[&[u8]], cap_bytes: u64) -> (Vec<u8>, Captured) {
        let folder = tempfile::tempdir().unwrap();
        let log = LogFile { path: folder.path().join("log"), cap_bytes };
        let mut capture = Capture::create(&log).await.unwrap();
        for chunk in chunks {
            capture.take(chunk).await;
        }
        let captured = capture.finish().await;
        (std::fs::read(&log.path).unwrap(), captured)
    }

    #[tokio::test]
    async fn output_within_the_cap_is_kept_as_it_came() {
        let (log, captured) = log_of(&[b"ab\0", b"\xff\n", b""], 5).await;
        assert_eq!(log, b"ab\0\xff\n");
        assert_eq!((captured.kept, captured.dropped), (5, 0));
    }

    #[tokio::test]
    async fn output_beyond_the_cap_keeps_its_beginning_and_its_end_and_counts_the_rest() {
        let (log, captured) = log_of(&[b"01234", b"5", b"6789"], 4).await;
        assert_eq!(log, "01\n[… 6 bytes omitted …]\n89".as_bytes());
        assert_eq!((captured.kept, captured.dropped), (4, 6));
    }

    #[tokio::test]
    async fn cap_of_nothing_keeps_nothing() {
        let (log, captured) = log_of(&[b"abc"], 0).await;
        assert_eq!(log, "\n[… 3 bytes omitted …]\n".as_bytes());
        assert_eq!((captured.kept, captured.dropped), (0, 3));
    }

    #[tokio::test]
    async fn link_in_the_place_of_the_log_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (folder.path().join("log"), folder.path().join("victim"));
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        let mut capture = Capture::create(&LogFile { path, cap_bytes: 9 }).await.unwrap();
        capture.take(b"x").await;
        capture.finish().await;
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    }

    proptest! {
        #[test]
        fn tail_is_the_end_of_the_stream(capacity in 0_usize..9, chunks: Vec<Vec<u8>>) {
            let mut tail = Tail::new(capacity);
            for chunk in &chunks {
                tail.push(chunk);
            }
            let stream = chunks.concat();
            let (older, newer) = tail.parts();
            prop_assert_eq!([older, newer].concat(), &stream[stream.len().saturating_sub(capacity)..]);
        }
    }
}
