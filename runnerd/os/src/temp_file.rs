//! The names of temporary files that replace others: one pattern, by which every sweep recognizes leftovers of an
//! interrupted write. Writes and removes nothing itself.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use tempfile::NamedTempFile;

/// The suffix of all such names.
pub const SUFFIX: &str = ".runnerd-tmp";

/// Creates a private file next to `file`; it is removed when it is dropped.
pub fn create_beside(file: &Path) -> io::Result<NamedTempFile> {
    create_in(file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")), file)
}

/// Creates a file in `folder` that will replace `file`.
pub fn create_in(folder: &Path, file: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(&name_prefix(file)).suffix(SUFFIX).tempfile_in(folder)
}

/// Returns the prefix of such a name for a file.
pub fn name_prefix(file: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(file.file_name().unwrap_or_default());
    prefix.push(".");
    prefix
}

/// Whether a name is one of these.
pub fn is_temp_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b".") && name.ends_with(SUFFIX.as_bytes())
}
