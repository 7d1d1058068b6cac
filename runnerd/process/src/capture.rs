//! Captures any amount of output and stores a bounded part of it: the beginning and the end.
//!
//! Bytes are stored as they are, except for secrets, which are replaced by their names. The writer is never blocked:
//! beyond the cap bytes are only counted, and disk errors are reported at the end.

use std::fs::Metadata;
use std::io::{self, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use runner_core::text::redact::{RedactStream, Secrets};
use tokio::{
    fs::{self, File},
    io::{AsyncSeekExt as _, AsyncWriteExt as _},
};

use super::{LogFile, SpawnError};

/// Output on its way to a log.
pub(super) struct LogCapture {
    file: File,
    path: PathBuf,
    /// The folder that it was created in, without links.
    folder: Option<PathBuf>,
    /// The program's folder, and which one it is, if the log is below it.
    root: Option<(PathBuf, (u64, u64))>,
    secrets: Secrets,
    redactor: RedactStream,
    /// Bytes about to be written to the file; empty between two chunks.
    pending: Vec<u8>,
    /// Limit on the bytes of output in the file, and how many of them belong to the beginning once something is left
    /// out.
    cap: u64,
    head: u64,
    /// Where the beginning ends.
    head_extent: HeadExtent,
    /// The end, preceded by enough bytes to recognize a secret that spans its start.
    tail: TailRing,
    total: u64,
    /// Size of the file in bytes.
    written: u64,
    write_error: Option<io::Error>,
}

/// The beginning of the output that is kept if something is left out, in bytes of output and of the file.
#[derive(Clone, Copy, Default)]
struct HeadExtent {
    consumed: u64,
    written: u64,
}

/// What was stored of the output, in bytes before redaction.
pub(super) struct CaptureReport {
    pub kept: u64,
    pub dropped: u64,
    pub fault: Option<io::Error>,
}

impl LogCapture {
    /// Creates the log. Unlinks an existing file first, so that a planted link leads nowhere.
    ///
    /// `root` is the program's folder.
    pub(super) async fn create_capture(log: &LogFile, root: &Path) -> Result<Self, SpawnError> {
        let in_log = |source| SpawnError::Log { path: log.path.clone(), source };
        let file = create_log(&log.path).await.map_err(in_log)?;
        let folder = fs::canonicalize(folder_of(&log.path)).await.ok();
        let root = if log.path.starts_with(root) { Some(root) } else { None };
        let root = root.and_then(|root| Some((root.to_owned(), file_identity(&root.symlink_metadata().ok()?))));
        let head = log.cap_bytes / 2;
        let tail = usize::try_from(log.cap_bytes - head).unwrap_or(usize::MAX);
        Ok(Self {
            file,
            path: log.path.clone(),
            folder,
            root,
            redactor: log.secrets.stream(),
            tail: TailRing::new(tail, log.secrets.max_spelling_len().saturating_sub(1)),
            secrets: log.secrets.clone(),
            pending: Vec::new(),
            cap: log.cap_bytes,
            head,
            head_extent: HeadExtent::default(),
            total: 0,
            written: 0,
            write_error: None,
        })
    }

    /// Takes a chunk. It is written to the file up to the cap, so that readers see it at once, also after a crash.
    pub(super) async fn write_chunk(&mut self, chunk: &[u8]) {
        let up_to =
            |limit: u64| usize::try_from(limit.saturating_sub(self.total)).unwrap_or(usize::MAX).min(chunk.len());
        let head = up_to(self.head);
        let part = up_to(self.cap);
        self.append(&chunk[..head]).await;
        if head > 0 {
            let consumed = self.total + head as u64 - self.redactor.held_len() as u64;
            self.head_extent = HeadExtent { consumed, written: self.written };
        }
        self.append(&chunk[head..part]).await;
        self.total += chunk.len() as u64;
        self.tail.push(chunk);
    }

    /// Completes the log: if something is left out, its second half is replaced with a line that counts it, and the
    /// end.
    pub(super) async fn finish_log(mut self) -> CaptureReport {
        let end = self.tail_bytes();
        let dropped = if self.is_over_cap() { self.total - self.head_extent.consumed - end.len() as u64 } else { 0 };
        if self.write_error.is_none() {
            self.write_error = self.write_tail(&end, dropped).await.err();
        }
        if self.write_error.is_none() {
            self.write_error = self.restore_file().await.err();
        }
        let length = match self.write_error {
            None => self.total - dropped,
            Some(_) => self.file.metadata().await.map_or(0, |file| file.len()).min(self.total),
        };
        CaptureReport { kept: length, dropped: self.total - length, fault: self.write_error }
    }

    /// Writes the log again if the program has removed or replaced its file, as one that cleans the work tree does: what was
    /// printed counts, and nothing else.
    async fn restore_file(&mut self) -> io::Result<()> {
        let found = fs::symlink_metadata(&self.path).await.ok();
        if found.map(|found| file_identity(&found)) == Some(file_identity(&self.file.metadata().await?)) {
            return Ok(());
        }
        let folder = folder_of(&self.path);
        if !self.may_create(folder) {
            return Err(io::Error::other("its folder is another one, or gone"));
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).await?;
        let mut file = create_log(&self.path).await?;
        self.file.seek(SeekFrom::Start(0)).await?;
        tokio::io::copy(&mut self.file, &mut file).await?;
        file.flush().await?;
        self.file = file;
        Ok(())
    }

    /// Whether the log's folder is there, or may be created again: below the program's folder unless that has moved, and
    /// not where a link leads.
    fn may_create(&self, folder: &Path) -> bool {
        let existing = folder.ancestors().find(|above| above.exists()).unwrap_or(folder);
        let is_root = |(root, identity): &(PathBuf, (u64, u64))| {
            existing.starts_with(root) && root.symlink_metadata().is_ok_and(|found| file_identity(&found) == *identity)
        };
        let is_same =
            |found: PathBuf| folder.strip_prefix(existing).is_ok_and(|rest| self.folder == Some(found.join(rest)));
        (existing == folder || self.root.as_ref().is_some_and(is_root)) && existing.canonicalize().is_ok_and(is_same)
    }

    fn is_over_cap(&self) -> bool {
        self.total > self.cap
    }

    async fn append(&mut self, part: &[u8]) {
        if part.is_empty() || self.write_error.is_some() {
            return;
        }
        self.redactor.push(part, &mut self.pending);
        self.written += self.pending.len() as u64;
        self.write_error = self.file.write_all(&self.pending).await.err();
        self.pending.clear();
    }

    /// Returns the end of the output before redaction; it does not begin inside a secret.
    fn tail_bytes(&self) -> Vec<u8> {
        let mut bytes = self.tail.bytes();
        let begins = self.secrets.end_of_secret_at(&bytes, bytes.len().saturating_sub(self.tail.visible));
        bytes.drain(..begins);
        bytes
    }

    async fn write_tail(&mut self, end: &[u8], dropped: u64) -> io::Result<()> {
        if self.is_over_cap() {
            self.file.flush().await?;
            self.file.set_len(self.head_extent.written).await?;
            self.file.seek(SeekFrom::Start(self.head_extent.written)).await?;
            self.file.write_all(format!("\n[… {dropped} bytes omitted …]\n").as_bytes()).await?;
            self.file.write_all(&self.secrets.redact_bytes(end)).await?;
        } else {
            std::mem::take(&mut self.redactor).finish(&mut self.pending);
            self.file.write_all(&self.pending).await?;
        }
        self.file.flush().await?;
        if self.total > 0 { self.file.sync_data().await } else { Ok(()) }
    }
}

async fn create_log(path: &Path) -> io::Result<File> {
    match fs::remove_file(path).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::options().read(true).write(true).create_new(true).mode(0o600).open(path).await,
    }
}

