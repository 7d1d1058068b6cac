//! Notes of landings: which there are and where they stand. What is in them is their writer's business.

use super::Store;
use crate::repo::disk::Disk;
use crate::repo::kept::{Kept, Note};

pub(super) const BEGUN: &str = "landing.json";
const TARGETS: &str = "landing-targets.json";

impl<D: Disk> Store<D> {
    /// Returns the note of the move of a branch that is under way.
    pub fn landing<T: Note>(&self) -> Kept<T, D> {
        self.note(BEGUN)
    }

    /// Returns the note of the branches that runs were started from.
    pub fn landing_targets<T: Note>(&self) -> Kept<T, D> {
        self.note(TARGETS)
    }
}
