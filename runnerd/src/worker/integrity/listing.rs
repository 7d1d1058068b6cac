//! Lists the files of a work tree that match globs, whatever git says about them.
//!
//! A folder that is unchanged since its last listing is not listed again: the check uses its change time (`ctime`),
//! which no program can set.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use runner_config::Patterns;
use runner_os::clock;

use crate::repo::layout::Layout;
use crate::worker::context::EffectError;

/// Minimum age of a folder's last change for its listing to be cached: a second change may have the same timestamp.
const SETTLE_TIME: SignedDuration = SignedDuration::from_secs(2);

/// Identifies a folder and its last change.
pub(super) type ChangeStamp = (u64, u64, i64, i64);

/// The folders as last listed.
#[derive(Debug, Default)]
pub(crate) struct WorkTreeListing {
    patterns: Patterns,
    folders: HashMap<String, ListedDirectory>,
}

#[derive(Debug)]
struct ListedDirectory {
    /// Identifies the folder's state; `None` if it was listed too soon after a change.
    stamp: Option<ChangeStamp>,
    /// Whether the folder contains a git folder, or a file that points to one.
    is_repository: bool,
    folders: Vec<String>,
    /// Files that match the patterns.
    files: Vec<String>,
}

impl WorkTreeListing {
    /// Lists the files below a folder that match the patterns and whose paths are text. Never follows links; leaves out
    /// git's own folder, the runner's, and repositories for which `is_separate` returns true.
    pub(super) fn files_below(
        &mut self,
        layout: &Layout,
        folder: String,
        patterns: &Patterns,
        is_separate: impl Fn(&str) -> Result<bool, EffectError>,
    ) -> Result<Vec<String>, EffectError> {
        if self.patterns != *patterns {
            *self = Self { patterns: patterns.clone(), folders: HashMap::new() };
        }
        let mut files = Vec::new();
        let mut folders = vec![folder];
        while let Some(path) = folders.pop() {
            let absolute = layout.path(&path);
            let metadata = match std::fs::symlink_metadata(&absolute) {
                Ok(found) if found.is_dir() => found,
                _ => continue,
            };
            let cached = self.folders.remove(&path).filter(|listed| listed.stamp == Some(change_stamp(&metadata)));
            let Some(listed) = cached.map_or_else(
                || ListedDirectory::read_directory(&absolute, &path, &metadata, patterns),
                |it| Ok(Some(it)),
            )?
            else {
                continue;
            };
            if path.is_empty() || !listed.is_repository || !is_separate(&path)? {
                files.extend_from_slice(&listed.files);
                folders.extend_from_slice(&listed.folders);
            }
            self.folders.insert(path, listed);
        }
        Ok(files)
    }
}

impl ListedDirectory {
    /// Lists a folder; `None` if it is gone. Fails if it cannot be listed: its files can still be read by name.
    fn read_directory(
        absolute: &Path,
        path: &str,
        metadata: &Metadata,
        patterns: &Patterns,
    ) -> Result<Option<Self>, EffectError> {
        let mut folder = Self { stamp: settled_stamp(metadata), is_repository: false, folders: vec![], files: vec![] };
        let entries = match std::fs::read_dir(absolute) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(EffectError::io_error("listing", absolute)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(EffectError::io_error("listing", absolute))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            folder.is_repository |= name == ".git";
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if !matches!(path.as_str(), ".git" | Layout::FOLDER) {
                    folder.folders.push(path);
                }
            } else if patterns.matches_path(&path) {
                folder.files.push(path);
            }
        }
        Ok(Some(folder))
    }
}

/// Returns the stamp of a folder's last change; `None` if it is too recent to be distinguished from a later one.
pub(super) fn settled_stamp(metadata: &Metadata) -> Option<ChangeStamp> {
    let changed = Timestamp::new(metadata.ctime(), i32::try_from(metadata.ctime_nsec()).unwrap_or(0)).ok()?;
    (clock::now().duration_since(changed) > SETTLE_TIME).then(|| change_stamp(metadata))
}

pub(super) fn change_stamp(metadata: &Metadata) -> ChangeStamp {
    (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_files(listing: &mut WorkTreeListing, root: &Path, globs: &[&str]) -> Vec<String> {
        let patterns = Patterns::new(globs.iter().copied());
        let mut files =
            listing.files_below(&Layout::new(root), String::new(), &patterns, |path| Ok(path == "apart")).unwrap();
        files.sort();
        files
    }

    #[test]
    fn what_is_added_later_is_seen_and_what_is_listed_already_stays() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        for path in ["a/x", "a/b/x", "a/b/y", ".git/x", "apart/.git/x", "apart/x", "own/.git/x", "own/x"] {
            put(path);
        }
        let mut listing = WorkTreeListing::default();
        assert_eq!(list_files(&mut listing, root.path(), &["x"]), ["a/b/x", "a/x", "own/.git/x", "own/x"]);
        put("a/b/c/x");
        assert_eq!(list_files(&mut listing, root.path(), &["x"]), ["a/b/c/x", "a/b/x", "a/x", "own/.git/x", "own/x"]);
        assert_eq!(list_files(&mut listing, root.path(), &["y"]), ["a/b/y"]);
    }

    #[test]
    fn a_folder_is_listed_once_where_it_does_not_change() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("x"), "").unwrap();
        std::thread::sleep(SETTLE_TIME.unsigned_abs() + std::time::Duration::from_millis(100));
        let mut listing = WorkTreeListing::default();
        assert_eq!(list_files(&mut listing, root.path(), &["x"]), ["x"]);
        let known = listing.folders.get_mut("").unwrap();
        assert!(known.stamp.is_some());
        known.files = vec!["known".to_owned()];
        assert_eq!(list_files(&mut listing, root.path(), &["x"]), ["known"]);
        std::fs::write(root.path().join("y"), "").unwrap();
        assert_eq!(list_files(&mut listing, root.path(), &["x"]), ["x"]);
    }
}
