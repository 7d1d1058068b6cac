//! The journal of the live iteration: a header and its events, durable before they are acted upon.
//!
//! One line each, bound to those before it by a checksum. Memory is a fold over it: `replay` gives the phase that the
//! events lead to. A last line that did not get to the disk whole, because its end is missing or because zeros stand
//! for some of it, never happened; anything else that cannot be read holds the repository.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use runner_core::iteration::{Event, IllegalEvent, Phase, decide};
use runner_core::policy::Policy;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::repo::disk::{Disk, RealDisk};
use crate::repo::durable::{self, Access, DurableError};
use crate::repo::sealed::{self, Damage, Sealed};

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
    /// What is on the disk; none once it refused some, for then nobody knows.
    end: Option<End>,
}

/// The end of what has been written.
#[derive(Debug)]
struct End {
    /// Bytes before it.
    len: u64,
    /// Checksum of the last line.
    sum: String,
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
        let end = Some(rewrite(disk, path, &recorded)?);
        Ok(Self { disk: disk.clone(), path: path.to_owned(), recorded, end })
    }

    /// Appends an event durably, in place of what a failed try may have left.
    pub(super) fn append(&mut self, entry: Entry) -> Result<(), JournalError> {
        let end = match self.end.take() {
            Some(end) => end,
            None => rewrite(&self.disk, &self.path, &self.recorded)?,
        };
        let Sealed { text, sum } = sealed::line(&entry, &end.sum);
        durable::on(&self.disk).append_at(&self.path, end.len, text.as_bytes())?;
        self.end = Some(End { len: end.len + text.len() as u64, sum });
        self.recorded.entries.push(entry);
        Ok(())
    }

    /// Returns what has been recorded.
    pub(super) fn recorded(&self) -> &Recorded {
        &self.recorded
    }
}

/// Replaces the file by what has been recorded.
fn rewrite(disk: &impl Disk, path: &Path, recorded: &Recorded) -> Result<End, JournalError> {
    let Sealed { mut text, mut sum } = sealed::line(&recorded.header, "");
    for entry in &recorded.entries {
        let line = sealed::line(entry, &sum);
        text.push_str(&line.text);
        sum = line.sum;
    }
    durable::on(disk).replace(path, text.as_bytes(), Access::Private)?;
    Ok(End { len: text.len() as u64, sum })
}

/// Removes the journal at `path`, if there is one.
pub(super) fn remove(disk: &impl Disk, path: &Path) -> Result<(), JournalError> {
    Ok(durable::on(disk).remove(path)?)
}

/// Reads the journal that a previous life has left; none if there is no such file.
pub(super) fn read(disk: &impl Disk, path: &Path) -> Result<Option<Recorded>, JournalError> {
    let Some(bytes) = durable::on(disk).read(path)? else { return Ok(None) };
    let unreadable = |line: usize, damage: Damage| JournalError::Unreadable {
        path: path.to_owned(),
        line: line + 1,
        reason: damage.to_string(),
    };
    let whole = &bytes[..bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)];
    let mut lines = whole.split_inclusive(|&byte| byte == b'\n').enumerate();
    let first = lines.next().map_or(&bytes[..], |(_, first)| first);
    let (header, sum) = opened::<Header>(first, "", Some(VERSION)).map_err(|damage| unreadable(0, damage))?;
    let mut recorded = Recorded { header, entries: Vec::new() };
    let (mut upon, mut at) = (sum, first.len());
    for (number, line) in lines {
        match opened::<Entry>(line, &upon, None) {
            Ok((entry, sum)) => {
                recorded.entries.push(entry);
                upon = sum;
            }
            Err(_) if at + line.len() == whole.len() && line.contains(&0) => break,
            Err(damage) => return Err(unreadable(number, damage.behind(at))),
        }
        at += line.len();
    }
    Ok(Some(recorded))
}

/// Reads one line, which must have a checksum.
fn opened<T: DeserializeOwned>(line: &[u8], upon: &str, version: Option<u32>) -> Result<(T, String), Damage> {
    let (value, sum) = sealed::open(line, upon, version)?;
    let sum = sum.ok_or_else(|| Damage { at: 0, what: "it has no checksum".to_owned() })?;
    Ok((value, sum))
}

/// Returns the phase that the events lead to.
pub(super) fn replay(path: &Path, recorded: &Recorded) -> Result<Phase, JournalError> {
    recorded.entries.iter().try_fold(Phase::Open, |phase, entry| {
        decide(&recorded.header.policy, phase, entry.event.clone())
            .map_err(|source| JournalError::Illegal { path: path.to_owned(), source })
    })
}
