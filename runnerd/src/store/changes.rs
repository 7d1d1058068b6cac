//! `changes.json`: what a person has asked of a run's files and what is not committed yet.
//!
//! A request is in this file before it is acknowledged. It leaves it when its commit is made.

use std::path::PathBuf;

use runner_core::change::Change;
use serde::{Deserialize, Serialize};

use super::{Store, StoreError};
use crate::repo::disk::Disk;
use crate::repo::durable::{self, Access};
use crate::repo::kept::Note;

/// Name of the file.
const FILE: &str = "changes.json";
/// The folder of texts that could not be applied.
const REFUSED: &str = "refused";

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// Number of the next request.
    pub next: u64,
    /// What waits, oldest first.
    pub queue: Vec<Queued>,
}

/// A request that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queued {
    /// Its number, which no other request of the repository has.
    pub number: u64,
    /// Id of the run.
    pub run: String,
    /// What is asked.
    pub change: Change,
    /// Commit upon which it is done; kept before it is.
    pub from: Option<String>,
}

impl Note for Changes {
    const KIND: &'static str = "changes";
    const VERSION: u32 = 1;
}

impl Changes {
    /// Returns how many bytes the trees and configurations have that wait: nothing else is large.
    pub fn bytes(&self) -> usize {
        let of = |waiting: &Queued| match &waiting.change {
            Change::Edit { base, edited } => base.len() + edited.len(),
            Change::Config { base, text, .. } | Change::Settings { base, text, .. } => base.len() + text.len(),
            _ => 0,
        };
        self.queue.iter().map(of).sum()
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self { next: 1, queue: Vec::new() }
    }
}

impl<D: Disk> Store<D> {
    /// Reads what waits; nothing where there is no file.
    pub fn load_changes(&self) -> Result<Changes, StoreError> {
        Ok(self.note::<Changes>(FILE).read()?.unwrap_or_default())
    }

    /// Writes what waits, durably.
    pub fn save_changes(&self, changes: &Changes) -> Result<(), StoreError> {
        Ok(self.note::<Changes>(FILE).write(changes)?)
    }

    /// Keeps a person's text that could not be applied, and returns where.
    pub fn keep_refused(&self, name: &str, text: &str) -> Result<PathBuf, StoreError> {
        let disk = durable::on(&self.disk);
        let folder = self.folder().join(REFUSED);
        disk.create_dir(&folder, Access::Private)?;
        let path = folder.join(name);
        disk.replace(&path, text.as_bytes(), Access::Private)?;
        Ok(path)
    }
}
