//! Removes what a process has left where something of the runner's goes, and what one that was killed has left of its own.
//! No link is followed.

use std::path::{Path, PathBuf};

use crate::folders;
use crate::git::{GitError, Repository};
use crate::repo::layout::Layout;
use crate::worker::context::{EffectError, RunContext};

/// Removes locks and temporary files that killed processes have left, and tells whether there were any.
///
/// Fails with [`GitError::Locked`] where somebody may be using a lock.
pub(crate) fn clear_leftovers(repository: &Repository) -> Result<bool, GitError> {
    let layout = Layout::new(repository.work_dir());
    let nodes = std::fs::read_dir(layout.nodes()).into_iter().flatten().flatten().map(|node| node.path());
    let folders: Vec<PathBuf> = [layout.root().to_owned(), layout.folder(), layout.state(), layout.prompts()]
        .into_iter()
        .chain(nodes)
        .collect();
    let cleared = repository.clear_leftovers(&folders)?;
    if !cleared.is_empty() {
        tracing::info!(files = ?cleared, "removed: processes that were killed have left them");
    }
    Ok(!cleared.is_empty())
}

/// Removes what an agent has left where a file of the runner goes, unless it is a file.
pub(crate) fn clear_path_for_file(file: &Path) -> Result<(), EffectError> {
    match std::fs::symlink_metadata(file) {
        Ok(found) if !found.is_file() => remove_path(file),
        _ => Ok(()),
    }
}

/// Removes whatever stands at a path; no link is followed.
pub(crate) fn remove_path(file: &Path) -> Result<(), EffectError> {
    folders::remove_all(file).map_err(EffectError::io_error("removing", file))
}

/// Removes what stands where a folder should be.
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
