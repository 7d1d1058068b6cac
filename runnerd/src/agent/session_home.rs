//! The home of a session: a folder of its own for what its program reads and writes beside the work tree. It is removed
//! with the session.
//!
//! A login is reached through a link, so that its program refreshes the person's own file; it is never copied.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use super::backend::LaunchPlan;
use crate::dir_permissions;
use crate::process::SpawnError;

/// The folder, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct SessionHome(PathBuf);

impl SessionHome {
    /// Creates the folder empty; what a killed daemon process has left there is removed.
    pub(super) fn create(path: &Path) -> Result<Self, SpawnError> {
        let failed = |source| SpawnError::SessionHome { path: path.to_owned(), source };
        dir_permissions::remove_all(path).map_err(failed)?;
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        Ok(Self(path.to_owned()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SessionHome {
    fn drop(&mut self) {
        remove_session_home(&self.0);
    }
}

/// Removes the home of a session that is over, if it is there. Links in it are not followed.
pub fn remove_session_home(path: &Path) {
    if let Err(error) = dir_permissions::remove_all(path) {
        tracing::warn!(path = %path.display(), %error, "the home of a session stays");
    }
}

/// Writes what a session needs before it starts.
pub(super) fn write_files(launch: &LaunchPlan) -> Result<(), SpawnError> {
    let create_parent = |path: &Path| path.parent().map_or(Ok(()), fs::create_dir_all);
    for (path, bytes) in &launch.files {
        let written = create_parent(path).and_then(|()| fs::write(path, bytes));
        written.map_err(|source| SpawnError::Log { path: path.clone(), source })?;
    }
    for (path, target) in &launch.links {
        let linked = create_parent(path).and_then(|()| symlink(target, path));
        linked.map_err(|source| SpawnError::SessionHome { path: path.clone(), source })?;
    }
    Ok(())
}

/// Returns links in `to` to those of these files of `from` that exist.
pub(super) fn link_files(from: &Path, to: &Path, names: &[&str]) -> Vec<(PathBuf, PathBuf)> {
    let existing = names.iter().filter(|name| from.join(name).exists());
    existing.map(|name| (to.join(name), from.join(name))).collect()
}

/// Returns links in `to` to everything in `from` but the folder of one program.
pub(super) fn link_others(from: &Path, to: &Path, program: &str) -> Vec<(PathBuf, PathBuf)> {
    let entries = fs::read_dir(from).into_iter().flatten().flatten();
    let others = entries.filter(|entry| entry.file_name() != program);
    others.map(|entry| (to.join(entry.file_name()), entry.path())).collect()
}

/// Returns a folder of the person's that a variable names, else one below their home.
pub(super) fn person_dir(env: &[(OsString, OsString)], name: &str, default: &str) -> Option<PathBuf> {
    let value = |name: &str| env.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value);
    let configured = value(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    configured.or_else(|| value("HOME").map(|home| PathBuf::from(home).join(default)))
}
