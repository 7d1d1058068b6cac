//! Logs of references that are somebody else's files: a link, or a second name of one, would have the runner write there.
//!
//! Entries themselves are written by the library and by git, which both follow links.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::durable::replace_file;
use super::{Fingerprint, GitError, Repository};

/// Folders deeper than this are not looked into: no name of a reference is that deep.
const DEEPEST: usize = 512;

impl Repository {
    /// Returns whether an entry in a reference's log would be written to that log and nowhere else.
    pub(super) fn has_own_log(&self, name: &str) -> bool {
        let mut path = self.folder_of(name).to_owned();
        let parts = Path::new("logs").join(name);
        for part in &parts {
            path.push(part);
            match path.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Ok(found) => return path.ends_with(&parts) && is_own(&found),
                Err(error) => return error.kind() == ErrorKind::NotFound,
            }
        }
        true
    }

    /// Puts files of their own in the place of logs that came `before` now and lead elsewhere; returns their paths.
    pub fn replace_foreign_logs(&self, before: &Fingerprint) -> Result<Vec<String>, GitError> {
        let is_old = |found: &Metadata| before.moment().is_some_and(|moment| moment.is_after(found));
        let own = Some(&self.git_dir).filter(|folder| **folder != self.common_dir);
        let mut foreign = Vec::new();
        for folder in own.into_iter().chain([&self.common_dir]) {
            find(&folder.join("logs"), DEEPEST, &mut |path, found| {
                if !is_own(found) && !is_old(found) {
                    foreign.push((path, found.clone()));
                }
            })?;
        }
        for (path, found) in &foreign {
            detach(path, found).map_err(GitError::io("replacing", path))?;
        }
        Ok(foreign.iter().map(|(path, _)| self.name_of(path)).collect())
    }
}

/// A link leads elsewhere, and a file with a second name is somebody else's too.
fn is_own(found: &Metadata) -> bool {
    found.is_file() && found.nlink() == 1
}

/// Visits what is no folder, links not followed; a folder that cannot be listed is not taken for an empty one.
fn find(path: &Path, depth: usize, visit: &mut impl FnMut(PathBuf, &Metadata)) -> Result<(), GitError> {
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(GitError::io("looking at", path)(error)),
    };
    if !found.is_dir() {
        visit(path.to_owned(), &found);
    } else if depth > 0 {
        for entry in fs::read_dir(path).map_err(GitError::io("listing", path))? {
            find(&entry.map_err(GitError::io("listing", path))?.path(), depth - 1, visit)?;
        }
    }
    Ok(())
}

/// Removes a link, and gives a file with other names a copy of its own.
fn detach(path: &Path, found: &Metadata) -> io::Result<()> {
    if !found.is_file() {
        return fs::remove_file(path);
    }
    replace_file(path, &fs::read(path)?, found.permissions().mode() & 0o7777)
}
