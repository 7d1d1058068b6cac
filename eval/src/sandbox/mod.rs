//! A lab: a home, state, socket and repository for one run, in a folder of its own that is gone afterwards.
//!
//! `daemon` starts the daemon in it, `fixture` makes the repository, `script` the scripted agent. The user's daemon, home and
//! configuration are never touched.

mod daemon;
mod fixture;
mod host_env;
mod script;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use protocol::paths::SOCKET_PATH_MAX;

pub(crate) use self::daemon::{SandboxDaemon, TestedPrograms};
pub(crate) use self::fixture::{RepositoryAccess, RepositorySeed, SandboxRepository};
pub(crate) use self::host_env::HostEnv;
pub(crate) use self::script::SCRIPTED;
use crate::digest::list_files;
use crate::error::EvalError;

/// The file that says that a folder is a lab; it is locked as long as its harness lives.
const SIGN: &str = "lab";
const PREFIX: &str = "runner-eval-";

/// The folder of one run.
#[derive(Debug)]
pub(crate) struct Sandbox {
    folder: PathBuf,
    _lock: File,
}

impl Sandbox {
    /// Makes the folder.
    pub(crate) fn create() -> Result<Self, EvalError> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(temp_root());
        let folder = folder.map_err(|error| EvalError::file("making a folder in", &temp_root(), &error))?;
        let folder = folder.keep();
        let folder = folder.canonicalize().unwrap_or(folder);
        let lab =
            Self { _lock: lock_folder(&folder).map_err(|error| EvalError::file("locking", &folder, &error))?, folder };
        for name in ["bin", "home", "state", "run", "config", "work", "tmp", "logs"] {
            let path = lab.path(name);
            let made = DirBuilder::new().mode(0o700).create(&path);
            made.map_err(|error| EvalError::file("making the folder", &path, &error))?;
        }
        let git = "[user]\n\tname = runner-eval\n\temail = runner-eval@localhost\n[init]\n\tdefaultBranch = main\n";
        lab.write("home/.gitconfig", git)?;
        Ok(lab)
    }

    /// Removes the labs that dead harnesses have left. What cannot be removed is somebody else's.
    pub(crate) fn sweep_dead() {
        for entry in fs::read_dir(temp_root()).into_iter().flatten().flatten() {
            let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
            let sign = entry.path().join(SIGN);
            let lock = File::options().append(true).open(sign).ok().filter(|_| is_named);
            if lock.is_some_and(|lock| lock.try_lock().is_ok()) {
                let _ = remove_folder(&entry.path());
            }
        }
    }

    /// Leaves the folder as it is, for a person.
    pub(crate) fn keep(self) -> Result<(), EvalError> {
        let sign = self.path(SIGN);
        fs::remove_file(&sign).map_err(|error| EvalError::file("removing", &sign, &error))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("run/s")
    }

    /// Writes a file into the lab; a script can be executed.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), EvalError> {
        write_file(&self.path(name), text)
    }

    /// Returns the environment of everything in the lab: nothing of the user's but what programs need to be found.
    pub(crate) fn env(&self, around: &HostEnv) -> BTreeMap<String, String> {
        around.sandbox_env(self)
    }

    /// Copies the logs of daemon and clients.
    pub(crate) fn copy_logs(&self, to: &Path) -> Result<(), EvalError> {
        fs::create_dir_all(to).map_err(|error| EvalError::file("making the folder", to, &error))?;
        for folder in [self.path("logs"), self.path("state/logs")] {
            // A link there is an agent's, and may lead to what is none of the run's.
            for file in list_files(&folder).unwrap_or_default().iter().filter(|file| !file.is_symlink()) {
                let target = to.join(file.file_name().unwrap_or_default());
                fs::copy(file, &target).map_err(|error| EvalError::file("copying", file, &error))?;
            }
        }
        Ok(())
    }

    /// Removes the folder with all that is in it.
    pub(crate) fn remove(self) -> Result<(), EvalError> {
        remove_folder(&self.folder).map_err(|error| EvalError::file("removing", &self.folder, &error))
    }
}

/// Writes a file with the folders above it; one that begins with `#!` can be executed.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), EvalError> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, text));
    let is_script = text.starts_with("#!");
    let executable = || fs::set_permissions(path, Permissions::from_mode(0o755));
    let made = made.and_then(|()| if is_script { executable() } else { Ok(()) });
    made.map_err(|error| EvalError::file("writing", path, &error))
}

/// Signs a folder as a lab. The sign is locked before it has its name: nobody sees a lab without an owner.
fn lock_folder(folder: &Path) -> io::Result<File> {
    let sign = tempfile::NamedTempFile::new_in(folder)?;
    sign.as_file().try_lock()?;
    Ok(sign.persist(folder.join(SIGN))?)
}

/// The folder for temporary files, unless a socket in it would have too long a path.
fn temp_root() -> PathBuf {
    let folder = std::env::temp_dir();
    let longest = folder.as_os_str().len() + PREFIX.len() + "/123456/run/s.start".len();
    if longest <= SOCKET_PATH_MAX { folder } else { PathBuf::from("/tmp") }
}

/// Some tools write folders that not even their owner may change.
fn remove_folder(folder: &Path) -> io::Result<()> {
    if fs::remove_dir_all(folder).is_ok() {
        return Ok(());
    }
    make_writable(folder)?;
    fs::remove_dir_all(folder)
}

fn make_writable(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_is_removed_with_folders_that_cannot_be_written_to() {
        let lab = Sandbox::create().expect("makes");
        let folder = lab.folder().to_owned();
        lab.write("home/go/mod/x", "x").expect("writes");
        fs::set_permissions(lab.path("home/go/mod"), Permissions::from_mode(0o500)).expect("closes");
        lab.remove().expect("removes");
        assert!(!folder.exists());
    }

    #[test]
    fn what_lives_or_is_no_lab_is_not_swept_away() {
        let (stranger, lab) =
            (tempfile::Builder::new().prefix(PREFIX).tempdir().expect("a folder"), Sandbox::create().expect("makes"));
        Sandbox::sweep_dead();
        assert!(stranger.path().exists() && lab.folder().exists());
        let left = lab.folder().to_owned();
        drop(lab);
        Sandbox::sweep_dead();
        assert!(!left.exists());
    }
}
