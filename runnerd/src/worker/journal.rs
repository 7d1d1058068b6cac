//! The journal of the live iteration: a header and its events, durable before they are acted upon.
//!
//! One line each. Memory is a fold over it: `replay` gives the phase that the events lead to. A last
//! line that was cut by a crash never happened; anything else that cannot be read holds the repository.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use runner_core::iteration::{Event, IllegalEvent, Phase, decide};
use runner_core::policy::Policy;
use serde::{Deserialize, Serialize};

use crate::repo::disk::{Disk, RealDisk};
use crate::repo::durable::{self, Access, DurableError};

/// Version of the format.
pub(super) const VERSION: u32 = 1;

/// First line: what the fold needs besides the events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// Version of this format.
    pub version: u32,
    /// Id of the run.
    pub run: String,
    /// Mark of the iteration's processes.
    pub mark: String,
    /// The configuration at From, as far as rules need it.
    pub policy: Policy,
}

/// One event with its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// When it was written.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

/// A journal as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Recorded {
    /// Its header.
    pub header: Header,
    /// Its events, oldest first.
    pub entries: Vec<Entry>,
}

/// What is wrong with a journal.
#[derive(Debug, thiserror::Error)]
pub(super) enum JournalError {
    /// It could not be read or written.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// It cannot be understood; it is left as it is.
    #[error("cannot understand {path}, line {line}: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Its events do not fit together.
    #[error("cannot replay {path}")]
    Illegal {
        /// The file.
        path: PathBuf,
        /// The event that does not fit.
        #[source]
        source: IllegalEvent,
    },
}

impl JournalError {
    /// Tells whether the same call may succeed later: the disk refuses, the text is fine.
    pub(super) fn is_obstacle(&self) -> bool {
        matches!(self, Self::Disk(_))
    }
}

/// The journal that is being written.
#[derive(Debug)]
pub(super) struct Journal<D = RealDisk> {
    disk: D,
    path: PathBuf,
    recorded: Recorded,
    /// Bytes that are on the disk; none once it refused some, for then nobody knows which are.
    len: Option<u64>,
}

impl<D: Disk> Journal<D> {
    /// Begins the journal of an iteration with its first event, in place of the one before.
    pub(super) fn begin(disk: &D, path: &Path, header: Header, first: Entry) -> Result<Self, JournalError> {
        Self::reopen(disk, path, Recorded { header, entries: vec![first] })
    }

    /// Goes on with a journal that a previous life has left.
    ///
    /// The file is written anew from what was understood, so that a line that was cut does not stay.
    pub(super) fn reopen(disk: &D, path: &Path, recorded: Recorded) -> Result<Self, JournalError> {
        let mut journal = Self { disk: disk.clone(), path: path.to_owned(), recorded, len: None };
        journal.rewrite()?;
        Ok(journal)
    }

    /// Appends an event durably, in place of what a failed try may have left.
    pub(super) fn append(&mut self, entry: Entry) -> Result<(), JournalError> {
        let len = match self.len.take() {
            Some(len) => len,
            None => self.rewrite()?,
        };
        let text = line(&entry);
        durable::on(&self.disk).append_at(&self.path, len, text.as_bytes())?;
        self.len = Some(len + text.len() as u64);
        self.recorded.entries.push(entry);
        Ok(())
    }

    /// Returns what has been recorded.
    pub(super) fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// Replaces the file by what has been recorded, and returns its size in bytes.
    fn rewrite(&mut self) -> Result<u64, JournalError> {
        let events: String = self.recorded.entries.iter().map(line).collect();
        let text = format!("{}{events}", line(&self.recorded.header));
        durable::on(&self.disk).replace(&self.path, text.as_bytes(), Access::Private)?;
        let len = text.len() as u64;
        self.len = Some(len);
        Ok(len)
    }
}

/// Removes the journal at `path`, if there is one.
pub(super) fn remove(disk: &impl Disk, path: &Path) -> Result<(), JournalError> {
    Ok(durable::on(disk).remove(path)?)
}

/// Reads the journal that a previous life has left; none if there is no such file.
pub(super) fn read(disk: &impl Disk, path: &Path) -> Result<Option<Recorded>, JournalError> {
    let Some(bytes) = durable::on(disk).read(path)? else { return Ok(None) };
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(&[][..], |end| &bytes[..end]);
    let mut lines = whole.split(|&byte| byte == b'\n').enumerate();
    let unreadable =
        |line: usize, reason: String| JournalError::Unreadable { path: path.to_owned(), line: line + 1, reason };
    let (_, first) = lines.next().ok_or_else(|| unreadable(0, "it has no header".to_owned()))?;
    let header: Header = serde_json::from_slice(first).map_err(|error| unreadable(0, error.to_string()))?;
    if header.version != VERSION {
        return Err(unreadable(0, format!("it has version {}, and this daemon knows {VERSION}", header.version)));
    }
    let entries = lines
        .map(|(at, text)| serde_json::from_slice(text).map_err(|error| unreadable(at, error.to_string())))
        .collect::<Result<_, _>>()?;
    Ok(Some(Recorded { header, entries }))
}

/// Returns the phase that the events lead to.
pub(super) fn replay(path: &Path, recorded: &Recorded) -> Result<Phase, JournalError> {
    recorded.entries.iter().try_fold(Phase::Open, |phase, entry| {
        decide(&recorded.header.policy, phase, entry.event.clone())
            .map_err(|source| JournalError::Illegal { path: path.to_owned(), source })
    })
}

fn line<T: Serialize>(value: &T) -> String {
    let mut text = serde_json::to_string(value).expect("BUG: a journal line does not serialize");
    text.push('\n');
    text
}
