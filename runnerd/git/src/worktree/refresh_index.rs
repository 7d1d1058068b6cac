//! Rewrites the index from what is known about the files: after a crash left it behind HEAD, and before a program
//! checks out a commit using it.

use super::porcelain;
use super::private_index::PrivateIndex;
use super::scan::WorktreeScan;
use super::stat_cache::TrackedFiles;
use crate::index::IndexLock;
use crate::{GitError, Repository};

impl Repository {
    /// Updates an index that lags behind HEAD although the work tree does not, and returns whether it did.
    ///
    /// A crash between moving HEAD and publishing the new index leaves this state; nothing in the work tree is touched.
    pub fn sync_index_with_head(&self) -> Result<bool, GitError> {
        let repo = self.open()?;
        let lock = IndexLock::acquire(&repo, self)?;
        let head = self.head()?.commit();
        let (tracked, is_as_head) =
            self.compare_files(&repo, || Ok(TrackedFiles::load(&repo, self, head)?.restore_removed()))?;
        if is_as_head {
            lock.write(&tracked.state)?.publish()?;
        }
        tracked.store_in_cache();
        Ok(is_as_head)
    }

    /// Writes an index in which no file that may have changed counts as unchanged, so that a checkout based on it
    /// examines each of these files.
    pub(crate) fn publish_clean_index(&self, repo: &gix::Repository) -> Result<(), GitError> {
        let lock = IndexLock::acquire(repo, self)?;
        let head = self.head()?.commit();
        let (tracked, _) = self.compare_files(repo, || TrackedFiles::load(repo, self, head))?;
        lock.write(&tracked.state_for_git())?.publish()?;
        tracked.store_in_cache();
        Ok(())
    }

    /// Compares the files with HEAD, and returns what was learned about them and whether all are as HEAD has them.
    fn compare_files<'a>(
        &'a self,
        repo: &'a gix::Repository,
        load: impl Fn() -> Result<TrackedFiles<'a>, GitError>,
    ) -> Result<(TrackedFiles<'a>, bool), GitError> {
        let built_in = || {
            let mut tracked = load()?;
            let is_as_head = WorktreeScan::run(repo, self, &mut tracked)?.findings.is_empty();
            Ok((tracked, is_as_head))
        };
        let with_git = || {
            let private = PrivateIndex::create(repo, load()?)?;
            let is_as_head = porcelain::is_unchanged(&private)?;
            Ok((private.tracked, is_as_head))
        };
        self.choose_engine(repo).run_with(self, "status", built_in, with_git)
    }
}
