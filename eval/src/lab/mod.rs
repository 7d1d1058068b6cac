//! A lab: a home, state, socket and repository for one run, in a folder of its own that is gone afterwards.
//!
//! `daemon` starts the daemon in it, `fixture` makes the repository, `script` the scripted agent. The user's daemon, home and
//! configuration are never touched.

mod daemon;
mod fixture;
mod script;
mod surroundings;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use protocol::paths::SOCKET_PATH_MAX;

pub(crate) use self::daemon::{Daemon, Programs};
pub(crate) use self::fixture::{Access, Repository, Seed};
pub(crate) use self::script::SCRIPTED;
pub(crate) use self::surroundings::Surroundings;
use crate::digest::files;
use crate::fault::Fault;

/// The file that says that a folder is a lab, and of which result.
const SIGN: &str = "lab-of";
const PREFIX: &str = "runner-eval-";

/// The folder of one run.
#[derive(Debug)]
pub(crate) struct Lab {
    folder: PathBuf,
}

impl Lab {
    /// Makes the folder; `result` is where what is kept of the run goes.
    pub(crate) fn make(result: &Path) -> Result<Self, Fault> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(root());
        let folder = folder.map_err(|error| Fault::file("making a folder in", &root(), &error))?;
        let folder = folder.keep();
        let lab = Self { folder: folder.canonicalize().unwrap_or(folder) };
        for name in ["bin", "home", "state", "run", "config", "work", "tmp", "logs"] {
            let path = lab.at(name);
            let made = DirBuilder::new().mode(0o700).create(&path);
            made.map_err(|error| Fault::file("making the folder", &path, &error))?;
        }
        lab.write(SIGN, &result.display().to_string())?;
        let git = "[user]\n\tname = runner-eval\n\temail = runner-eval@localhost\n[init]\n\tdefaultBranch = main\n";
        lab.write("home/.gitconfig", git)?;
        Ok(lab)
    }

    /// Removes a lab that a dead harness has left; a folder that is none stays.
    pub(crate) fn remove_left(folder: &Path) -> io::Result<()> {
        let is_named = folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
        if is_named && folder.join(SIGN).is_file() { remove(folder) } else { Ok(()) }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.at("run/s")
    }

    /// Writes a file into the lab.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), Fault> {
        let path = self.at(name);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        made.map_err(|error| Fault::file("writing", &path, &error))
    }

    /// Returns the environment of everything in the lab: nothing of the user's but what programs need to be found.
    pub(crate) fn env(&self, around: &Surroundings) -> BTreeMap<String, String> {
        around.of_lab(self)
    }

    /// Copies the logs of daemon and clients.
    pub(crate) fn copy_logs(&self, to: &Path) -> Result<(), Fault> {
        fs::create_dir_all(to).map_err(|error| Fault::file("making the folder", to, &error))?;
        for folder in [self.at("logs"), self.at("state/logs")] {
            for file in files(&folder).unwrap_or_default() {
                let target = to.join(file.file_name().unwrap_or_default());
                fs::copy(&file, &target).map_err(|error| Fault::file("copying", &file, &error))?;
            }
        }
        Ok(())
    }

    /// Removes the folder with all that is in it.
    pub(crate) fn remove(self) -> Result<(), Fault> {
        remove(&self.folder).map_err(|error| Fault::file("removing", &self.folder, &error))
    }
}

/// The folder for temporary files, unless a socket in it would have too long a path.
fn root() -> PathBuf {
    let folder = std::env::temp_dir();
    let longest = folder.as_os_str().len() + PREFIX.len() + "/123456/run/s.start".len();
    if longest <= SOCKET_PATH_MAX { folder } else { PathBuf::from("/tmp") }
}

/// Some tools write folders that not even their owner may change.
fn remove(folder: &Path) -> io::Result<()> {
    if fs::remove_dir_all(folder).is_ok() {
        return Ok(());
    }
    open_folders(folder)?;
    fs::remove_dir_all(folder)
}

fn open_folders(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_folders(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_is_removed_with_folders_that_cannot_be_written_to() {
        let lab = Lab::make(Path::new("/r")).expect("makes");
        let folder = lab.folder().to_owned();
        lab.write("home/go/mod/x", "x").expect("writes");
        fs::set_permissions(lab.at("home/go/mod"), Permissions::from_mode(0o500)).expect("closes");
        lab.remove().expect("removes");
        assert!(!folder.exists());
    }

    #[test]
    fn a_folder_that_is_no_lab_is_not_removed() {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().expect("a folder");
        Lab::remove_left(folder.path()).expect("does nothing");
        assert!(folder.path().exists());
    }
}
