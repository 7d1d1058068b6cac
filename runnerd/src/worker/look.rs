//! What differs from HEAD, as it was seen last: nobody looks again before something can have changed it.
//!
//! Only what is known to write forgets it: a program that is started, and what puts files back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::site::Site;
use crate::git::{Change, GitError};

/// What was seen last, shared among the effects of an iteration.
#[derive(Debug, Clone, Default)]
pub(super) struct LastLook(Arc<Mutex<Option<Vec<Change>>>>);

impl LastLook {
    fn lock(&self) -> MutexGuard<'_, Option<Vec<Change>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Site {
    /// Looks what differs from HEAD.
    pub(super) fn look(&self) -> Result<Vec<Change>, GitError> {
        let changes = self.repository()?.changes()?;
        *self.seen.lock() = Some(changes.clone());
        Ok(changes)
    }

    /// Returns what differs from HEAD, as it was seen last; looks where something may have changed it since.
    pub(super) fn seen(&self) -> Result<Vec<Change>, GitError> {
        let seen = self.seen.lock().clone();
        seen.map_or_else(|| self.look(), Ok)
    }

    /// Has the next who asks look again.
    pub(super) fn forget_seen(&self) {
        *self.seen.lock() = None;
    }
}
