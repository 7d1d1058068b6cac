//! Files of git's that are read whole and are too large for that: a session can give the index any length without
//! using disk space, and every program that opens the repository would read all of it.
//!
//! Objects and logs are out of scope: they have no upper bound, and are read in pieces.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use crate::durable::replace_file;
use crate::index::MAX_INDEX_BYTES;
use crate::{GitDirSnapshot, GitError, Repository};

/// Limit in bytes of the packed references.
const MAX_PACKED_REFS_BYTES: u64 = 128 << 20;
/// Limit in bytes of a file that holds one reference.
const MAX_REF_BYTES: u64 = 64 << 10;
const PACKED_REFS: &str = "packed-refs";
/// Folders nested deeper are not searched: no reference has a name that deep.
const MAX_DEPTH: usize = 512;

impl Repository {
    /// Returns the files of git's folder that have changed since `before` and are too large to be read; the index is the
    /// last, since HEAD replaces it. Reads none of them.
    pub fn find_large_git_files(&self, before: &GitDirSnapshot) -> Vec<PathBuf> {
        let mut large = Vec::new();
        let mut add = |path: PathBuf, found: &Metadata| {
            let most = max_bytes(&path).filter(|most| found.len() > *most && before.may_have_changed(found));
            large.extend(most.map(|_| path));
        };
        visit_regular_files(&self.git_dir, 1, &mut add);
        let packed = self.common_dir.join(PACKED_REFS);
        if self.git_dir != self.common_dir
            && let Ok(found) = packed.symlink_metadata()
        {
            add(packed, &found);
        }
        let mut folders = vec![self.common_dir.join("refs"), self.git_dir.join("refs")];
        folders.dedup();
        for folder in folders {
            visit_regular_files(&folder, MAX_DEPTH, &mut |path, found| {
                large.extend((found.len() > MAX_REF_BYTES && before.may_have_changed(found)).then_some(path));
            });
        }
        large.sort_by_key(|path| (*path == self.index_path(), path.clone()));
        large
    }

    /// Restores a file that was too large and has been moved away: references have their earlier value, and the index
    /// has the files of HEAD.
    ///
    /// HEAD and the branch that it named become unreadable instead: the reflogs may name commits of the session.
    pub fn restore_large_git_file(&self, before: &GitDirSnapshot, path: &Path) -> Result<(), GitError> {
        if max_bytes(path) == Some(MAX_INDEX_BYTES) {
            // Without a commit at HEAD, a rescue comes first, and writes the index.
            let head = self.head().ok().and_then(|head| head.commit());
            return head.map_or(Ok(()), |head| self.rebuild_index(head));
        }
        if *path == self.common_dir.join(PACKED_REFS) {
            return self.restore_packed_refs(before);
        }
        let inside = [&self.git_dir, &self.common_dir].into_iter().find_map(|folder| path.strip_prefix(folder).ok());
        let text = inside.and_then(Path::to_str).and_then(|name| before.ref_text(name));
        text.map_or(Ok(()), |text| replace_file(path, text.as_bytes(), 0o644))
            .map_err(GitError::io("putting back", path))
    }
}

/// Returns the largest length at which a file directly in git's folder is read; `None` if it is not read whole.
pub(crate) fn max_bytes(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    match name {
        PACKED_REFS => Some(MAX_PACKED_REFS_BYTES),
        // It has a line for each reference that was fetched.
        "FETCH_HEAD" => None,
        _ if name == "index" || name.starts_with("sharedindex.") => Some(MAX_INDEX_BYTES),
        _ => name.ends_with("HEAD").then_some(MAX_REF_BYTES),
    }
}

/// Visits the regular files in a folder and, up to a depth, in those below it. A folder that cannot be listed is no
/// more readable for git.
fn visit_regular_files(folder: &Path, depth: usize, visit: &mut impl FnMut(PathBuf, &Metadata)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(found) = entry.metadata() else { continue };
        if found.is_file() {
            visit(entry.path(), &found);
        } else if found.is_dir() && depth > 1 {
            visit_regular_files(&entry.path(), depth - 1, visit);
        }
    }
}
