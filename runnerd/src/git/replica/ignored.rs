//! What the rules of a repository ignore in its work tree, as they were captured. Nothing is changed.

use std::path::PathBuf;

use crate::git::repository::program::Git;
use crate::git::{GitError, Repository};

impl Repository {
    /// Returns what is ignored in the work tree, by paths relative to it: files, and folders with nothing else in them,
    /// which end in a slash.
    pub fn ignored(&self) -> Result<Vec<Vec<u8>>, GitError> {
        self.others(&["--ignored", "--exclude-standard"])
    }

    /// Returns what no commit of the work tree has, ignored or not, in the same form.
    pub fn uncommitted_names(&self) -> Result<Vec<Vec<u8>>, GitError> {
        self.others(&[])
    }

    fn others(&self, which: &[&str]) -> Result<Vec<Vec<u8>>, GitError> {
        let listed = Git::new(self, "ls-files").args(["--others", "--directory", "-z"]).args(which).run()?;
        Ok(listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Returns where a path of such a list is.
    pub fn path_of_name(&self, name: &[u8]) -> PathBuf {
        self.file(name)
    }
}
