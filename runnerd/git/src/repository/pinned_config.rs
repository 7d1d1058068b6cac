//! What git may run and obey in the runner's operations: configuration, attributes and ignore rules as they were when a
//! person asked for the run (`pin_config`), stored in a folder that agents do not use.
//!
//! The folder replaces the repository's common git folder. The library opens it and the git program is pointed to it,
//! so neither reads a configuration that a session could have written; objects, references and the index remain the
//! repository's own. The value in memory, which the caller keeps, is authoritative: the folder is compared with it
//! before each use and restored if it differs. What a session did to the repository is not checked here: that is in
//! `git_dir_snapshot`.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use gix::bstr::ByteSlice as _;
use protocol::hex::from_hex;
use protocol::path::WirePath;
use runner_os::temp_file;
use serde::{Deserialize, Serialize};

use super::exclude_block::strip_blocks;
use crate::GitError;
use crate::durable::remove_path;

/// The settings file.
pub(crate) const CONFIG_FILE: &str = "config";
/// The ignore file in which the runner itself records what it holds back.
pub(crate) const EXCLUDE_FILE: &str = "info/exclude";
/// The attributes file that overrides those of the work tree.
pub(crate) const ATTRIBUTES_FILE: &str = "info/attributes";
/// The runner's line in it: git checks out the files of the runner's folder as they are stored.
pub const RUNNER_ATTRIBUTES_LINE: &str = "/.runner/** -text -ident -filter !working-tree-encoding";
/// The patterns of a sparse checkout.
pub(crate) const SPARSE_FILE: &str = "info/sparse-checkout";
/// Limit in bytes of what the runner's own lines add to the ignore file.
const MAX_BLOCK_BYTES: u64 = 16 << 20;
/// A branch that does not exist: the real HEAD is the repository's.
const PLACEHOLDER_HEAD: &[u8] = b"ref: refs/heads/none\n";
/// Parts of the common folder that hold history and no settings.
const SHARED_ENTRIES: [&str; 4] = ["objects", "worktrees", "shallow", "reftable"];

/// What git may obey: every setting and rule at one moment, as a value for its owner to keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedConfig {
    pub(crate) work_dir: WirePath,
    pub(crate) git_dir: WirePath,
    pub(crate) common_dir: WirePath,
    /// The files of settings and rules by name, hex-encoded.
    pub(crate) files: BTreeMap<String, String>,
    /// Inode numbers of the git folder and the common folder that a person has accepted.
    pub(crate) accepted: [u64; 2],
}

/// The captured configuration, written to a folder where git and the library read it.
///
/// The value is authoritative. The folder is checked before each use and matches the value from then on.
#[derive(Debug)]
pub(crate) struct PinnedConfigDir {
    pub(crate) folder: PathBuf,
    pub(crate) config: PinnedConfig,
    files: Vec<(String, Vec<u8>)>,
    links: Vec<(&'static str, PathBuf)>,
    write_lock: Mutex<()>,
}

impl PinnedConfigDir {
    pub(crate) fn new(folder: &Path, captured: PinnedConfig) -> Self {
        let mut files: Vec<_> =
            captured.files.iter().map(|(name, hex)| (name.clone(), from_hex(hex).unwrap_or_default())).collect();
        for (_, text) in files.iter_mut().filter(|(name, _)| name == CONFIG_FILE) {
            for key in ["excludes", "attributes"] {
                let file = quote_config_path(&folder.join(key));
                text.extend(format!("\n[core]\n\t{key}File = ").bytes().chain(file).chain(*b"\n"));
            }
        }
        let attributes = captured.files.get(ATTRIBUTES_FILE).and_then(|hex| from_hex(hex)).unwrap_or_default();
        files.retain(|(name, _)| name != ATTRIBUTES_FILE);
        files.push((ATTRIBUTES_FILE.to_owned(), append_runner_attributes(attributes)));
        files.push(("HEAD".to_owned(), PLACEHOLDER_HEAD.to_vec()));
        let common_dir = captured.common_dir.as_path();
        let links = SHARED_ENTRIES.iter().map(|name| (*name, common_dir.join(name))).collect();
        Self { folder: folder.to_owned(), config: captured, files, links, write_lock: Mutex::default() }
    }

    /// Makes the folder match the value, unless it already does.
    pub(crate) fn write_files(&self) -> Result<(), GitError> {
        let _one = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Not joined with "": with a trailing slash, a link would be followed.
        for folder in [self.folder.clone(), self.folder.join("info"), self.folder.join("refs")] {
            create_private_dir(&folder)?;
        }
        for (name, bytes) in &self.files {
            let file = self.folder.join(name);
            let is_current =
                if name == EXCLUDE_FILE { has_exclude_rules(&file, bytes) } else { has_content(&file, bytes) };
            if !is_current {
                self.write_file(&file, bytes)?;
            }
        }
        for (name, target) in self.expected_links() {
            let link = self.folder.join(name);
            if !fs::read_link(&link).is_ok_and(|found| found == *target) {
                remove_path(&link)?;
                symlink(target, &link).map_err(GitError::io("linking", &link))?;
            }
        }
        self.remove_unpinned()
    }

