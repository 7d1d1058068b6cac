//! Note of the settings of the newest run that this daemon began in a repository.

use serde::{Deserialize, Serialize};

use super::{RepoStore, SourceRepo};
use crate::repo::disk::Disk;
use crate::repo::sealed::{Sealable, SealedFile};

/// File name of the note.
const FILE: &str = "settings.json";

/// The settings of a run: those of its start commit, with what a person has changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettings {
    /// Id of the run.
    pub run: String,
    /// Its `config.toml`.
    pub text: String,
}

impl Sealable for RunSettings {
    const KIND: &'static str = "settings";
    const VERSION: u32 = 1;
}

impl<D: Disk> RepoStore<D> {
    /// Returns the note of the settings of the newest run.
    pub fn settings_file(&self) -> SealedFile<RunSettings, D> {
        self.sealed_file(FILE)
    }
}

impl RepoStore {
    /// Returns the folder of the repository in which a person starts the runs of this one: that of an isolated run was
    /// started in its source.
    #[must_use]
    pub fn start_store(&self, source: Option<&SourceRepo>) -> Self {
        source.map_or_else(|| self.clone(), |source| self.for_repository(source.common_dir.as_path()))
    }
}
