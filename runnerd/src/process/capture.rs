//! Takes any amount of output and keeps a bounded part of it: the beginning and the end.
//!
//! Bytes stay bytes, but for secrets, which are replaced by their names. Nothing here can hold the writer up: beyond the
//! cap bytes are counted, and a disk that refuses them is reported at the end.

use std::io::{self, SeekFrom};

use runner_core::redact::{Secrets, Stream};
use tokio::{
    fs::{self, File},
    io::{AsyncSeekExt as _, AsyncWriteExt as _},
};

use super::{LogFile, SpawnError};

/// Output on its way to a log.
pub(super) struct Capture {
    file: File,
    secrets: Secrets,
    redacted: Stream,
    /// Bytes on their way into the file; empty between two chunks.
    ready: Vec<u8>,
    /// Bytes of output that the file holds at most, and how many of them are the beginning once something is left out.
    cap: u64,
    head: u64,
    /// Where the beginning ends.
    beginning: Beginning,
    /// The end, with as much in front of it as a secret that begins there may have.
    tail: Tail,
    total: u64,
    /// Bytes of the file.
    written: u64,
    fault: Option<io::Error>,
}

/// The beginning of the output that stays when something is left out, in bytes of output and of the file.
#[derive(Clone, Copy, Default)]
struct Beginning {
    taken: u64,
    written: u64,
}

/// What became of the output, in bytes as they came.
pub(super) struct Captured {
    pub kept: u64,
    pub dropped: u64,
    pub fault: Option<io::Error>,
}

impl Capture {
    /// Makes the log anew. Whatever has its name is unlinked first, so that a planted link leads nowhere.
    pub(super) async fn create(log: &LogFile) -> Result<Self, SpawnError> {
        let in_log = |source| SpawnError::Log { path: log.path.clone(), source };
        let file = create(log).await.map_err(in_log)?;
        let head = log.cap_bytes / 2;
        let tail = usize::try_from(log.cap_bytes - head).unwrap_or(usize::MAX);
        Ok(Self {
            file,
            redacted: log.secrets.stream(),
            tail: Tail::new(tail, log.secrets.longest().saturating_sub(1)),
            secrets: log.secrets.clone(),
            ready: Vec::new(),
            cap: log.cap_bytes,
            head,
            beginning: Beginning::default(),
            total: 0,
            written: 0,
            fault: None,
        })
    }

    /// Takes a chunk. The file follows it up to the cap, so that a reader, and a crash, find all there is.
    pub(super) async fn take(&mut self, chunk: &[u8]) {
        let up_to =
            |limit: u64| usize::try_from(limit.saturating_sub(self.total)).unwrap_or(usize::MAX).min(chunk.len());
        let (head, part) = (up_to(self.head), up_to(self.cap));
        self.append(&chunk[..head]).await;
        if head > 0 {
            let taken = self.total + head as u64 - self.redacted.held() as u64;
            self.beginning = Beginning { taken, written: self.written };
        }
        self.append(&chunk[head..part]).await;
        self.total += chunk.len() as u64;
        self.tail.push(chunk);
    }

    /// Completes the log: if something is left out, its second half becomes one line that counts it, and the end.
    pub(super) async fn finish(mut self) -> Captured {
        let end = self.end();
        let dropped = if self.is_over() { self.total - self.beginning.taken - end.len() as u64 } else { 0 };
        if self.fault.is_none() {
            self.fault = self.write_end(&end, dropped).await.err();
        }
        let kept = match self.fault {
            None => self.total - dropped,
            Some(_) => self.file.metadata().await.map_or(0, |file| file.len()).min(self.total),
        };
        Captured { kept, dropped: self.total - kept, fault: self.fault }
    }

    fn is_over(&self) -> bool {
        self.total > self.cap
    }

    async fn append(&mut self, part: &[u8]) {
        if part.is_empty() || self.fault.is_some() {
            return;
        }
        self.redacted.push(part, &mut self.ready);
        self.written += self.ready.len() as u64;
        self.fault = self.file.write_all(&self.ready).await.err();
        self.ready.clear();
    }

