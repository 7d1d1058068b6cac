//! `changes.json`: a person's requests for a run's files that are not committed yet.
//!
//! A request is in this file before it is acknowledged. It is removed when its commit is made.

use std::path::PathBuf;

use runner_core::files::change::ChangeRequest;
use serde::{Deserialize, Serialize};

use super::{RepoStore, StoreError};
use crate::repo::disk::Disk;
use crate::repo::durable::{self, FileAccess};
use crate::repo::sealed::Sealable;

/// Name of the file.
const FILE: &str = "changes.json";
/// The folder for texts that could not be applied.
const REFUSED_DIR: &str = "refused";

/// Contents of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeQueue {
    /// Number of the next request.
    pub next: u64,
    /// Pending requests, oldest first.
    pub queue: Vec<QueuedChange>,
}

/// A pending request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueuedChange {
    /// Its number, unique in the repository.
    pub number: u64,
    /// Id of the run.
    pub run: String,
    /// The requested change.
    pub change: ChangeRequest,
    /// Commit that the change is based on; stored before it is applied.
    pub from: Option<String>,
}

impl Sealable for ChangeQueue {
    const KIND: &'static str = "changes";
    const VERSION: u32 = 1;
}

impl ChangeQueue {
    /// Returns the size in bytes of the trees and configurations that are pending: nothing else is large.
    pub fn queued_bytes(&self) -> usize {
        let change_bytes = |waiting: &QueuedChange| match &waiting.change {
            ChangeRequest::Edit { base, edited } => base.len() + edited.len(),
            ChangeRequest::Config { base, text, .. } | ChangeRequest::Settings { base, text, .. } => {
                base.len() + text.len()
            }
            _ => 0,
        };
        self.queue.iter().map(change_bytes).sum()
    }
}

impl Default for ChangeQueue {
    fn default() -> Self {
        Self { next: 1, queue: Vec::new() }
    }
}

impl<D: Disk> RepoStore<D> {
    /// Reads the pending requests; none if there is no file.
    pub fn load_changes(&self) -> Result<ChangeQueue, StoreError> {
        Ok(self.sealed_file::<ChangeQueue>(FILE).read()?.unwrap_or_default())
    }

    /// Writes the pending requests durably.
    pub fn save_changes(&self, changes: &ChangeQueue) -> Result<(), StoreError> {
        Ok(self.sealed_file::<ChangeQueue>(FILE).write(changes)?)
    }

    /// Stores a person's text that could not be applied, and returns its path.
    pub fn save_refused_text(&self, name: &str, text: &str) -> Result<PathBuf, StoreError> {
        let disk = durable::with_disk(&self.disk);
        let folder = self.folder().join(REFUSED_DIR);
        disk.create_dir(&folder, FileAccess::Private)?;
        let path = folder.join(name);
        disk.replace(&path, text.as_bytes(), FileAccess::Private)?;
        Ok(path)
    }
}
