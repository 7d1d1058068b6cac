//! The daemon's record of a run's branch in its source: written before the branch is moved, so that a crash in between
//! leaves no doubt about who moved it.

use runner_git::{GitError, Id, MovedRef, Repository};
use serde::{Deserialize, Serialize};

use crate::repo::sealed::Sealable;

/// The last move of the branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedMove {
    /// Old value; `None` if it was created.
    pub from: Option<Id>,
    /// New value.
    pub to: Id,
    /// Whether it is known that the branch was moved, and that no work tree had it checked out meanwhile.
    pub is_done: bool,
}

impl Sealable for PublishedMove {
    const KIND: &'static str = "published";
    const VERSION: u32 = 1;
}

impl PublishedMove {
    /// Whether the branch has existed in the source.
    pub fn was_published(&self) -> bool {
        self.is_done || self.from.is_some()
    }

    /// Returns the branch's new value if it is unknown whether it was checked out meanwhile.
    pub(super) fn unsettled_target(&self) -> Option<Id> {
        (!self.is_done && self.from.is_some()).then_some(self.to)
    }

    /// Whether a branch was moved forward by the daemon: to what it has published, or to a commit on the way there.
    ///
    /// A branch that was removed or moved back was not moved by the daemon.
    pub fn accounts_for(&self, moved: &MovedRef, repository: &Repository) -> Result<bool, GitError> {
        let id = |value: &Option<String>| value.as_ref().and_then(|value| value.parse::<Id>().ok());
        let Some(after) = id(&moved.after) else { return Ok(false) };
        let is_within = |one: &Id, of: &Id| Ok(repository.has_object(one)? && repository.is_ancestor(one, of)?);
        if !repository.has_object(&self.to)? || !is_within(&after, &self.to)? {
            return Ok(false);
        }
        match (&moved.before, id(&moved.before)) {
            (None, _) => Ok(true),
            (Some(_), Some(before)) => is_within(&before, &after),
            (Some(_), None) => Ok(false),
        }
    }
}