    /// Returns the end of the output as it came; it does not begin within a secret.
    fn end(&self) -> Vec<u8> {
        let mut bytes = self.tail.bytes();
        let begins = self.secrets.whole_from(&bytes, bytes.len().saturating_sub(self.tail.wanted));
        bytes.drain(..begins);
        bytes
    }

    async fn write_end(&mut self, end: &[u8], dropped: u64) -> io::Result<()> {
        if self.is_over() {
            self.file.flush().await?;
            self.file.set_len(self.beginning.written).await?;
            self.file.seek(SeekFrom::Start(self.beginning.written)).await?;
            self.file.write_all(format!("\n[… {dropped} bytes omitted …]\n").as_bytes()).await?;
            self.file.write_all(&self.secrets.redact_bytes(end)).await?;
        } else {
            std::mem::take(&mut self.redacted).finish(&mut self.ready);
            self.file.write_all(&self.ready).await?;
        }
        self.file.flush().await?;
        if self.total > 0 { self.file.sync_data().await } else { Ok(()) }
    }
}

async fn create(log: &LogFile) -> io::Result<File> {
    match fs::remove_file(&log.path).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::options().write(true).create_new(true).mode(0o600).open(&log.path).await,
    }
}

/// The last bytes of a stream.
struct Tail {
    ring: Vec<u8>,
    /// How many of them are asked for; those in front of them only tell how they begin.
    wanted: usize,
    next: usize,
    is_full: bool,
}

impl Tail {
    fn new(wanted: usize, before: usize) -> Self {
        Self { ring: vec![0; wanted + before], wanted, next: 0, is_full: false }
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

    /// Returns them in order.
    fn bytes(&self) -> Vec<u8> {
        let (newer, older) = self.ring.split_at(self.next);
        [if self.is_full { older } else { &[] }, newer].concat()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "sk-abcdefgh12345678";

    async fn log_of(chunks: &[&[u8]], cap_bytes: u64) -> (Vec<u8>, Captured) {
        let folder = tempfile::tempdir().unwrap();
        let secrets = Secrets::of([("API_KEY", KEY)]).unwrap();
        let log = LogFile { path: folder.path().join("log"), cap_bytes, secrets };
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
    async fn secret_is_not_in_the_log_however_chunks_and_cap_cut_it() {
        let text = format!("{KEY} one {KEY} two {KEY}");
        for cap in 0..=text.len() as u64 {
            for size in [1, 7, text.len()] {
                let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
                let (log, captured) = log_of(&chunks, cap).await;
                let log = String::from_utf8(log).unwrap();
                let rest = log.replace("[redacted: API_KEY]", "");
                for part in KEY.as_bytes().windows(3).filter(|part| *part != b"abc") {
                    let part = std::str::from_utf8(part).unwrap();
                    assert!(!rest.contains(part), "`{part}` with a cap of {cap} in chunks of {size}: {log}");
                }
                assert_eq!(captured.kept + captured.dropped, text.len() as u64);
                assert!(captured.kept <= cap, "{} of {cap}", captured.kept);
                assert!(captured.kept == cap || log.contains(&format!("{} bytes", captured.dropped)), "{log}");
            }
        }
    }

    #[tokio::test]
    async fn what_could_have_become_a_secret_is_kept() {
        let (log, captured) = log_of(&[b"sk-abcdefgh1", b"234567"], 100).await;
        assert_eq!(log, b"sk-abcdefgh1234567");
        assert_eq!(captured.dropped, 0);
    }

    #[tokio::test]
    async fn link_in_the_place_of_the_log_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (folder.path().join("log"), folder.path().join("victim"));
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        let mut capture = Capture::create(&LogFile { path, cap_bytes: 9, secrets: Secrets::default() }).await.unwrap();
        capture.take(b"x").await;
        capture.finish().await;
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    }

    proptest! {
        #[test]
        fn tail_is_the_end_of_the_stream(capacity in 0_usize..9, chunks: Vec<Vec<u8>>) {
            let mut tail = Tail::new(capacity, 0);
            for chunk in &chunks {
                tail.push(chunk);
            }
            let stream = chunks.concat();
            prop_assert_eq!(tail.bytes(), &stream[stream.len().saturating_sub(capacity)..]);
        }
    }
}
