//! The journal of the live iteration: a header and its events, durable before they are acted upon.
//!
//! One line each, sealed for its file, its number and the line before it, so that none can be made up, changed, left
//! out or put elsewhere. Memory is a fold over it: `replay` gives the phase that the events lead to. A last line that did
//! not get to the disk whole, because its end is missing or because zeros stand for some of it, never happened; anything
//! else that cannot be read holds the repository. A journal that was cut short at a line, or an old one put in its place,
//! looks right here: `recover` compares what it says with the branch.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use runner_core::iteration::{Event, IllegalEvent, Phase, decide};
use runner_core::obstacle::Nature;
use runner_core::policy::Policy;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::obstruction::Obstructs;
use crate::repo::disk::{Disk, RealDisk};
use crate::repo::durable::{self, Access, DurableError};
use crate::repo::kept::{Fault, version_fault};
use crate::repo::seal::{Belonging, Key, Seal};
use crate::store::Store;

/// Version of the format.
pub(crate) const VERSION: u32 = 1;

/// First line: what the fold needs besides the events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
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
pub(crate) struct Entry {
    /// When it was written.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

/// A journal as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// Its header.
    pub header: Header,
    /// Its events, oldest first.
    pub entries: Vec<Entry>,
}

/// What is wrong with a journal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// It could not be read or written.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// It is not what this daemon has written; it is left as it is.
    #[error("{path} cannot be trusted, line {line} (byte {at}): {fault}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Where the line begins.
        at: usize,
        /// What is wrong with it.
        fault: Fault,
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

impl Obstructs for JournalError {
    fn nature(&self) -> Nature {
        match self {
            Self::Disk(error) => error.nature(),
            Self::Damaged { .. } | Self::Illegal { .. } => Nature::Lasting,
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
    /// Tells whether the same call may succeed later: the disk refuses, the text is fine.
    pub(crate) fn is_obstacle(&self) -> bool {
        matches!(self, Self::Disk(_))
    }
}

/// Where a journal is, and what its lines are sealed for.
#[derive(Debug, Clone)]
pub(crate) struct Place<D = RealDisk> {
    disk: D,
    path: PathBuf,
    key: Key,
    name: String,
}

/// The journal that is being written.
#[derive(Debug)]
pub(crate) struct Journal<D = RealDisk> {
    place: Place<D>,
    recorded: Recorded,
    /// What is on the disk; none once it refused some, for then nobody knows.
    end: Option<End>,
}

/// The end of what has been written.
#[derive(Debug)]
struct End {
    /// Bytes before it.
    len: u64,
    /// Lines before it.
    lines: u64,
    /// Seal of the last line.
    seal: Seal,
}

impl<D: Disk> Journal<D> {
    /// Begins the journal of an iteration with its first event, in place of the one before.
    pub(crate) fn begin(place: &Place<D>, header: Header, first: Entry) -> Result<Self, JournalError> {
        Self::reopen(place, Recorded { header, entries: vec![first] })
    }

    /// Goes on with a journal that a previous life has left.
    ///
    /// The file is written anew from what was understood, so that a line that was cut does not stay.
    pub(crate) fn reopen(place: &Place<D>, recorded: Recorded) -> Result<Self, JournalError> {
        let end = Some(place.rewrite(&recorded)?);
        Ok(Self { place: place.clone(), recorded, end })
    }

    /// Appends an event durably, in place of what a failed try may have left.
    pub(crate) fn append(&mut self, entry: Entry) -> Result<(), JournalError> {
        let End { len, lines, seal } = match self.end.take() {
            Some(end) => end,
            None => self.place.rewrite(&self.recorded)?,
        };
        let (text, seal) = self.place.line(&entry, Some((lines, &seal)));
        durable::on(&self.place.disk).append_at(&self.place.path, len, text.as_bytes())?;
        self.end = Some(End { len: len + text.len() as u64, lines: lines + 1, seal });
        self.recorded.entries.push(entry);
        Ok(())
    }

    /// Returns what has been recorded.
    pub(crate) fn recorded(&self) -> &Recorded {
        &self.recorded
    }
}

impl<D: Disk> Place<D> {
    /// Names the journal of a repository.
    pub(crate) fn of(store: &Store<D>) -> Self {
        let (name, path) = store.journal();
        Self { disk: store.disk().clone(), path, key: store.key().clone(), name }
    }

    /// Returns the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the journal, if there is one.
    pub(crate) fn remove(&self) -> Result<(), JournalError> {
        Ok(durable::on(&self.disk).remove(&self.path)?)
    }

    /// Reads the journal that a previous life has left; none if there is no such file.
    pub(crate) fn read(&self) -> Result<Option<Recorded>, JournalError> {
        let Some(bytes) = durable::on(&self.disk).read(&self.path)? else { return Ok(None) };
        let damaged =
            |line: u64, at: usize, fault| JournalError::Damaged { path: self.path.clone(), line: line + 1, at, fault };
        let whole = &bytes[..bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)];
        let mut lines = whole.split_inclusive(|&byte| byte == b'\n');
        let first = lines.next().unwrap_or(&bytes);
        let (header, mut seal) = self.header(first).map_err(|fault| damaged(0, 0, fault))?;
        let mut recorded = Recorded { header, entries: Vec::new() };
        let mut at = first.len();
        for (number, line) in (1..).zip(lines) {
            match self.opened(line, Some((number, &seal))) {
                Ok((entry, next)) => {
                    recorded.entries.push(entry);
                    seal = next;
                }
                Err(_) if at + line.len() == whole.len() && line.contains(&0) => break,
                Err(fault) => return Err(damaged(number, at, fault)),
            }
            at += line.len();
        }
        Ok(Some(recorded))
    }

    /// Replaces the file by what has been recorded.
    fn rewrite(&self, recorded: &Recorded) -> Result<End, JournalError> {
        let (mut text, mut seal) = self.line(&recorded.header, None);
        let mut lines = 1;
        for entry in &recorded.entries {
            let (line, next) = self.line(entry, Some((lines, &seal)));
            text.push_str(&line);
            (lines, seal) = (lines + 1, next);
        }
        durable::on(&self.disk).replace(&self.path, text.as_bytes(), Access::Private)?;
        Ok(End { len: text.len() as u64, lines, seal })
    }

    fn line<T: Serialize>(&self, value: &T, behind: Option<(u64, &Seal)>) -> (String, Seal) {
        let text = serde_json::to_string(value).expect("BUG: a line does not serialize");
        self.key.seal(self.belonging(behind), &(text + "\n"))
    }

    fn header(&self, line: &[u8]) -> Result<(Header, Seal), Fault> {
        match version_fault(line, VERSION) {
            Some(other) => Err(other),
            None => self.opened(line, None),
        }
    }

    fn opened<T: DeserializeOwned>(&self, line: &[u8], behind: Option<(u64, &Seal)>) -> Result<(T, Seal), Fault> {
        let (text, seal) = self.key.open(self.belonging(behind), line)?;
        let value = serde_json::from_slice(&text).map_err(|error| Fault::Form(error.to_string()))?;
        Ok((value, seal))
    }

    fn belonging<'a>(&'a self, behind: Option<(u64, &'a Seal)>) -> Belonging<'a> {
        Belonging { place: &self.name, behind }
    }
}

/// Returns the phase that the events lead to.
pub(crate) fn replay(path: &Path, recorded: &Recorded) -> Result<Phase, JournalError> {
    recorded.entries.iter().try_fold(Phase::Open, |phase, entry| {
        decide(&recorded.header.policy, phase, entry.event.clone())
            .map_err(|source| JournalError::Illegal { path: path.to_owned(), source })
    })
}
