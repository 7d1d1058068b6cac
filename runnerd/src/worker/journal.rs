//! The journal of the live iteration: a header and its events, durable before they are acted on.
//!
//! One line each, sealed for its file, its number and the previous line, so that none can be forged, changed, removed
//! or reordered. The state in memory is a fold over it: `replay` returns the phase that the events lead to. A torn last
//! line, which has no end or contains zeros, never happened; anything else that is unreadable holds the repository. A
//! journal that was truncated at a line, or replaced with an older one, looks valid here: `recover` compares it with
//! the branch.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use runner_core::iteration::{IllegalIterationEvent, IterationEvent, Phase, decide};
use runner_core::policy::Policy;
use runner_core::run::blocker::Transience;
use runner_os::retryable::Retryable;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::repo::disk::{Disk, RealDisk};
use crate::repo::durable::{self, DurableError, FileAccess};
use crate::repo::seal::{Seal, SealContext, SealKey};
use crate::repo::sealed::{SealedFileFault, find_version_fault};
use crate::store::RepoStore;

/// Version of the format.
pub(crate) const VERSION: u32 = 1;

/// First line: the inputs of the fold other than the events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JournalHeader {
    /// Format version.
    pub version: u32,
    /// Id of the run.
    pub run: String,
    /// Mark by which the iteration's processes are found.
    pub mark: String,
    /// The configuration at From, as far as rules need it.
    pub policy: Policy,
}

/// One event with its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JournalEntry {
    /// When it was written.
    pub at: Timestamp,
    /// The event itself.
    pub event: IterationEvent,
}

/// The content of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JournalContents {
    /// The first line of the file.
    pub header: JournalHeader,
    /// Its events, oldest first.
    pub entries: Vec<JournalEntry>,
}

/// What is wrong with a journal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// It could not be read or written.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// It is not what this daemon has written; the file is left as it is.
    #[error("{path} cannot be trusted, line {line} (byte {at}): {fault}")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// Byte offset of the line.
        at: usize,
        /// What is wrong with the line.
        fault: SealedFileFault,
    },
    /// Its events do not follow from one another.
    #[error("cannot replay {path}")]
    Illegal {
        /// Path of the file.
        path: PathBuf,
        /// The event that does not fit.
        #[source]
        source: IllegalIterationEvent,
    },
}

impl Retryable for JournalError {
    fn transience(&self) -> Transience {
        match self {
            Self::Disk(error) => error.transience(),
            Self::Damaged { .. } | Self::Illegal { .. } => Transience::Lasting,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Disk(error) => error.remedy(),
            Self::Damaged { .. } | Self::Illegal { .. } => None,
        }
    }
}

impl JournalError {
    /// Whether the same call may succeed later: the disk refuses, but the content is fine.
    pub(crate) fn is_retryable(&self) -> bool {
        matches!(self, Self::Disk(_))
    }
}

/// Where a journal is, and what its lines are sealed for.
#[derive(Debug, Clone)]
pub(crate) struct JournalFile<D = RealDisk> {
    disk: D,
    path: PathBuf,
    key: SealKey,
    name: String,
}

/// The journal that is being written.
#[derive(Debug)]
pub(crate) struct IterationJournal<D = RealDisk> {
    file: JournalFile<D>,
    contents: JournalContents,
    /// What is on the disk; `None` after a failed write, when that is unknown.
    end: Option<JournalEnd>,
}

/// The end of what has been written.
#[derive(Debug)]
struct JournalEnd {
    /// Length of the file in bytes.
    len: u64,
    /// Number of lines.
    lines: u64,
    /// Seal of the last line.
    seal: Seal,
}

impl<D: Disk> IterationJournal<D> {
    /// Creates the journal of an iteration with its first event, replacing the previous one.
    pub(crate) fn create(
        file: &JournalFile<D>,
        header: JournalHeader,
        first: JournalEntry,
    ) -> Result<Self, JournalError> {
        Self::reopen(file, JournalContents { header, entries: vec![first] })
    }

    /// Continues a journal of an earlier daemon process.
    ///
    /// The file is rewritten from what was parsed, which removes a torn line.
    pub(crate) fn reopen(place: &JournalFile<D>, contents: JournalContents) -> Result<Self, JournalError> {
        let end = Some(place.rewrite(&contents)?);
        Ok(Self { file: place.clone(), contents, end })
    }

