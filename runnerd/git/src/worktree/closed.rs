//! Files that a program has closed to their owner with `chmod`: opened before a scan would read them, if that is
//! wanted. Git would mistake them for unchanged, or could not store them.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use gix::bstr::BStr;
use runner_os::dir_permissions::owner_has;

use super::scan::has_symlink_parent;
use crate::{GitError, Repository};

/// Permission the owner of a file needs to read it, and those the file gets.
const READABLE: (u32, u32) = (0o400, 0o600);

impl Repository {
    /// Makes every scan open what it would read: this work tree is a run's, and a session may have closed it.
    pub fn set_opens_files(&self) {
        self.cache.lock().opens_files = true;
    }

    pub(crate) fn opens_files(&self) -> bool {
        self.cache.lock().opens_files
    }

    /// Opens those of these files that are closed: no scan reads a file that git ignores.
    pub fn open_closed_files<'p>(&self, paths: impl IntoIterator<Item = &'p str>) -> Result<(), GitError> {
        self.open_files(paths.into_iter().map(BStr::new))
    }

    /// Opens those of these files that are closed, if scans of this repository do so. Follows no links.
    pub(crate) fn open_files<'p>(&self, paths: impl IntoIterator<Item = &'p BStr>) -> Result<(), GitError> {
        if !self.opens_files() {
            return Ok(());
        }
        let (needed, given) = READABLE;
        for path in paths {
            let file = self.absolute_path(path);
            let Ok(found) = file.symlink_metadata() else { continue };
            if !found.is_file() || owner_has(&found, needed) || has_symlink_parent(self, path) {
                continue;
            }
            match fs::set_permissions(&file, Permissions::from_mode(found.mode() & 0o7777 | given)) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                opened => opened.map_err(GitError::io("opening", &file))?,
            }
        }
        Ok(())
    }
}
