//! Files of a workspace that only a session or a person can have created: those that no commit has, and that did not
//! exist when it was prepared.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use protocol::path::WirePath;
use runner_git::{GitError, Repository};

use crate::repo::layout::Layout;

/// The beginning of the file `CACHEDIR.TAG`.
const CACHE_SIGNATURE: &[u8; 43] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// What copy and setup have created.
struct ProvisionedFiles<'a> {
    files: BTreeSet<&'a Path>,
    /// Folders that are known with all their contents.
    folders: Vec<&'a Path>,
}

/// Returns files that neither copy nor setup has created, and folders in which these have created nothing.
///
/// `provisioned` lists what they have created: files, and folders with all their contents, which end in a slash.
///
/// Leaves out `.runner/`, since the records are the runner's, and folders with a `CACHEDIR.TAG`.
pub fn find_unknown_files(repository: &Repository, provisioned: &[WirePath]) -> Result<Vec<String>, GitError> {
    let known = ProvisionedFiles::from_paths(provisioned);
    let mut unknown = Vec::new();
    for name in repository.list_uncommitted_paths()?.iter().filter(|name| !to_path(name).starts_with(Layout::FOLDER)) {
        if !name.ends_with(b"/") {
            unknown.extend(known.display_unknown(name));
        } else if is_cache(repository, name) {
            // The programs of a build mark what they can make again.
        } else if known.touches_folder(to_path(name)) {
            let files = repository.list_files_below(name)?;
            unknown.extend(files.iter().filter_map(|file| known.display_unknown(file)));
        } else if !repository.list_files_below(name)?.is_empty() {
            unknown.push(to_path(name).display().to_string());
        }
    }
    Ok(unknown)
}

/// Whether a folder is marked as one that its program can create again: <https://bford.info/cachedir/>.
fn is_cache(repository: &Repository, folder: &[u8]) -> bool {
    let tag = repository.work_dir().join(to_path(folder)).join("CACHEDIR.TAG");
    let mut start = [0; CACHE_SIGNATURE.len()];
    let is_file = tag.symlink_metadata().is_ok_and(|found| found.is_file());
    is_file && File::open(tag).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *CACHE_SIGNATURE
}

fn to_path(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

impl<'a> ProvisionedFiles<'a> {
    fn from_paths(paths: &'a [WirePath]) -> Self {
        let is_folder = |created: &&Path| created.as_os_str().as_bytes().ends_with(b"/");
        let (folders, files): (Vec<_>, Vec<_>) = paths.iter().map(WirePath::as_path).partition(is_folder);
        Self { files: files.into_iter().collect(), folders }
    }

    fn display_unknown(&self, name: &[u8]) -> Option<String> {
        let path = to_path(name);
        let is_known = self.files.contains(path) || self.folders.iter().any(|folder| path.starts_with(folder));
        (!is_known).then(|| path.display().to_string())
    }

    /// Whether something in a folder, or the whole folder, was created by them.
    fn touches_folder(&self, folder: &Path) -> bool {
        let is_around = |created: &&Path| folder.starts_with(created) || created.starts_with(folder);
        let first = self.files.range::<Path, _>((Bound::Included(folder), Bound::Unbounded)).next();
        first.is_some_and(|file| file.starts_with(folder)) || self.folders.iter().any(is_around)
    }
}
