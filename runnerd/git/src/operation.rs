//! Operations of git that span several commands and leave files behind until they end, and the files that show each.

use std::fmt;
use std::path::Path;

/// An unfinished operation of a person or agent.
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

/// The file that shows each operation, in the order in which git itself checks.
const MARKERS: [(&str, Operation); 8] = [
    ("rebase-apply/applying", Operation::Am),
    ("rebase-apply", Operation::Rebase),
    ("rebase-merge", Operation::Rebase),
    ("CHERRY_PICK_HEAD", Operation::CherryPick),
    ("MERGE_HEAD", Operation::Merge),
    ("REVERT_HEAD", Operation::Revert),
    ("sequencer", Operation::CherryPick),
    ("BISECT_LOG", Operation::Bisect),
];

/// Returns the operation in progress in the work tree of a git folder.
pub(super) fn find_operation(git_dir: &Path) -> Option<Operation> {
    MARKERS.iter().find(|(sign, _)| git_dir.join(sign).symlink_metadata().is_ok()).map(|&(_, operation)| operation)
}
