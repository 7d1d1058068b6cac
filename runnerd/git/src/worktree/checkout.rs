//! Files as git checks them out, using only the attribute files given with them, and the filters in force. The work
//! tree has no influence.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;

use gix::index::entry::{Flags, Mode};
use tempfile::TempDir;

use crate::index;
use crate::index::cachetree;
use crate::index::index_flags::UNKNOWN_STAT;
use crate::objects::{CommitEntry, EntryKind};
use crate::repository::program::GitCommand;
use crate::{GitError, Repository};

/// Checked-out files in a temporary folder that is removed with this value.
#[derive(Debug)]
pub struct CheckoutDir {
    folder: TempDir,
}

impl CheckoutDir {
    /// Returns the checked-out content of a file; `None` if git could not check it out.
    pub fn read_file(&self, path: &[u8]) -> Option<Vec<u8>> {
        fs::read(self.folder.path().join("work").join(OsStr::from_bytes(path))).ok()
    }
}

impl Repository {
    /// Checks out files by the attribute files among them; skips links and submodules.
    pub fn check_out_entries<'e>(
        &self,
        entries: impl IntoIterator<Item = &'e CommitEntry>,
    ) -> Result<CheckoutDir, GitError> {
        let folder = tempfile::tempdir().map_err(GitError::io("making a directory in", &tempfile::env::temp_dir()))?;
        let work = folder.path().join("work");
        let path = folder.path().join("index");
        fs::create_dir(&work).map_err(GitError::io("making", &work))?;
        let mut state = cachetree::empty_index(self.open()?.object_hash());
        for entry in entries {
            let mode = match entry.kind {
                EntryKind::File => Mode::FILE,
                EntryKind::Executable => Mode::FILE_EXECUTABLE,
                EntryKind::Symlink | EntryKind::Submodule => continue,
            };
            // git would check out whatever object has that name.
            self.read_blob(&entry.id)?;
            state.dangerously_push_entry(
                UNKNOWN_STAT,
                entry.id.object_id(),
                Flags::empty(),
                mode,
                entry.path.as_slice().into(),
            );
        }
        state.sort_entries();
        let file = File::create(&path).map_err(GitError::io("writing", &path))?;
        index::write_index_to(file, &path, &state, false)?;
        let git = GitCommand::new(self, "checkout-index")
            .env("GIT_INDEX_FILE", &path)
            .env("GIT_WORK_TREE", &work)
            .current_dir(&work);
        let outcome = git.args(["--all", "--force", "--quiet"]).output()?;
        if !outcome.status.success() {
            self.check_git_usable()?;
            tracing::warn!(stderr = outcome.stderr, "git cannot check out every file");
        }
        Ok(CheckoutDir { folder })
    }
}
