//! Aborts an unfinished git operation of a person or agent; never starts or continues one.

use crate::durable::{read_regular_file, remove_path};
use crate::operation::{Operation, find_operation};
use crate::{GitError, Repository};

/// Files and folders to remove so that no operation is in progress.
const OPERATION_STATE_FILES: [&str; 18] = [
    "rebase-apply",
    "rebase-merge",
    "sequencer",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_RR",
    "MERGE_MSG",
    "MERGE_AUTOSTASH",
    "SQUASH_MSG",
    "AUTO_MERGE",
    "BISECT_LOG",
    "BISECT_START",
    "BISECT_NAMES",
    "BISECT_TERMS",
    "BISECT_EXPECTED_REV",
];

/// Files that name a commit with changes that were stashed when the operation began.
const AUTOSTASH_FILES: [&str; 3] = ["rebase-merge/autostash", "rebase-apply/autostash", "MERGE_AUTOSTASH"];

impl Repository {
    /// Returns the operation in progress in this work tree.
    pub fn operation(&self) -> Option<Operation> {
        find_operation(self.git_dir())
    }

    /// Aborts the operation in progress, keeping what it had stashed under `refs/runner/autostash/`.
    pub(crate) fn abort_operation(&self) -> Result<(), GitError> {
        for name in AUTOSTASH_FILES {
            let Ok(text) = read_regular_file(&self.git_dir().join(name)) else { continue };
            if let Some(id) = self.resolve_revision(String::from_utf8_lossy(&text).trim())? {
                self.set_runner_ref(&format!("refs/runner/autostash/{id}"), &id)?;
            }
        }
        for name in OPERATION_STATE_FILES {
            remove_path(&self.git_dir().join(name))?;
        }
        Ok(())
    }
}
