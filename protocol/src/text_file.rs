//! Opens text files that a person names. Client and daemon share this code.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Opens a file for reading.
///
/// # Errors
///
/// Fails if the file cannot be opened, or [is a pipe](refuse_pipe).
pub fn open_file(path: &Path) -> io::Result<File> {
    refuse_pipe(path)?;
    File::open(path)
}

/// Refuses a pipe that has a path: its other end may never be opened. One without a path, as of a shell's `<(…)`, has
/// its writer.
///
/// # Errors
///
/// Fails if there is such a pipe.
pub fn refuse_pipe(path: &Path) -> io::Result<()> {
    if fs::canonicalize(path).and_then(fs::metadata).is_ok_and(|found| found.file_type().is_fifo()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe; give its content on standard input"));
    }
    Ok(())
}