fn file_identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// The last bytes of a stream.
struct TailRing {
    ring: Vec<u8>,
    /// How many of them are requested; the bytes in front of them only show how they begin.
    visible: usize,
    next: usize,
    is_full: bool,
}

impl TailRing {
    fn new(visible: usize, before: usize) -> Self {
        Self { ring: vec![0; visible + before], visible, next: 0, is_full: false }
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

    /// Returns the bytes in order.
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

    async fn capture_log(chunks: &[&[u8]], cap_bytes: u64) -> (Vec<u8>, CaptureReport) {
        let folder = tempfile::tempdir().unwrap();
        let secrets = Secrets::from_variables([("API_KEY", KEY)]).unwrap();
        let log = LogFile { path: folder.path().join("log"), cap_bytes, secrets };
        let mut capture = LogCapture::create_capture(&log, folder.path()).await.unwrap();
        for chunk in chunks {
            capture.write_chunk(chunk).await;
        }
        let captured = capture.finish_log().await;
        (std::fs::read(&log.path).unwrap(), captured)
    }

    #[tokio::test]
    async fn output_within_the_cap_is_kept_as_it_came() {
        let (log, captured) = capture_log(&[b"ab\0", b"\xff\n", b""], 5).await;
        assert_eq!(log, b"ab\0\xff\n");
        assert_eq!((captured.kept, captured.dropped), (5, 0));
    }

    #[tokio::test]
    async fn output_beyond_the_cap_keeps_its_beginning_and_its_end_and_counts_the_rest() {
        let (log, captured) = capture_log(&[b"01234", b"5", b"6789"], 4).await;
        assert_eq!(log, "01\n[… 6 bytes omitted …]\n89".as_bytes());
        assert_eq!((captured.kept, captured.dropped), (4, 6));
    }

    #[tokio::test]
    async fn cap_of_nothing_keeps_nothing() {
        let (log, captured) = capture_log(&[b"abc"], 0).await;
        assert_eq!(log, "\n[… 3 bytes omitted …]\n".as_bytes());
        assert_eq!((captured.kept, captured.dropped), (0, 3));
    }

    #[tokio::test]
    async fn secret_is_not_in_the_log_however_chunks_and_cap_cut_it() {
        let text = format!("{KEY} one {KEY} two {KEY}");
        for cap in 0..=text.len() as u64 {
            for size in [1, 7, text.len()] {
                let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
                let (log, captured) = capture_log(&chunks, cap).await;
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
        let (log, captured) = capture_log(&[b"sk-abcdefgh1", b"234567"], 100).await;
        assert_eq!(log, b"sk-abcdefgh1234567");
        assert_eq!(captured.dropped, 0);
    }

    #[tokio::test]
    async fn log_that_the_program_has_removed_or_replaced_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("tree");
        let records = root.join("records");
        let path = records.join("first/log");
        let victim = folder.path().join("victim");
        let capture_while = async |deed: &dyn Fn()| {
            std::fs::create_dir_all(records.join("first")).unwrap();
            let log = LogFile { path: path.clone(), cap_bytes: 4, secrets: Secrets::default() };
            let mut capture = LogCapture::create_capture(&log, &root).await.unwrap();
            capture.write_chunk(b"01234").await;
            deed();
            capture.write_chunk(b"56789").await;
            capture.finish_log().await
        };
        let remove = || std::fs::remove_dir_all(&records).unwrap();
        let forge = || {
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, "forged").unwrap();
        };
        for deed in [&remove as &dyn Fn(), &forge] {
            let captured = capture_while(deed).await;
            assert!(captured.fault.is_none(), "{:?}", captured.fault);
            assert_eq!(std::fs::read(&path).unwrap(), "01\n[… 6 bytes omitted …]\n89".as_bytes());
        }
        let link = || {
            remove();
            std::fs::create_dir(&victim).unwrap();
            std::os::unix::fs::symlink(&victim, &records).unwrap();
        };
        assert!(capture_while(&link).await.fault.is_some());
        assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 0);
        std::fs::remove_file(&records).unwrap();
        let move_root = || std::fs::rename(&root, folder.path().join("moved")).unwrap();
        assert!(capture_while(&move_root).await.fault.is_some());
        assert!(!root.exists());
    }

    #[tokio::test]
    async fn link_in_the_place_of_the_log_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        let mut capture =
            LogCapture::create_capture(&LogFile { path, cap_bytes: 9, secrets: Secrets::default() }, folder.path())
                .await
                .unwrap();
        capture.write_chunk(b"x").await;
        capture.finish_log().await;
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    }

    proptest! {
        #[test]
        fn tail_is_the_end_of_the_stream(capacity in 0_usize..9, chunks: Vec<Vec<u8>>) {
            let mut tail = TailRing::new(capacity, 0);
            for chunk in &chunks {
                tail.push(chunk);
            }
            let stream = chunks.concat();
            prop_assert_eq!(tail.bytes(), &stream[stream.len().saturating_sub(capacity)..]);
        }
    }
}
