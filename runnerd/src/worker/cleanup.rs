//! Removes whatever blocks a path of the runner, and leftovers of killed processes. Never follows links.

use std::path::{Path, PathBuf};

use runner_git::{GitError, Repository};
use runner_os::dir_permissions;

use crate::repo::layout::Layout;
use crate::worker::context::{EffectError, RunContext};

/// Removes locks and temporary files left by killed processes; returns whether there were any.
///
/// Fails with [`GitError::Locked`] if a lock may still be in use.
pub(crate) fn clear_leftovers(repository: &Repository) -> Result<bool, GitError> {
    let layout = Layout::new(repository.work_dir());
    let nodes = std::fs::read_dir(layout.nodes()).into_iter().flatten().flatten().map(|node| node.path());
    let folders: Vec<PathBuf> = [layout.root().to_owned(), layout.folder(), layout.state(), layout.prompts()]
        .into_iter()
        .chain(nodes)
        .collect();
    let cleared = repository.clear_leftovers(&folders)?;
    if !cleared.is_empty() {
        tracing::info!(files = ?cleared, "removed what killed processes left");
    }
    Ok(!cleared.is_empty())
}

/// Removes whatever an agent left at the path of a runner's file, unless it is a file.
pub(crate) fn clear_path_for_file(file: &Path) -> Result<(), EffectError> {
    match std::fs::symlink_metadata(file) {
        Ok(found) if !found.is_file() => remove_path(file),
        _ => Ok(()),
    }
}

/// Removes whatever is at a path, without following links.
pub(crate) fn remove_path(file: &Path) -> Result<(), EffectError> {
    dir_permissions::remove_all(file).map_err(EffectError::io_error("removing", file))
}

/// Removes everything on the way to a folder that is not a folder itself, links included.
pub(crate) fn clear_path_for_dir(context: &RunContext, folder: &Path) -> Result<(), EffectError> {
    let mut path = context.layout.root().to_owned();
    for name in folder {
        path.push(name);
        if std::fs::symlink_metadata(&path).is_ok_and(|found| !found.is_dir()) {
            remove_path(&path)?;
        }
    }
    Ok(())
}
