//! Removes what a process has left where something of the runner's goes. No link is followed.

use std::path::Path;

use crate::worker::context::{Obstacle, RunContext};

/// Removes what an agent has left where a file of the runner goes, unless it is a file.
pub(crate) fn clear_for_file(file: &Path) -> Result<(), Obstacle> {
    match std::fs::symlink_metadata(file) {
        Ok(found) if !found.is_file() => remove(file),
        _ => Ok(()),
    }
}

/// Removes whatever stands at a path; no link is followed.
pub(crate) fn remove(file: &Path) -> Result<(), Obstacle> {
    match std::fs::symlink_metadata(file) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(file),
        Ok(_) => std::fs::remove_file(file),
        Err(_) => Ok(()),
    }
    .map_err(Obstacle::system("removing", file))
}

/// Removes what stands where a folder should be.
pub(crate) fn clear_way(context: &RunContext, folder: &Path) -> Result<(), Obstacle> {
    let mut path = context.layout.root().to_owned();
    for name in folder {
        path.push(name);
        if std::fs::symlink_metadata(&path).is_ok_and(|found| !found.is_dir()) {
            remove(&path)?;
        }
    }
    Ok(())
}
