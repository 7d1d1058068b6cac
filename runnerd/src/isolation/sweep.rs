//! What a life that was killed has left of isolated runs that never came to be.
//!
//! A run comes to be when it is in the record of its workspace. What was taken, made or registered before that is
//! removed at the next start; nothing is where a record cannot be read, since it may be what belongs together.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use runner_core::publish;

use super::reservation::{Reserved, own};
use crate::causes::in_one_line;
use crate::git::{GitError, Repository};
use crate::publish::last_kept;
use crate::repo::kept::Vault;
use crate::store::{RepoFile, Store, repo_id};
use crate::worker::Trusted;
use crate::workspace::{self, Owner};

/// A reservation of this daemon's whose run is not there.
#[derive(Debug)]
pub struct Orphan {
    source: Repository,
    reserved: Reserved,
    /// Where its workspace would be.
    place: PathBuf,
    owner: Owner,
}

/// Forgets workspaces that were registered for nothing, and finds the reservations of no run. Nobody may be starting one.
pub fn stillborn(vault: &Vault, workspaces: &Path) -> Vec<Orphan> {
    let known = match registered(vault) {
        Ok(known) => known,
        Err(error) => {
            tracing::warn!(error, "what was left of isolated runs stays: not all records can be read");
            return Vec::new();
        }
    };
    let is_empty = |file: &RepoFile| file.source.is_some() && file.runs.is_empty();
    let (empty, known): (Vec<_>, Vec<_>) = known.into_iter().partition(|(_, file)| is_empty(file));
    for (store, _) in empty {
        if let Err(error) = store.remove() {
            tracing::warn!(
                repo = store.id(),
                error = in_one_line(&error),
                "a workspace without a run stays registered"
            );
        }
    }
    let alive: BTreeSet<&str> =
        known.iter().filter_map(|(_, file)| Some(file.source.as_ref()?.nonce.as_str())).collect();
    let sources = known.iter().filter(|(_, file)| file.source.is_none());
    sources.flat_map(|(store, file)| orphans_of(store, file, (&alive, workspaces))).collect()
}

fn registered(vault: &Vault) -> Result<Vec<(Store, RepoFile)>, String> {
    let stores = Store::all(vault).map_err(|error| in_one_line(&error))?;
    let read = stores.into_iter().map(|store| {
        let file = store.read().map_err(|error| in_one_line(&error))?;
        Ok(file.map(|file| (store, file)))
    });
    read.filter_map(Result::transpose).collect()
}

fn orphans_of(store: &Store, file: &RepoFile, (alive, workspaces): (&BTreeSet<&str>, &Path)) -> Vec<Orphan> {
    let path = file.path.as_path();
    let found = Trusted::of(store, path).repository().ok().flatten().map_or_else(|| Repository::discover(path), Ok);
    let reserved = found.and_then(|source| Ok((own(&source, store.key())?, source)));
    let (reserved, source) = match reserved {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(source = %path.display(), error = in_one_line(&error), "what was left of its isolated runs stays");
            return Vec::new();
        }
    };
    let folder = workspaces.join(repo_id(source.common_dir()));
    let left = reserved.into_iter().filter(|one| !alive.contains(one.nonce.as_str()));
    let owner = Owner::of(store.key());
    let orphan = |reserved: Reserved| Orphan {
        source: source.clone(),
        place: folder.join(&reserved.run),
        owner: owner.clone(),
        reserved,
    };
    left.map(orphan).collect()
}

impl Orphan {
    /// Whether the workspace was taken out of its place, which is done once nothing of it is missing elsewhere: what is left of
    /// the run is in its source. A disk that is not there has no folder around the place either.
    fn is_put_aside(&self) -> bool {
        let is_gone = self.place.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        is_gone && self.place.parent().is_some_and(Path::is_dir)
    }

    /// Whether the run has, or may have, a branch in its source or in its workspace.
    fn has_begun(&self) -> bool {
        let branch = format!("runner/{}", self.reserved.run);
        let has_branch = |found: Result<Repository, GitError>| {
            !matches!(found.and_then(|repository| repository.branch(&branch)), Ok(None))
        };
        let is_published = !matches!(last_kept(&self.source, &self.reserved.run), Ok(None));
        is_published || self.place.symlink_metadata().is_ok() && has_branch(Repository::discover_alone(&self.place))
    }

    /// Removes what was made for it, then gives the id back: of a run that never came to be, or whose removal was cut off. What
    /// a run has begun in is somebody's work, whoever has lost the record of it.
    pub fn remove(&self) {
        if !self.is_put_aside() && self.has_begun() {
            let (run, place) = (&self.reserved.run, self.place.display());
            tracing::warn!(run, %place, "a workspace that no record tells of stays: its run had begun");
            return;
        }
        let run = &self.reserved.run;
        if let Err(error) = forget(&self.source, &self.reserved, (&self.place, &self.owner)) {
            tracing::warn!(run, error, "what was left of an isolated run without a record stays");
        } else {
            tracing::info!(run, "removed: what was left of an isolated run without a record");
        }
    }
}

/// Removes the workspace of a run that is over, gives its id back, and takes away what kept its commits beside the branch. Where
/// the branch is gone, that alone keeps what the run has made.
pub fn forget(source: &Repository, reserved: &Reserved, at: (&Path, &Owner)) -> Result<(), String> {
    forsake(source, reserved, at)?;
    let told = |error: GitError| in_one_line(&error);
    let keeper = publish::keeper(&reserved.run);
    if let Some(tip) = source.branch(&format!("runner/{}", reserved.run)).map_err(told)?
        && let Err(error) = source.drop_ref(&keeper, &tip)
    {
        tracing::warn!(keeper, error = in_one_line(&error), "a reference of a run that is gone stays");
    }
    Ok(())
}

/// Removes the workspace at `place`, then gives its id back: what fails half way is found again.
pub fn forsake(source: &Repository, reserved: &Reserved, (place, owner): (&Path, &Owner)) -> Result<(), String> {
    for folder in [owner.unfinished(place), place.to_owned()] {
        workspace::remove(&folder).map_err(|error| in_one_line(&error))?;
    }
    give_back(source, reserved)
}

/// Gives an id back that nothing was made for.
pub fn give_back(source: &Repository, reserved: &Reserved) -> Result<(), String> {
    source.release(&reserved.run, &reserved.nonce).map_err(|error| in_one_line(&error))
}
