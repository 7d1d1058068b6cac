//! Which files of a workspace nobody but a session or a person can have made: those that no commit has, and that were not
//! there when it was made ready.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use protocol::path::WirePath;

use crate::git::{GitError, Repository};
use crate::repo::layout::Layout;

/// Returns files, and folders with nothing else in them, that neither copy nor setup has made; `made` is what they have.
///
/// What lies under `.runner/` is not among them: the records are the runner's.
pub fn foreign(repository: &Repository, made: &[WirePath]) -> Result<Vec<String>, GitError> {
    let names = repository.uncommitted_names()?;
    let paths = names.iter().map(|name| Path::new(OsStr::from_bytes(name)));
    let is_known = |path: &&Path| made.iter().any(|made| path.starts_with(made.as_path()));
    let others = paths.filter(|path| !path.starts_with(Layout::FOLDER) && !is_known(path));
    Ok(others.map(|path| path.display().to_string()).collect())
}
