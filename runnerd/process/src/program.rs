//! Finds the file of a program, so that a missing one is reported before anything runs.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use nix::unistd::{AccessFlags, access};

use super::SpawnError;

/// Finds a program without starting it: a name in the `PATH` of its environment, anything with a `/` relative to its
/// folder.
pub fn find(name: &OsStr, cwd: &Path, env: &[(OsString, OsString)]) -> Result<PathBuf, SpawnError> {
    if name.as_bytes().contains(&b'/') {
        let path = cwd.join(name);
        return check_executable(&path).map(|()| path.clone()).map_err(|why| find_error(name, path, &why));
    }
    let mut first_error = None;
    for folder in path_dirs(env) {
        let path = folder.join(name);
        match check_executable(&path) {
            Ok(()) if !name.is_empty() => return Ok(path),
            Ok(()) => {}
            Err(why) if is_absent(&why) => {}
            Err(why) => first_error = first_error.or(Some((path, why))),
        }
    }
    Err(match first_error {
        Some((path, why)) if !name.is_empty() => find_error(name, path, &why),
        _ => not_found(name),
    })
}

/// Returns the folders of `PATH`. Those relative to the work tree are left out: there, a program could choose what runs
/// next.
fn path_dirs(env: &[(OsString, OsString)]) -> impl Iterator<Item = PathBuf> {
    let path = env.iter().rev().find(|(name, _)| name == "PATH");
    path.map(|(_, value)| std::env::split_paths(value).filter(|folder| folder.is_absolute()).collect::<Vec<_>>())
        .unwrap_or_default()
        .into_iter()
}

/// Fails if the file cannot be executed.
pub(super) fn check_executable(path: &Path) -> io::Result<()> {
    if path.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(access(path, AccessFlags::X_OK)?)
}

fn is_absent(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn find_error(name: &OsStr, path: PathBuf, why: &io::Error) -> SpawnError {
    if is_absent(why) {
        return not_found(name);
    }
    SpawnError::NotExecutable { program: path, why: why.to_string() }
}

fn not_found(name: &OsStr) -> SpawnError {
    SpawnError::NotFound { program: name.to_string_lossy().into_owned() }
}
