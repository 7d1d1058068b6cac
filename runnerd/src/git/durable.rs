//! Makes what was written to the repository survive a power cut. The library never asks the disk to; the git program is
//! told to by configuration instead.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use gix::ObjectId;

use super::GitError;

/// Above this many new objects one flush of the whole file system costs less than one of each.
const ONE_BY_ONE: usize = 16;

/// Flushes those of `ids` that are loose objects below `objects`, and their folders.
pub(super) fn sync_objects(objects: &Path, ids: &[ObjectId]) -> Result<(), GitError> {
    if ids.len() > ONE_BY_ONE {
        return sync_file_system(objects).map_err(GitError::io("flushing objects below", objects));
    }
    let mut folders = BTreeSet::from([objects.to_owned()]);
    for id in ids {
        let hex = id.to_string();
        let folder = objects.join(&hex[..2]);
        let file = folder.join(&hex[2..]);
        if sync_if_there(&file)? {
            folders.insert(folder);
        }
    }
    folders.iter().try_for_each(|folder| sync_if_there(folder).map(drop))
}

/// Flushes the file of a reference below `git_dir` and the folder that names it.
pub(super) fn sync_ref(git_dir: &Path, name: &str) -> Result<(), GitError> {
    let file = git_dir.join(name);
    if sync_if_there(&file)?
        && let Some(folder) = file.parent()
    {
        sync_if_there(folder)?;
    }
    Ok(())
}

/// Replaces a small file of git's at once, and makes that survive a power cut.
pub(super) fn replace_file(file: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(bytes)?;
    new.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    new.as_file().sync_all()?;
    new.persist(file)?;
    File::open(folder)?.sync_all()
}

/// Flushes a file or folder. Tells whether there was one: objects may be packed, and so may references.
pub(super) fn sync_if_there(path: &Path) -> Result<bool, GitError> {
    match File::open(path).and_then(|file| file.sync_all()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(GitError::io("flushing", path)(error)),
    }
}

#[cfg(target_os = "linux")]
fn sync_file_system(path: &Path) -> io::Result<()> {
    nix::unistd::syncfs(File::open(path)?).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn sync_file_system(_path: &Path) -> io::Result<()> {
    nix::unistd::sync();
    Ok(())
}
