//! Keeps git's store small: objects that lie about one by one become packs, and small packs become few.
//!
//! Nothing is dropped, reachable or not: the tasks look at objects and at no reference.

use std::fs;

use super::program::Git;
use super::{GitError, Repository};

/// Of git's maintenance those tasks that take no object away; `gc` would.
const TASKS: [&str; 2] = ["--task=loose-objects", "--task=incremental-repack"];

impl Repository {
    /// Lets git pack what lies about, as far as git finds that it is worth it.
    ///
    /// Does nothing while somebody else's maintenance is under way.
    pub fn pack_objects(&self) -> Result<(), GitError> {
        self.clear_stale_maintenance()?;
        Git::new(self, "maintenance").args(["run", "--auto", "--quiet"]).args(TASKS).run().map(drop)
    }

    /// Removes the lock of a maintenance that was killed: git would never do any again.
    fn clear_stale_maintenance(&self) -> Result<(), GitError> {
        let lock = self.common_dir().join("objects/maintenance.lock");
        if lock.symlink_metadata().is_ok() && !self.may_be_in_use(&lock) {
            fs::remove_file(&lock).map_err(GitError::io("removing", &lock))?;
        }
        Ok(())
    }
}
