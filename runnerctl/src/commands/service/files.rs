//! The files of the service: each ends with a digest of its content, so that a file modified by the user is recognized
//! and left alone.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use protocol::hex::to_hex;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::failure::Failure;

const DIGEST_PREFIX: &str = "sum: ";

/// A file of the service.
#[derive(Debug)]
pub(super) struct ServiceFile {
    /// Path of the file.
    pub(super) path: PathBuf,
    /// Expected content of the file.
    text: String,
}

/// State of an existing or missing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileState {
    /// Nothing.
    Missing,
    /// Identical to what this program would write.
    Current,
    /// Written by `install`, for other paths or by another version.
    Outdated,
    /// Written or modified by someone else.
    Changed,
}

impl ServiceFile {
    /// Creates a systemd unit file.
    pub(super) fn new_unit(path: PathBuf, text: &str) -> Self {
        Self { path, text: format!("{text}# {DIGEST_PREFIX}{}\n", hex_digest(text)) }
    }

    /// Creates a property list file.
    pub(super) fn new_plist(path: PathBuf, text: &str) -> Self {
        Self { path, text: format!("{text}<!-- {DIGEST_PREFIX}{} -->\n", hex_digest(text)) }
    }

    /// Compares the file on disk.
    pub(super) fn read_state(&self) -> Result<FileState, Failure> {
        match fs::read(&self.path) {
            Ok(bytes) if bytes == self.text.as_bytes() => Ok(FileState::Current),
            Ok(bytes) if has_valid_digest(&bytes) && !self.path.is_symlink() => Ok(FileState::Outdated),
            Ok(_) => Ok(FileState::Changed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(FileState::Missing),
            Err(error) => Err(Failure::io(format!("reading {}", self.path.display()), &error)),
        }
    }

    /// Writes the file atomically.
    pub(super) fn write(&self) -> Result<(), Failure> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let write = || -> io::Result<()> {
            fs::create_dir_all(folder)?;
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(self.text.as_bytes())?;
            file.as_file().set_permissions(Permissions::from_mode(0o644))?;
            file.as_file().sync_all()?;
            file.persist(&self.path).map(drop).map_err(|error| error.error)
        };
        write().map_err(|error| Failure::io(format!("writing {}", self.path.display()), &error))
    }

    /// Removes the file.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        fs::remove_file(&self.path).map_err(|error| Failure::io(format!("removing {}", self.path.display()), &error))
    }
}

fn has_valid_digest(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let body_ends = text.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
    let (body, last) = text.split_at(body_ends);
    last.contains(&format!("{DIGEST_PREFIX}{}", hex_digest(body)))
}

fn hex_digest(text: &str) -> String {
    to_hex(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_state(path: &Path, text: &str) -> FileState {
        ServiceFile::new_unit(path.to_owned(), text).read_state().expect("it can be read")
    }

    #[test]
    fn what_was_written_is_known_from_what_a_person_has_changed() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("units/runnerd.service");
        assert_eq!(read_state(&path, "a\n"), FileState::Missing);
        ServiceFile::new_unit(path.clone(), "a\n").write().expect("it can be written");
        assert_eq!(read_state(&path, "a\n"), FileState::Current);
        assert_eq!(read_state(&path, "b\n"), FileState::Outdated);
        let text = fs::read_to_string(&path).expect("a text");
        fs::write(&path, text.replace('a', "c")).expect("it can be changed");
        assert_eq!(read_state(&path, "b\n"), FileState::Changed);
        fs::write(&path, "no mark").expect("it can be changed");
        assert_eq!(read_state(&path, "b\n"), FileState::Changed);
    }

    #[test]
    fn a_property_list_is_known_by_its_comment() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a.plist");
        ServiceFile::new_plist(path.clone(), "<plist/>\n").write().expect("it can be written");
        assert_eq!(
            ServiceFile::new_plist(path, "<other/>\n").read_state().expect("it can be read"),
            FileState::Outdated
        );
    }
}
