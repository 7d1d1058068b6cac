//! Writes the index anew from what is known of the files: where a death has left it behind HEAD, and before a program lays
//! out a commit by it.

use super::known::TrackedFiles;
use super::scan::WorktreeScan;
use crate::git::index::IndexLock;
use crate::git::{GitError, Repository};

impl Repository {
    /// Brings an index up to HEAD that lags behind although the work tree does not, and returns whether it did.
    ///
    /// That is what a death leaves between the move of HEAD and the new index; nothing of the work tree is touched.
    pub fn sync_index_with_head(&self) -> Result<bool, GitError> {
        let repo = self.open()?;
        let lock = IndexLock::acquire(&repo, self)?;
        let mut tracked = TrackedFiles::load(&repo, self, self.head()?.commit())?.restore_removed();
        let is_as_head = WorktreeScan::run(&repo, self, &mut tracked)?.findings.is_empty();
        if is_as_head {
            lock.write(&tracked.state)?.publish()?;
        }
        tracked.store_in_cache();
        Ok(is_as_head)
    }

    /// Writes an index in which nothing is taken for unchanged that may have changed: whoever lays out a commit by it
    /// looks at each such file.
    pub(in crate::git) fn publish_clean_index(&self, repo: &gix::Repository) -> Result<(), GitError> {
        let lock = IndexLock::acquire(repo, self)?;
        let mut tracked = TrackedFiles::load(repo, self, self.head()?.commit())?;
        WorktreeScan::run(repo, self, &mut tracked)?;
        lock.write(&tracked.state_for_git())?.publish()?;
        tracked.store_in_cache();
        Ok(())
    }
}
