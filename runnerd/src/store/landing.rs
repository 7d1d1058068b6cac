//! Notes about landings: which exist and where they are stored. Their contents are up to the code that writes them.

use super::RepoStore;
use crate::repo::disk::Disk;
use crate::repo::sealed::{Sealable, SealedFile};

pub(super) const LANDING_FILE: &str = "landing.json";
const TARGETS: &str = "landing-targets.json";

impl<D: Disk> RepoStore<D> {
    /// Returns the note of the branch move in progress.
    pub fn landing_file<T: Sealable>(&self) -> SealedFile<T, D> {
        self.sealed_file(LANDING_FILE)
    }

    /// Returns the note of the branches that runs were started from.
    pub fn landing_targets_file<T: Sealable>(&self) -> SealedFile<T, D> {
        self.sealed_file(TARGETS)
    }
}
