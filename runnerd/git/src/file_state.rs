//! A file at one moment with its whole content, so that it can be compared and restored.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use protocol::hex::to_hex;
use serde::{Deserialize, Serialize};

use super::GitError;

/// Larger files are recorded by length and times only, and are not restored.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Snapshot of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FileState {
    File { mode: u32, hex: String },
    Link { hex: String },
    Large { bytes: u64, mtime: i64, nanos: i64 },
    Other,
}

/// Reads a file's state; `None` if it does not exist.
pub(super) fn read_file_state(path: &Path) -> Result<Option<FileState>, GitError> {
    let metadata = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(GitError::io("looking at", path)(error)),
    };
    let read = || -> io::Result<FileState> {
        Ok(if metadata.is_symlink() {
            FileState::Link { hex: to_hex(fs::read_link(path)?.as_os_str().as_bytes()) }
        } else if !metadata.is_file() {
            FileState::Other
        } else if metadata.len() > MAX_BYTES {
            FileState::Large { bytes: metadata.len(), mtime: metadata.mtime(), nanos: metadata.mtime_nsec() }
        } else {
            FileState::File { mode: metadata.permissions().mode() & 0o7777, hex: to_hex(&fs::read(path)?) }
        })
    };
    match read() {
        // What is unreadable for us is unreadable for git.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Some(FileState::Other)),
        read => read.map(Some).map_err(GitError::io("reading", path)),
    }
}
