//! A sandbox: home, state, socket and repository for one run, in a separate folder that is removed afterwards.
//!
//! `daemon` starts the daemon in it, `fixture` creates the repository, `script` the scripted agent. The user's daemon,
//! home and configuration are never touched.

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
pub(crate) use self::script::SCRIPTED_AGENT;
use crate::digest::list_files;
use crate::error::EvalError;

/// The file that marks a folder as a sandbox; its harness holds a lock on it.
const LOCK_FILE: &str = "sandbox";
const FOLDER_PREFIX: &str = "runner-eval-";

/// The folder of one run.
#[derive(Debug)]
pub(crate) struct Sandbox {
    folder: PathBuf,
    _lock: File,
}

impl Sandbox {
    /// Creates the folder.
    pub(crate) fn create() -> Result<Self, EvalError> {
        let folder = tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir_in(temp_root());
        let folder = folder.map_err(|error| EvalError::file("making a directory in", &temp_root(), &error))?;
        let folder = folder.keep();
        let folder = folder.canonicalize().unwrap_or(folder);
        let sandbox =
            Self { _lock: lock_folder(&folder).map_err(|error| EvalError::file("locking", &folder, &error))?, folder };
        for name in ["bin", "home", "state", "run", "config", "work", "tmp", "logs"] {
            let path = sandbox.path(name);
            let result = DirBuilder::new().mode(0o700).create(&path);
            result.map_err(|error| EvalError::file("making the directory", &path, &error))?;
        }
        let git = "[user]\n\tname = runner-eval\n\temail = runner-eval@localhost\n[init]\n\tdefaultBranch = main\n";
        sandbox.write("home/.gitconfig", git)?;
        Ok(sandbox)
    }

    /// Removes the sandboxes of dead harnesses. A sandbox that cannot be removed belongs to another user.
    pub(crate) fn sweep_dead() {
        for entry in fs::read_dir(temp_root()).into_iter().flatten().flatten() {
            let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(FOLDER_PREFIX));
            let lock_file = entry.path().join(LOCK_FILE);
            let lock = File::options().append(true).open(lock_file).ok().filter(|_| is_named);
            if lock.is_some_and(|lock| lock.try_lock().is_ok()) {
                let _ = remove_folder(&entry.path());
            }
        }
    }

    /// Keeps the folder for inspection.
    pub(crate) fn keep(self) -> Result<(), EvalError> {
        let lock_file = self.path(LOCK_FILE);
        fs::remove_file(&lock_file).map_err(|error| EvalError::file("removing", &lock_file, &error))
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

    /// Writes a file into the sandbox; a script is made executable.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), EvalError> {
        write_file(&self.path(name), text)
    }

    /// Returns the environment of everything in the sandbox: from the user's only what is needed to find programs.
    pub(crate) fn env(&self, host_env: &HostEnv) -> BTreeMap<String, String> {
        host_env.sandbox_env(self)
    }

    /// Copies the logs of daemon and clients.
    pub(crate) fn copy_logs(&self, to: &Path) -> Result<(), EvalError> {
        fs::create_dir_all(to).map_err(|error| EvalError::file("making the directory", to, &error))?;
        for folder in [self.path("logs"), self.path("state/logs")] {
            // A symbolic link was created by an agent and may lead outside the run.
            for file in list_files(&folder).unwrap_or_default().iter().filter(|file| !file.is_symlink()) {
                let target = to.join(file.file_name().unwrap_or_default());
                fs::copy(file, &target).map_err(|error| EvalError::file("copying", file, &error))?;
            }
        }
        Ok(())
    }

    /// Removes the folder and its contents.
    pub(crate) fn remove(self) -> Result<(), EvalError> {
        remove_folder(&self.folder).map_err(|error| EvalError::file("removing", &self.folder, &error))
    }
}

/// Writes a file and creates its parent folders; a file that begins with `#!` is made executable.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), EvalError> {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, text));
    let is_script = text.starts_with("#!");
    let executable = || fs::set_permissions(path, Permissions::from_mode(0o755));
    let written = written.and_then(|()| if is_script { executable() } else { Ok(()) });
    written.map_err(|error| EvalError::file("writing", path, &error))
}

/// Marks a folder as a sandbox. The marker is locked before it gets its name, so no sandbox ever lacks an owner.
fn lock_folder(folder: &Path) -> io::Result<File> {
    let lock_file = tempfile::NamedTempFile::new_in(folder)?;
    lock_file.as_file().try_lock()?;
    Ok(lock_file.persist(folder.join(LOCK_FILE))?)
}

/// Returns the folder for temporary files, unless the path of a socket in it would be too long.
fn temp_root() -> PathBuf {
    let folder = std::env::temp_dir();
    let longest = folder.as_os_str().len() + FOLDER_PREFIX.len() + "/123456/run/s.start".len();
    if longest <= SOCKET_PATH_MAX { folder } else { PathBuf::from("/tmp") }
}

/// Removes a folder, including read-only folders that some tools write.
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
        let sandbox = Sandbox::create().expect("makes");
        let folder = sandbox.folder().to_owned();
        sandbox.write("home/go/mod/x", "x").expect("writes");
        fs::set_permissions(sandbox.path("home/go/mod"), Permissions::from_mode(0o500)).expect("closes");
        sandbox.remove().expect("removes");
        assert!(!folder.exists());
    }

    #[test]
    fn what_lives_or_is_no_lab_is_not_swept_away() {
        let stranger = tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir().expect("a folder");
        let sandbox = Sandbox::create().expect("makes");
        Sandbox::sweep_dead();
        assert!(stranger.path().exists() && sandbox.folder().exists());
        let left = sandbox.folder().to_owned();
        drop(sandbox);
        Sandbox::sweep_dead();
        assert!(!left.exists());
    }
}
