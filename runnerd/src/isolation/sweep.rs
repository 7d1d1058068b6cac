//! Removes what a killed daemon process has left of isolated runs that were never fully created.
//!
//! A run exists once it is in the record of its workspace. What was reserved, created or registered before that is
//! removed at the next start; nothing is removed if a record cannot be read, since it may belong to a run.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use runner_core::publish;
use runner_git::{GitError, Repository};
use runner_os::error_chain::display_chain;

use super::reservation::{ReservedId, own_reservations};
use crate::publish::find_preserved_tip;
use crate::repo::sealed::StateDir;
use crate::store::{RepoFile, RepoStore, repo_id};
use crate::worker::PinnedRepo;
use crate::workspace::{self, WorkspaceOwner};

/// A reservation of this daemon without a run.
#[derive(Debug)]
pub struct OrphanReservation {
    source: Repository,
    reservation: ReservedId,
    /// Where its workspace would be.
    workspace_path: PathBuf,
    owner: WorkspaceOwner,
}

/// Unregisters workspaces without a run, and finds reservations without one. No run may be starting concurrently.
pub fn find_orphans(vault: &StateDir, workspaces: &Path) -> Vec<OrphanReservation> {
    let known = match read_registered(vault) {
        Ok(known) => known,
        Err(error) => {
            tracing::warn!(error, "nothing of isolated runs is removed: not all records can be read");
            return Vec::new();
        }
    };
    let is_empty = |file: &RepoFile| file.source.is_some() && file.runs.is_empty();
    let (unused, known): (Vec<_>, Vec<_>) = known.into_iter().partition(|(_, file)| is_empty(file));
    for (store, _) in unused {
        if let Err(error) = store.remove() {
            tracing::warn!(
                repo = store.id(),
                error = display_chain(&error),
                "a workspace without a run stays registered"
            );
        }
    }
    let live_nonces: BTreeSet<&str> =
        known.iter().filter_map(|(_, file)| Some(file.source.as_ref()?.nonce.as_str())).collect();
    let sources = known.iter().filter(|(_, file)| file.source.is_none());
    sources.flat_map(|(store, file)| find_source_orphans(store, file, &live_nonces, workspaces)).collect()
}

fn read_registered(vault: &StateDir) -> Result<Vec<(RepoStore, RepoFile)>, String> {
    let stores = RepoStore::list_all(vault).map_err(|error| display_chain(&error))?;
    let read = stores.into_iter().map(|store| {
        let file = store.read_repo_file().map_err(|error| display_chain(&error))?;
        Ok(file.map(|file| (store, file)))
    });
    read.filter_map(Result::transpose).collect()
}

fn find_source_orphans(
    store: &RepoStore,
    file: &RepoFile,
    live_nonces: &BTreeSet<&str>,
    workspaces: &Path,
) -> Vec<OrphanReservation> {
    let path = file.path.as_path();
    let source =
        PinnedRepo::for_work_tree(store, path).try_open().ok().flatten().map_or_else(|| Repository::discover(path), Ok);
    let reservations = source.and_then(|source| Ok((own_reservations(&source, store.key())?, source)));
    let (reservations, source) = match reservations {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(source = %path.display(), error = display_chain(&error), "failed to remove the rest of its isolated runs");
            return Vec::new();
        }
    };
    let folder = workspaces.join(repo_id(source.common_dir()));
    let orphaned = reservations.into_iter().filter(|one| !live_nonces.contains(one.nonce.as_str()));
    let owner = WorkspaceOwner::from_key(store.key());
    let orphan = |reservation: ReservedId| OrphanReservation {
        source: source.clone(),
        workspace_path: folder.join(&reservation.run),
        owner: owner.clone(),
        reservation,
    };
    orphaned.map(orphan).collect()
}

impl OrphanReservation {
    /// Whether the workspace was moved out of its place, which happens only once everything in it is elsewhere: what is
    /// left of the run is in its source. If a disk is missing, the parent folder is missing too.
    fn is_workspace_moved(&self) -> bool {
        let is_gone = self.workspace_path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        is_gone && self.workspace_path.parent().is_some_and(Path::is_dir)
    }

    /// Whether the run has, or may have, a branch in its source or in its workspace.
    fn may_have_branch(&self) -> bool {
        let branch = format!("runner/{}", self.reservation.run);
        let has_branch = |found: Result<Repository, GitError>| {
            !matches!(found.and_then(|repository| repository.find_branch_tip(&branch)), Ok(None))
        };
        let is_published = !matches!(find_preserved_tip(&self.source, &self.reservation.run), Ok(None));
        is_published
            || self.workspace_path.symlink_metadata().is_ok()
                && has_branch(Repository::discover_own_config(&self.workspace_path))
    }

    /// Removes what was created for it, then releases the id: for a run that was never created, or whose removal was
    /// interrupted. If the run has begun, it contains someone's work even without a record, and is left alone.
    pub fn remove(&self) {
        if !self.is_workspace_moved() && self.may_have_branch() {
            let run = &self.reservation.run;
            let place = self.workspace_path.display();
            tracing::warn!(run, %place, "a workspace without a record is not removed: its run has started");
            return;
        }
        let run = &self.reservation.run;
        if let Err(error) = remove_run_traces(&self.source, &self.reservation, &self.workspace_path, &self.owner) {
            tracing::warn!(run, error, "failed to remove the rest of an isolated run without a record");
        } else {
            tracing::info!(run, "removed the rest of an isolated run without a record");
        }
    }
}

/// Removes the workspace of a run that is over, releases its id, and removes the extra reference that kept its commits.
/// If the branch is gone, the reference stays, as nothing else keeps the run's commits.
pub fn remove_run_traces(
    source: &Repository,
    reserved: &ReservedId,
    place: &Path,
    owner: &WorkspaceOwner,
) -> Result<(), String> {
    remove_workspace(source, reserved, place, owner)?;
    let error_line = |error: GitError| display_chain(&error);
    let keeper = publish::keep_ref(&reserved.run);
    if let Some(tip) = source.find_branch_tip(&format!("runner/{}", reserved.run)).map_err(error_line)?
        && let Err(error) = source.delete_ref(&keeper, &tip)
    {
        tracing::warn!(keeper, error = display_chain(&error), "failed to remove the reference of a removed run");
    }
    Ok(())
}

/// Removes the workspace at `place`, then releases its id: an interrupted removal is found again.
pub fn remove_workspace(
    source: &Repository,
    reserved: &ReservedId,
    place: &Path,
    owner: &WorkspaceOwner,
) -> Result<(), String> {
    for folder in [owner.unfinished_path(place), place.to_owned()] {
        workspace::remove_workspace(&folder).map_err(|error| display_chain(&error))?;
    }
    release_id(source, reserved)
}

/// Releases an id for which nothing was created.
pub fn release_id(source: &Repository, reserved: &ReservedId) -> Result<(), String> {
    source.release_run_id(&reserved.run, &reserved.nonce).map_err(|error| display_chain(&error))
}