    /// The new file is written outside of the folder: inside it, another process would mistake it for a stray file.
    fn write_file(&self, file: &Path, bytes: &[u8]) -> Result<(), GitError> {
        tracing::debug!(file = %file.display(), "writing a file of git's captured configuration");
        if file.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            remove_path(file)?;
        }
        let temp_dir = self.folder.parent().unwrap_or(&self.folder);
        let write = || -> io::Result<()> {
            let mut new = temp_file::create_in(temp_dir, file)?;
            new.write_all(bytes)?;
            new.persist(file)?;
            Ok(())
        };
        write().map_err(GitError::io("writing", file))
    }

    /// Removes files that git might obey but that were not captured: hooks, settings of a work tree, grafts.
    fn remove_unpinned(&self) -> Result<(), GitError> {
        let is_expected = |name: &str| {
            let own = ["info", "refs"].contains(&name) || self.files.iter().any(|(file, _)| file == name);
            own || self.expected_links().any(|(link, _)| *link == name)
        };
        for part in ["", "info/", "refs/"] {
            let folder = self.folder.join(part);
            for entry in fs::read_dir(&folder).map_err(GitError::io("listing", &folder))? {
                let entry = entry.map_err(GitError::io("listing", &folder))?;
                let name = entry.file_name();
                if !name.to_str().is_some_and(|name| is_expected(&format!("{part}{name}"))) {
                    tracing::warn!(file = %entry.path().display(), "removed: git would read it, and it was not captured");
                    remove_path(&entry.path())?;
                }
            }
        }
        Ok(())
    }

    /// Whether objects are read from the repository: the only part of the folder that a view that is open still uses,
    /// but for rules (see `rules`).
    pub(crate) fn has_object_link(&self) -> bool {
        self.links.iter().all(|(name, target)| {
            *name != "objects" || fs::read_link(self.folder.join(name)).is_ok_and(|found| found == *target)
        })
    }

    /// Returns the links that should exist: a reference store in another format is not always there.
    fn expected_links(&self) -> impl Iterator<Item = &(&'static str, PathBuf)> {
        self.links.iter().filter(|(name, target)| *name != "reftable" || target.exists())
    }
}

/// Adds the runner's line to attributes.
pub(crate) fn append_runner_attributes(attributes: Vec<u8>) -> Vec<u8> {
    [attributes, b"\n".to_vec(), RUNNER_ATTRIBUTES_LINE.into(), b"\n".to_vec()].concat()
}

/// Creates a private folder, unless it exists; anything else in its place, such as a link, is replaced.
fn create_private_dir(folder: &Path) -> Result<(), GitError> {
    if folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    remove_path(folder)?;
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(GitError::io("making", folder))
}

/// Returns a path as a value in a configuration file.
pub(crate) fn quote_config_path(path: &Path) -> Vec<u8> {
    let mut value = vec![b'"'];
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => value.extend([b'\\', byte]),
            b'\n' => value.extend(*b"\\n"),
            byte => value.push(byte),
        }
    }
    value.push(b'"');
    value
}

/// Whether a path is a regular file with exactly these bytes; follows no link, and waits for no pipe.
fn has_content(file: &Path, bytes: &[u8]) -> bool {
    let has_form = |found: fs::Metadata| found.is_file() && found.len() == bytes.len() as u64;
    file.symlink_metadata().is_ok_and(has_form) && fs::read(file).is_ok_and(|found| found == bytes)
}

/// Whether a path is a regular file with these ignore rules, and no others but what the runner has held back since.
fn has_exclude_rules(file: &Path, bytes: &[u8]) -> bool {
    let most = bytes.len() as u64 + MAX_BLOCK_BYTES;
    let rules = |text: &[u8]| strip_blocks(text).trim_end_with(|end| end == '\n').to_owned();
    file.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() <= most)
        && fs::read(file).is_ok_and(|found| rules(&found) == rules(bytes))
}

/// Reads a rules file; empty if there is no file.
pub(crate) fn read_rules_file(file: &Path) -> Result<Vec<u8>, GitError> {
    match fs::metadata(file) {
        Ok(found) if found.is_file() => fs::read(file).map_err(GitError::io("reading", file)),
        _ => Ok(Vec::new()),
    }
}
