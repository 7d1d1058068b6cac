//! Operations of git that span several commands and leave files behind while they last, and where each of them shows.

use std::fmt;
use std::path::Path;

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

/// Returns the operation under way in the work tree of a git folder.
pub(super) fn find_operation(git_dir: &Path) -> Option<Operation> {
    MARKERS.iter().find(|(sign, _)| git_dir.join(sign).symlink_metadata().is_ok()).map(|&(_, operation)| operation)
}
