//! Notes of landings: which there are and where they stand. What is in them is their writer's business.

use super::RepoStore;
use crate::repo::disk::Disk;
use crate::repo::sealed::{SealedFile, Sealable};

pub(super) const LANDING_FILE: &str = "landing.json";
const TARGETS: &str = "landing-targets.json";

impl<D: Disk> RepoStore<D> {
    /// Returns the note of the move of a branch that is under way.
    pub fn landing_file<T: Sealable>(&self) -> SealedFile<T, D> {
        self.sealed_file(LANDING_FILE)
    }

    /// Returns the note of the branches that runs were started from.
    pub fn landing_targets_file<T: Sealable>(&self) -> SealedFile<T, D> {
        self.sealed_file(TARGETS)
    }
}
