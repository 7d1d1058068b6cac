//! The move of a branch, noted before it begins, and put right where a death has cut it off.

use std::path::{Path, PathBuf};

use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use runner_core::shell;

use super::note::Begun;
use crate::admit::git_error;
use crate::causes::in_one_line;
use crate::git::{Advance, GitError, Id, NotAdvanced, Occupied, Repository, leave};
use crate::repo::kept::{KeptError, Vault};
use crate::store::{Store, StoreError};

/// What putting right has met.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The note.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// The folder of notes.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The repository.
    #[error("putting right a landing in {path} that was cut off")]
    Git {
        /// The work tree.
        path: PathBuf,
        /// What git says.
        source: GitError,
    },
}

/// Moves a branch, and the work tree that has it checked out along with it; either both or none, whatever dies.
pub fn move_branch(
    store: &Store,
    (repository, holder): (&Repository, Option<&Repository>),
    advance: &Advance<'_>,
) -> Result<(), ErrorData> {
    let note = store.landing::<Begun>();
    let begun = Begun {
        path: WirePath::from(repository.work_dir()),
        branch: advance.branch.to_owned(),
        old: advance.old.map(|old| old.to_string()),
        new: advance.new.to_string(),
        holder: holder.map(|holder| WirePath::from(holder.work_dir())),
    };
    let fault = |error: &dyn std::error::Error| ErrorData::new(ErrorKind::Fault, in_one_line(error));
    store.create().map_err(|error| fault(&error))?;
    note.write(&begun).map_err(|error| fault(&error))?;
    let moved = repository.advance(advance, holder);
    if !matches!(moved, Err(NotAdvanced::NotPutBack { .. })) {
        note.remove().map_err(|error| fault(&error))?;
    }
    moved.map_err(|error| told(&error))
}

/// Puts right what a landing in a repository has left that was cut off; `bind` gives a work tree the configuration that
/// counts in it.
pub fn recover(store: &Store, bind: impl Fn(Repository) -> Repository) -> Result<(), RecoverError> {
    let note = store.landing::<Begun>();
    let Some(begun) = note.read()? else { return Ok(()) };
    tracing::warn!(branch = begun.branch, new = begun.new, "a landing was cut off, and is put right");
    let path = begun.holder.as_ref().unwrap_or(&begun.path).as_path().to_owned();
    put_right(&begun, bind).map_err(|source| RecoverError::Git { path, source })?;
    Ok(note.remove()?)
}

/// Puts right what landings have left in all repositories.
pub fn recover_all(vault: &Vault) {
    let stores = Store::all(vault).unwrap_or_default();
    for store in stores {
        // What a session was writing when the daemon died is not put back yet: the next landing knows how to read it.
        if store.journal().1.exists() {
            continue;
        }
        if let Err(error) = recover(&store, |repository| repository) {
            tracing::error!(repo = store.id(), error = in_one_line(&error), "a landing that was cut off stays so");
        }
    }
}

fn put_right(begun: &Begun, bind: impl Fn(Repository) -> Repository) -> Result<(), GitError> {
    let at = |path: &Path| Repository::discover(path).map(&bind);
    let repository = at(begun.path.as_path())?;
    let holder = begun.holder.as_ref().map(|path| at(path.as_path())).transpose()?;
    let place = holder.as_ref().unwrap_or(&repository);
    place.clear_locks_of(&begun.branch)?;
    let now = repository.branch(&begun.branch)?;
    let id = |text: &str| text.parse::<Id>().ok();
    let (old, new) = (begun.old.as_deref().and_then(id), id(&begun.new));
    match (holder, old, new) {
        // It came to its end, or was not to touch any file.
        (Some(holder), Some(old), Some(new)) if now == Some(old) && holder.head()?.branch() == Some(&begun.branch) => {
            holder.undo_advance(&old, &new)
        }
        _ => Ok(()),
    }
}

/// Turns what kept a branch from being moved into what a client is told.
pub(super) fn told(error: &NotAdvanced) -> ErrorData {
    match error {
        NotAdvanced::Occupied(occupied) => {
            ErrorData::new(ErrorKind::DirtyTree, occupied.to_string()).hint(way_out(occupied))
        }
        NotAdvanced::Git(error @ GitError::Moved { .. }) => {
            let refused = git_error(error);
            ErrorData { kind: ErrorKind::WrongState, ..refused }.hint("git log --oneline -5")
        }
        NotAdvanced::Git(error) => git_error(error),
        NotAdvanced::NotPutBack { source, .. } => {
            let fault = ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error);
            ErrorData { causes: vec![in_one_line(source)], ..fault }.hint("runnerctl daemon status")
        }
    }
}

fn way_out(occupied: &Occupied) -> String {
    let git = |path: &Path, words: &[&str]| {
        let path = path.display().to_string();
        shell::words(["git", "-C", &path].into_iter().chain(words.iter().copied()))
    };
    match occupied {
        Occupied::InUse { path, from, .. } if !path.exists() => leave(from, path),
        Occupied::AtWork { path, .. } | Occupied::InUse { path, .. } | Occupied::Left { path, .. } => {
            git(path, &["status"])
        }
        Occupied::Dirty { path, .. } => git(path, &["status", "--short"]),
        Occupied::InTheWay { path, file, .. } => {
            let file = path.join(file).display().to_string();
            shell::words(["mv", "-n", "--", &file, &format!("{file}.before-landing")])
        }
    }
}
