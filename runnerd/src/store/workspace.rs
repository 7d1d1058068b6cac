//! Note about an isolated run's workspace: that it was prepared, and which uncommitted files it had then.

use protocol::path::WirePath;
use serde::{Deserialize, Serialize};

use super::RepoStore;
use crate::repo::disk::Disk;
use crate::repo::sealed::{Sealable, SealedFile};

/// File name of the note.
const FILE: &str = "workspace.json";

/// A workspace that was prepared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceRecord {
    /// What `[workspace] copy`, `setup` and the guard have created, by paths relative to the work tree: each file; a
    /// folder, which ends in a slash, includes everything in it.
    #[serde(rename = "made")]
    pub created: Vec<WirePath>,
}

impl Sealable for WorkspaceRecord {
    const KIND: &'static str = "workspace";
    const VERSION: u32 = 1;
}

impl<D: Disk> RepoStore<D> {
    /// Returns the note about the workspace; it does not exist before the workspace is ready.
    pub fn workspace_file(&self) -> SealedFile<WorkspaceRecord, D> {
        self.sealed_file(FILE)
    }
}
