//! Operations of git that span several commands and leave files behind while they last. Only tells and ends them; it
//! never starts or continues one.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use super::{GitError, Repository};

/// An operation that a person or agent began and did not finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `git merge`.
    Merge,
    /// `git rebase`.
    Rebase,
    /// `git am`.
    Am,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
            Self::Am => "am",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Bisect => "bisect",
        })
    }
}

/// Where each operation shows, in the order in which git itself looks.
const SIGNS: [(&str, Operation); 8] = [
    ("rebase-apply/applying", Operation::Am),
    ("rebase-apply", Operation::Rebase),
    ("rebase-merge", Operation::Rebase),
    ("CHERRY_PICK_HEAD", Operation::CherryPick),
    ("MERGE_HEAD", Operation::Merge),
    ("REVERT_HEAD", Operation::Revert),
    ("sequencer", Operation::CherryPick),
    ("BISECT_LOG", Operation::Bisect),
];

/// What has to go so that no operation is under way.
const STATE: [&str; 18] = [
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

/// Files that name a commit with changes that were put aside when the operation began.
const AUTOSTASHES: [&str; 3] = ["rebase-merge/autostash", "rebase-apply/autostash", "MERGE_AUTOSTASH"];

impl Repository {
    /// Returns the operation under way in this work tree.
    pub fn operation(&self) -> Option<Operation> {
        SIGNS
            .iter()
            .find(|(sign, _)| self.git_dir().join(sign).symlink_metadata().is_ok())
            .map(|&(_, operation)| operation)
    }

    /// Ends the operation under way, keeping what it had put aside under `refs/runner/autostash/`.
    pub(super) fn abandon_operation(&self) -> Result<(), GitError> {
        for name in AUTOSTASHES {
            let Ok(text) = fs::read_to_string(self.git_dir().join(name)) else {
                continue;
            };
            if let Some(id) = self.resolve(text.trim())? {
                self.keep(&format!("refs/runner/autostash/{id}"), &id)?;
            }
        }
        for name in STATE {
            remove(&self.git_dir().join(name))?;
        }
        Ok(())
    }
}

/// Removes whatever has a name.
pub(super) fn remove(path: &Path) -> Result<(), GitError> {
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::io("removing", path)(error)),
        _ => Ok(()),
    }
}
