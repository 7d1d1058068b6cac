//! What is kept of the workspace of an isolated run: that it was made ready, and what it held then that no commit has.

use protocol::path::WirePath;
use serde::{Deserialize, Serialize};

use super::RepoStore;
use crate::repo::disk::Disk;
use crate::repo::sealed::{SealedFile, Sealable};

/// The name of the note.
const FILE: &str = "workspace.json";

/// A workspace that was made ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceRecord {
    /// What `[workspace] copy` and `setup` have made, by paths relative to the work tree: each file; a folder, which ends in
    /// a slash, stands for all that is in it.
    pub made: Vec<WirePath>,
}

impl Sealable for WorkspaceRecord {
    const KIND: &'static str = "workspace";
    const VERSION: u32 = 1;
}

impl<D: Disk> RepoStore<D> {
    /// Returns the note of the workspace; none is kept before it is ready.
    pub fn workspace_file(&self) -> SealedFile<WorkspaceRecord, D> {
        self.sealed_file(FILE)
    }
}
