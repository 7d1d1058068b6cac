//! A folder of folders that are written once and then left alone, such as the records of a run: which of them are as they
//! were at one moment, told without listing them.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use protocol::path::WirePath;
use serde::{Deserialize, Serialize};

/// Links of a folder in which there is no other: its name, and the one that it has for itself.
const LINKS: u64 = 2;

/// Such a folder at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archive {
    path: WirePath,
    /// Numbers of its file system and of itself.
    place: (u64, u64),
    /// When a name came or went last, by the clock of the file system.
    changed: (i64, i64),
}

impl Archive {
    /// Looks at the folder; none where there is none.
    pub fn at(path: &Path) -> Option<Self> {
        let found = path.symlink_metadata().ok().filter(std::fs::Metadata::is_dir)?;
        let (place, changed) = ((found.dev(), found.ino()), (found.ctime(), found.ctime_nsec()));
        Some(Self { path: path.into(), place, changed })
    }

    /// Tells whether it is still the folder at its path.
    pub(super) fn is_in_place(&self) -> bool {
        Self::at(self.path.as_path()).is_some_and(|now| now.place == self.place)
    }

    /// Tells whether a folder is in it, has none inside, and is as it was: one that gains a name, or is moved here, changes.
    ///
    /// File systems that do not count links say no.
    pub(super) fn has_as_it_was(&self, folder: &Path) -> bool {
        let is_in_it = folder.parent() == Some(self.path.as_path());
        is_in_it
            && folder.symlink_metadata().is_ok_and(|found| {
                let changed = (found.ctime(), found.ctime_nsec());
                found.dev() == self.place.0 && found.nlink() == LINKS && changed < self.changed
            })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// An archive with a folder that is older than it is, and the folder.
    fn archive() -> (tempfile::TempDir, Archive, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let (path, old) = (root.path().join("records"), root.path().join("records/old"));
        fs::create_dir_all(&old).unwrap();
        fs::write(old.join("file"), "x").unwrap();
        (root, later_than(&old, &path), old)
    }

    /// Changes an archive until it is younger than a folder: the clock of a file system ticks every few milliseconds.
    fn later_than(folder: &Path, path: &Path) -> Archive {
        let made = Archive::at(folder).unwrap().changed;
        loop {
            fs::write(path.join("name"), "x").unwrap();
            fs::remove_file(path.join("name")).unwrap();
            let archive = Archive::at(path).unwrap();
            if archive.changed > made {
                return archive;
            }
        }
    }

    #[test]
    fn what_nobody_wrote_into_is_as_it_was() {
        let (_root, archive, old) = archive();
        assert!(archive.is_in_place() && archive.has_as_it_was(&old));
        fs::write(old.join("file"), "other bytes").unwrap();
        assert!(archive.has_as_it_was(&old), "no name came or went");
    }

    #[test]
    fn folder_that_gained_or_lost_a_name_is_not() {
        let (_root, archive, old) = archive();
        fs::write(old.join("new"), "x").unwrap();
        assert!(!archive.has_as_it_was(&old));
        let (_root, archive, old) = self::archive();
        fs::remove_file(old.join("file")).unwrap();
        assert!(!archive.has_as_it_was(&old));
    }

    #[test]
    fn folder_with_another_inside_or_one_that_was_moved_here_is_not() {
        let (root, _, old) = archive();
        let moved = root.path().join("records/moved");
        fs::create_dir(old.join("inner")).unwrap();
        fs::create_dir(root.path().join("elsewhere")).unwrap();
        let later = later_than(&old, &root.path().join("records"));
        assert!(!later.has_as_it_was(&old));
        fs::rename(root.path().join("elsewhere"), &moved).unwrap();
        assert!(!later.has_as_it_was(&moved));
    }

    #[test]
    fn another_folder_at_its_path_is_not_it() {
        let (root, archive, _) = archive();
        fs::rename(root.path().join("records"), root.path().join("aside")).unwrap();
        assert!(!archive.is_in_place());
        fs::create_dir(root.path().join("records")).unwrap();
        assert!(!archive.is_in_place());
    }
}
