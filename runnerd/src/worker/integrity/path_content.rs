//! One path of the working tree: its content, read without following a link, and a file that replaces it.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use runner_git::EntryKind;

use crate::repo::durable::{self, FileAccess, MAX_BYTES};
use crate::worker::context::EffectError;

/// The content of a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PathContent {
    /// There is nothing, or no regular file.
    Absent,
    /// A file of more than [`MAX_BYTES`]: it is not read, and wrong whatever its content.
    TooLarge,
    File(Vec<u8>),
}

/// Reads a file up to the limit.
pub(crate) fn read_content(file: &Path) -> Result<PathContent, EffectError> {
    match std::fs::symlink_metadata(file) {
        Ok(found) if found.is_file() && found.len() > MAX_BYTES => Ok(PathContent::TooLarge),
        Ok(found) if found.is_file() => read_bounded(file).map_err(EffectError::io_error("reading", file)),
        Ok(_) => Ok(PathContent::Absent),
        Err(error) if is_absent(&error) => Ok(PathContent::Absent),
        Err(error) => Err(EffectError::io_error("looking at", file)(error)),
    }
}

/// Whether a regular file is executable; `None` if there is none.
pub(crate) fn is_executable(file: &Path) -> Result<Option<bool>, EffectError> {
    match std::fs::symlink_metadata(file) {
        Ok(found) if found.is_file() => Ok(Some(found.permissions().mode() & 0o100 != 0)),
        Ok(_) => Ok(None),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(EffectError::io_error("looking at", file)(error)),
    }
}

/// Replaces whatever is at the path with a file of this kind.
pub(crate) fn put_file(file: &Path, kind: EntryKind, bytes: &[u8]) -> Result<(), EffectError> {
    durable::replace(file, bytes, FileAccess::Repository)?;
    if kind.is_executable() {
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(file, executable).map_err(EffectError::io_error("making executable", file))?;
    }
    Ok(())
}

/// Reads a file without following a link or blocking on a pipe that has replaced it; the file may grow meanwhile.
fn read_bounded(file: &Path) -> io::Result<PathContent> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file)?;
    let mut bytes = Vec::new();
    opened.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(if bytes.len() as u64 > MAX_BYTES { PathContent::TooLarge } else { PathContent::File(bytes) })
}

/// Whether the error indicates that the path does not exist; a file may be in the place of a folder.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
