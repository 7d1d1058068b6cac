//! What the daemon remembers of a run's branch in its source: written before the branch is moved, so that a death in
//! between leaves no doubt about who moved it.

use serde::{Deserialize, Serialize};

use crate::git::{GitError, Id, MovedRef, Repository};
use crate::repo::kept::Sealable;

/// The last move of the branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedMove {
    /// Where it was moved from; none where it was made.
    pub from: Option<Id>,
    /// Where it was moved to.
    pub to: Id,
    /// Whether it is known that it was moved, and that no work tree had it checked out meanwhile.
    pub is_done: bool,
}

impl Sealable for PublishedMove {
    const KIND: &'static str = "published";
    const VERSION: u32 = 1;
}

impl PublishedMove {
    /// Tells whether the branch has been in the source.
    pub fn was_published(&self) -> bool {
        self.is_done || self.from.is_some()
    }

    /// Returns where the branch was moved to, if nobody knows yet whether it was checked out meanwhile.
    pub(super) fn unsettled_target(&self) -> Option<Id> {
        (!self.is_done && self.from.is_some()).then_some(self.to)
    }

    /// Tells whether a branch that was moved on was moved by the daemon: to what it has published, or on the way there.
    ///
    /// A branch that was taken away or set back was not.
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
