//! Which files of a workspace nobody but a session or a person can have made: those that no commit has, and that were not
//! there when it was made ready.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use protocol::path::WirePath;

use crate::git::{GitError, Repository};
use crate::repo::layout::Layout;

/// What copy and setup have made.
struct Known<'a> {
    files: BTreeSet<&'a Path>,
    /// Folders that are known with all that is in them.
    folders: Vec<&'a Path>,
}

/// Returns files that neither copy nor setup has made, and folders in which these have made nothing; `made` is what they
/// have: files, and folders with all that is in them, which end in a slash.
///
/// What lies under `.runner/` is not among them: the records are the runner's.
pub fn foreign(repository: &Repository, made: &[WirePath]) -> Result<Vec<String>, GitError> {
    let known = Known::of(made);
    let mut foreign = Vec::new();
    for name in repository.uncommitted_names()?.iter().filter(|name| !path(name).starts_with(Layout::FOLDER)) {
        if !name.ends_with(b"/") {
            foreign.extend(known.shown_unless_made(name));
        } else if known.has_some_in(path(name)) {
            let files = repository.files_below(name)?;
            foreign.extend(files.iter().filter_map(|file| known.shown_unless_made(file)));
        } else if !repository.files_below(name)?.is_empty() {
            foreign.push(path(name).display().to_string());
        }
    }
    Ok(foreign)
}

fn path(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

impl<'a> Known<'a> {
    fn of(made: &'a [WirePath]) -> Self {
        let is_folder = |made: &&Path| made.as_os_str().as_bytes().ends_with(b"/");
        let (folders, files): (Vec<_>, Vec<_>) = made.iter().map(WirePath::as_path).partition(is_folder);
        Self { files: files.into_iter().collect(), folders }
    }

    fn shown_unless_made(&self, name: &[u8]) -> Option<String> {
        let path = path(name);
        let is_made = self.files.contains(path) || self.folders.iter().any(|folder| path.starts_with(folder));
        (!is_made).then(|| path.display().to_string())
    }

    /// Whether something in a folder, or all of it, was made.
    fn has_some_in(&self, folder: &Path) -> bool {
        let is_around = |made: &&Path| folder.starts_with(made) || made.starts_with(folder);
        let first = self.files.range::<Path, _>((Bound::Included(folder), Bound::Unbounded)).next();
        first.is_some_and(|file| file.starts_with(folder)) || self.folders.iter().any(is_around)
    }
}