    /// Appends an event durably, overwriting what a failed attempt may have left.
    pub(crate) fn append(&mut self, entry: JournalEntry) -> Result<(), JournalError> {
        let JournalEnd { len, lines, seal } = match self.end.take() {
            Some(end) => end,
            None => self.file.rewrite(&self.contents)?,
        };
        let (text, seal) = self.file.seal_line(&entry, Some((lines, &seal)));
        durable::with_disk(&self.file.disk).append_at(&self.file.path, len, text.as_bytes())?;
        self.end = Some(JournalEnd { len: len + text.len() as u64, lines: lines + 1, seal });
        self.contents.entries.push(entry);
        Ok(())
    }

    /// Returns everything recorded so far.
    pub(crate) fn contents(&self) -> &JournalContents {
        &self.contents
    }
}

impl<D: Disk> JournalFile<D> {
    /// Returns the location of a repository's journal.
    pub(crate) fn for_store(store: &RepoStore<D>) -> Self {
        let (name, path) = store.journal();
        Self { disk: store.disk().clone(), path, key: store.key().clone(), name }
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the journal if it exists.
    pub(crate) fn remove(&self) -> Result<(), JournalError> {
        Ok(durable::with_disk(&self.disk).remove(&self.path)?)
    }

    /// Reads the journal of an earlier daemon process; `None` if the file does not exist.
    pub(crate) fn read(&self) -> Result<Option<JournalContents>, JournalError> {
        let Some(bytes) = durable::with_disk(&self.disk).read(&self.path)? else { return Ok(None) };
        let damaged_at =
            |line: u64, at: usize, fault| JournalError::Damaged { path: self.path.clone(), line: line + 1, at, fault };
        let complete = &bytes[..bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)];
        let mut lines = complete.split_inclusive(|&byte| byte == b'\n');
        let first = lines.next().unwrap_or(&bytes);
        let (header, mut seal) = self.parse_header(first).map_err(|fault| damaged_at(0, 0, fault))?;
        let mut contents = JournalContents { header, entries: Vec::new() };
        let mut offset = first.len();
        for (number, line) in (1..).zip(lines) {
            match self.open_line(line, Some((number, &seal))) {
                Ok((entry, next)) => {
                    contents.entries.push(entry);
                    seal = next;
                }
                Err(_) if offset + line.len() == complete.len() && line.contains(&0) => break,
                Err(fault) => return Err(damaged_at(number, offset, fault)),
            }
            offset += line.len();
        }
        Ok(Some(contents))
    }

    /// Replaces the file with what has been recorded.
    fn rewrite(&self, contents: &JournalContents) -> Result<JournalEnd, JournalError> {
        let (mut text, mut seal) = self.seal_line(&contents.header, None);
        let mut lines = 1;
        for entry in &contents.entries {
            let (line, next) = self.seal_line(entry, Some((lines, &seal)));
            text.push_str(&line);
            (lines, seal) = (lines + 1, next);
        }
        durable::with_disk(&self.disk).replace(&self.path, text.as_bytes(), FileAccess::Private)?;
        Ok(JournalEnd { len: text.len() as u64, lines, seal })
    }

    fn seal_line<T: Serialize>(&self, value: &T, previous: Option<(u64, &Seal)>) -> (String, Seal) {
        let text = serde_json::to_string(value).expect("BUG: a line does not serialize");
        self.key.seal(self.seal_context(previous), &(text + "\n"))
    }

    fn parse_header(&self, line: &[u8]) -> Result<(JournalHeader, Seal), SealedFileFault> {
        match find_version_fault(line, VERSION) {
            Some(fault) => Err(fault),
            None => self.open_line(line, None),
        }
    }

    fn open_line<T: DeserializeOwned>(
        &self,
        line: &[u8],
        previous: Option<(u64, &Seal)>,
    ) -> Result<(T, Seal), SealedFileFault> {
        let (text, seal) = self.key.open(self.seal_context(previous), line)?;
        let value = serde_json::from_slice(&text).map_err(|error| SealedFileFault::Form(error.to_string()))?;
        Ok((value, seal))
    }

    fn seal_context<'a>(&'a self, previous: Option<(u64, &'a Seal)>) -> SealContext<'a> {
        SealContext { place: &self.name, predecessor: previous }
    }
}

/// Returns the phase that the events lead to.
pub(crate) fn replay(path: &Path, contents: &JournalContents) -> Result<Phase, JournalError> {
    contents.entries.iter().try_fold(Phase::Open, |phase, entry| {
        decide(&contents.header.policy, phase, entry.event.clone())
            .map_err(|source| JournalError::Illegal { path: path.to_owned(), source })
    })
}
