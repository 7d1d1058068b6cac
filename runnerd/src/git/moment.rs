//! A moment by the clock of a file system: which files are what they were then, and which folders have the names that they
//! had, is told without reading them.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::clock;

/// Links of a folder in which there is no other: its name, and the one that it has for itself.
const LINKS: u64 = 2;

/// How far the clock may seem to be set back: it is adjusted in small steps all the time.
const MAX_BACK_MS: i64 = 100;

/// Such a moment, and folders that were in their places then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moment {
    /// Number of the file system.
    device: u64,
    /// Seconds and nanoseconds.
    clock: (i64, i64),
    /// How far the clock was ahead of the time since the machine started, in milliseconds.
    ahead: i64,
    /// Numbers of the folders.
    known: Vec<u64>,
}

impl Moment {
    /// Returns the moment at which a name came or went last in a folder; none where there is no folder.
    pub(super) fn of(folder: &Path, known: &[&Path]) -> Option<Self> {
        let look = |path: &Path| path.symlink_metadata().ok().filter(Metadata::is_dir);
        let found = look(folder)?;
        let others = known.iter().filter_map(|path| look(path)).filter(|other| other.dev() == found.dev());
        let known = others.map(|other| other.ino()).chain([found.ino()]).collect();
        Some(Self { device: found.dev(), clock: changed(&found), ahead: clock::ahead_of_boot(), known })
    }

    /// Tells whether what has changed since bears a later time: not if the clock was set back.
    pub(super) fn counts(&self) -> bool {
        clock::ahead_of_boot() >= self.ahead - MAX_BACK_MS
    }

    /// Tells whether a file, or the names in a folder, are what they were: what is moved changes, too.
    pub(super) fn is_after(&self, found: &Metadata) -> bool {
        found.dev() == self.device && changed(found) < self.clock
    }

    /// Tells whether a folder is one of those that were known, so that what is in it was in it then or has changed.
    pub(super) fn knows(&self, folder: &Metadata) -> bool {
        folder.dev() == self.device && self.known.contains(&folder.ino())
    }
}

/// Tells whether a folder has none inside; file systems that do not count links say no.
pub(super) fn has_no_folders(folder: &Metadata) -> bool {
    folder.nlink() == LINKS
}

fn changed(found: &Metadata) -> (i64, i64) {
    (found.ctime(), found.ctime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let moment = Moment::of(folder.path(), &[]).unwrap();
        assert!(moment.counts());
        assert!(!Moment { ahead: moment.ahead + 3_600_000, ..moment }.counts(), "an hour ago it was an hour later");
    }
}
