//! The files in work trees that goals were read from, if they are not committed: until their runs have ended, no commit
//! has them and git does not show them.
//!
//! Which files these are is decided in `runner_core::run`. While a session is at work, git's folder is not changed: the
//! rule that holds files back does it then.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use protocol::error::ErrorData;
use protocol::path::WirePath;
use runner_core::run::{self, RunRecord};
use runner_git::GitError;
use runner_os::error_chain::display_chain;
use tokio::task::block_in_place;

use crate::store::RepoStore;
use crate::worker::pinned_repo::PinnedRepo;
use crate::worker::queue::RepoQueue;
use crate::worker::queue_errors::store_error_data;

/// The goal files of runs that have not ended; shared with the effects of an iteration, since runs are queued meanwhile.
#[derive(Debug, Clone, Default)]
pub(crate) struct GoalFiles(Arc<Mutex<Vec<PathBuf>>>);

impl GoalFiles {
    /// Returns those of these runs.
    pub(crate) fn of_runs(runs: &[RunRecord]) -> Self {
        let files = Self::default();
        files.set(runs);
        files
    }

    /// Replaces them by those of these runs.
    pub(crate) fn set(&self, runs: &[RunRecord]) {
        let files = run::pending_goal_files(runs).into_iter().map(Path::to_owned).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }

    /// Returns the paths in a work tree.
    pub(crate) fn in_work_tree(&self, work_tree: &Path) -> Vec<String> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paths_in(work_tree, files.iter().map(PathBuf::as_path))
    }
}

/// Returns the files in a work tree that the goals of known runs were read from.
pub fn known_goal_files(store: &RepoStore, work_tree: &Path) -> Result<Vec<String>, ErrorData> {
    let known = store.read_repo_file().map_err(|error| store_error_data(&error))?;
    let runs = known.map(|file| file.runs).unwrap_or_default();
    Ok(paths_in(work_tree, runs.iter().filter_map(|run| run.goal_file.as_ref()).map(WirePath::as_path)))
}

/// Returns the paths of those files that are in a work tree.
fn paths_in<'a>(work_tree: &Path, files: impl Iterator<Item = &'a Path>) -> Vec<String> {
    files.filter_map(|file| Some(file.strip_prefix(work_tree).ok()?.to_str()?.to_owned())).collect()
}

/// Hides the goal files from git that are to be hidden now, and shows it the others again; no session is at work.
pub(crate) fn hide_goal_files(queue: &RepoQueue) {
    if queue.unfinished_run.is_some() || queue.held.is_some() {
        return;
    }
    let runs = &queue.file.runs;
    let hidden = run::hidden_goal_files(runs);
    let work_trees: BTreeSet<&Path> =
        runs.iter().filter(|run| run.goal_file.is_some()).map(|run| run.path.as_path()).collect();
    let hide = |work_tree: &Path| -> Result<(), GitError> {
        let Some(repository) = PinnedRepo::for_work_tree(&queue.store, work_tree).try_open()? else { return Ok(()) };
        repository.exclude_goals(&paths_in(work_tree, hidden.iter().copied()))
    };
    for work_tree in work_trees {
        if let Err(error) = block_in_place(|| hide(work_tree)) {
            // A run that begins refuses a file that is still shown.
            tracing::warn!(repo = queue.file.id, error = display_chain(&error), "failed to hide the files of goals");
        }
    }
}
