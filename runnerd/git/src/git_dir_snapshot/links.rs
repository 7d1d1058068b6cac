//! Finds files of git's that are links or have a second name, so that writing to them would change someone else's file:
//! reflogs, the index, packed references, and the folders of references and objects.
//!
//! Both the library and git follow links when they write them.

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::libc::O_NONBLOCK;

use crate::durable::replace_file;
use crate::{GitDirSnapshot, GitError, Repository};

/// Files that git replaces at the target of a link.
const FOLLOWED_FILES: [&str; 2] = ["index", "packed-refs"];
/// Folders in which files are created, and how deeply nested their subfolders are.
const SCANNED_DIRS: [(&str, usize); 2] = [("refs", MAX_DEPTH), ("objects", 1)];
/// Limit in bytes for a copy: a link may lead to a file larger than memory.
const MAX_COPIED_BYTES: u64 = 512 * 1024 * 1024;
/// Folders nested deeper are not searched: no reference has a name that deep.
const MAX_DEPTH: usize = 512;

impl Repository {
    /// Whether an entry in a reference's reflog would be written to that file and nowhere else.
    pub(crate) fn has_private_log(&self, name: &str) -> bool {
        let mut path = self.ref_dir(name).to_owned();
        let parts = Path::new("logs").join(name);
        for part in &parts {
            path.push(part);
            match path.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Ok(found) => return path.ends_with(&parts) && is_private_file(&found),
                Err(error) => return error.kind() == ErrorKind::NotFound,
            }
        }
        true
    }

    /// Replaces files that lead elsewhere and did not `before` with separate copies; returns their names.
    ///
    /// Fails if a folder leads elsewhere: its contents cannot be told apart from someone else's files.
    pub fn replace_linked_files(&self, before: &GitDirSnapshot) -> Result<Vec<String>, GitError> {
        let is_new = |found: &Metadata| before.may_have_changed(found);
        let own = Some(&self.git_dir).filter(|folder| **folder != self.common_dir);
        let mut linked = Vec::new();
        for folder in own.into_iter().chain([&self.common_dir]) {
            for (name, depth) in SCANNED_DIRS {
                visit_files(&folder.join(name), depth, &mut |path, found| {
                    let leads_elsewhere = found.is_symlink() && path.is_dir() && is_new(found);
                    if leads_elsewhere { Err(GitError::GitDirReplaced { path }) } else { Ok(()) }
                })?;
            }
            visit_files(&folder.join("logs"), MAX_DEPTH, &mut |path, found| {
                linked.extend((!is_private_file(found) && is_new(found)).then(|| (path, found.clone())));
                Ok(())
            })?;
            for path in FOLLOWED_FILES.map(|name| folder.join(name)) {
                let found = path.symlink_metadata().ok().filter(Metadata::is_symlink);
                linked.extend(found.filter(is_new).map(|found| (path, found)));
            }
        }
        for (path, found) in &linked {
            replace_with_copy(path, found).map_err(GitError::io("replacing", path))?;
        }
        Ok(linked.iter().map(|(path, _)| self.display_git_path(path)).collect())
    }
}

/// False for a link, which leads elsewhere, and for a file with a second name, which is also someone else's.
fn is_private_file(found: &Metadata) -> bool {
    found.is_file() && found.nlink() == 1
}

/// Visits everything but folders, without following links; a folder that cannot be listed does not count as empty.
fn visit_files(
    path: &Path,
    depth: usize,
    visit: &mut impl FnMut(PathBuf, &Metadata) -> Result<(), GitError>,
) -> Result<(), GitError> {
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(GitError::io("looking at", path)(error)),
    };
    if !found.is_dir() {
        visit(path.to_owned(), &found)?;
    } else if depth > 0 {
        for entry in fs::read_dir(path).map_err(GitError::io("listing", path))? {
            visit_files(&entry.map_err(GitError::io("listing", path))?.path(), depth - 1, visit)?;
        }
    }
    Ok(())
}

/// Replaces another name of a file with a copy; removes what is not a file, or is too large to be git's. A link in
/// place of a reflog leads to someone else's file.
fn replace_with_copy(path: &Path, found: &Metadata) -> io::Result<()> {
    let is_copied = found.is_file() || FOLLOWED_FILES.iter().any(|name| path.ends_with(name));
    let mode = if found.is_file() { found.permissions().mode() & 0o7777 } else { 0o644 };
    match if is_copied { read_file(path)? } else { None } {
        Some(bytes) => replace_file(path, &bytes, mode),
        None => fs::remove_file(path),
    }
}

/// Reads a file, following links; `None` if there is none, or if it is too large.
fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    if !found.is_file() || found.len() > MAX_COPIED_BYTES {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    // Some system files have neither a length nor an end.
    let read = file.take(MAX_COPIED_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((read as u64 <= MAX_COPIED_BYTES).then_some(bytes))
}
