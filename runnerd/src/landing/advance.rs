//! Moves a branch, records that before it starts, and repairs a move that a crash interrupted.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::shell;
use runner_git::{AdvanceError, BranchAdvance, GitError, Id, Repository, WorktreeConflict, leave_branch_command};
use runner_os::error_chain::display_chain;

use super::records::PendingLanding;
use crate::admit::git_error;
use crate::repo::sealed::{SealedFileError, StateDir};
use crate::store::{RepoStore, StoreError};

/// Why a repair failed.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The note could not be read or removed.
    #[error(transparent)]
    SealedFile(#[from] SealedFileError),
    /// The folder of notes could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Git failed.
    #[error("putting right a landing in {path} that was cut off")]
    Git {
        /// The work tree.
        path: PathBuf,
        /// Git's error.
        source: GitError,
    },
}

/// Moves a branch together with the work tree that has it checked out; a crash leaves both moved or neither.
pub fn move_branch(
    store: &RepoStore,
    repository: &Repository,
    holder: Option<&Repository>,
    advance: &BranchAdvance<'_>,
) -> Result<(), ErrorData> {
    let note = store.landing_file::<PendingLanding>();
    let pending = PendingLanding {
        path: WirePath::from(repository.work_dir()),
        branch: advance.branch.to_owned(),
        old: advance.old.map(|old| old.to_string()),
        new: advance.new.to_string(),
        holder: holder.map(|holder| WirePath::from(holder.work_dir())),
    };
    let fault = |error: &dyn std::error::Error| ErrorData::new(ErrorKind::Fault, display_chain(error));
    store.create().map_err(|error| fault(&error))?;
    note.write(&pending).map_err(|error| fault(&error))?;
    let moved = repository.advance_branch(advance, holder);
    if !matches!(moved, Err(AdvanceError::UndoFailed { .. })) {
        note.remove().map_err(|error| fault(&error))?;
    }
    moved.map_err(|error| advance_error_data(&error))
}

/// Repairs what an interrupted landing in a repository has left; `bind` gives a work tree the configuration in force
/// there.
pub fn recover_landing(store: &RepoStore, bind: impl Fn(Repository) -> Repository) -> Result<(), RecoverError> {
    let note = store.landing_file::<PendingLanding>();
    let Some(pending) = note.read()? else { return Ok(()) };
    tracing::warn!(branch = pending.branch, new = pending.new, "finishing an interrupted landing");
    let path = pending.holder.as_ref().unwrap_or(&pending.path).as_path().to_owned();
    recover_branch(&pending, bind).map_err(|source| RecoverError::Git { path, source })?;
    Ok(note.remove()?)
}

/// Repairs what interrupted landings have left in all repositories.
pub fn recover_landings(vault: &StateDir) {
    let stores = RepoStore::list_all(vault).unwrap_or_default();
    for store in stores {
        // What a session was writing when the daemon died is not restored yet: the next landing knows how to read it.
        if store.journal().1.exists() {
            continue;
        }
        if let Err(error) = recover_landing(&store, |repository| repository) {
            tracing::error!(
                repo = store.id(),
                error = display_chain(&error),
                "failed to finish an interrupted landing"
            );
        }
    }
}

fn recover_branch(pending: &PendingLanding, bind: impl Fn(Repository) -> Repository) -> Result<(), GitError> {
    let at = |path: &Path| Repository::discover(path).map(&bind);
    let repository = at(pending.path.as_path())?;
    let holder = pending.holder.as_ref().map(|path| at(path.as_path())).transpose()?;
    let work_tree = holder.as_ref().unwrap_or(&repository);
    work_tree.clear_branch_locks(&pending.branch)?;
    let now = repository.find_branch_tip(&pending.branch)?;
    let id = |text: &str| text.parse::<Id>().ok();
    let old = pending.old.as_deref().and_then(id);
    let new = id(&pending.new);
    match (holder, old, new) {
        // It completed, or had no files to touch.
        (Some(holder), Some(old), Some(new))
            if now == Some(old) && holder.head()?.branch() == Some(&pending.branch) =>
        {
            holder.undo_advance(&old, &new)
        }
        _ => Ok(()),
    }
}

/// Converts the reason a branch could not be moved into the error for clients.
pub(super) fn advance_error_data(error: &AdvanceError) -> ErrorData {
    match error {
        AdvanceError::WorktreeConflict(conflict) => {
            ErrorData::new(ErrorKind::DirtyTree, conflict.to_string()).hint(suggest_fix(conflict))
        }
        AdvanceError::Git(error @ GitError::RefMoved { .. }) => {
            let refused = git_error(error);
            ErrorData { kind: ErrorKind::WrongState, ..refused }.hint("git log --oneline -5")
        }
        AdvanceError::Git(error) => git_error(error),
        AdvanceError::UndoFailed { source, .. } => {
            let fault = ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error);
            ErrorData { causes: vec![display_chain(source)], ..fault }.hint("runnerctl daemon status")
        }
    }
}

fn suggest_fix(conflict: &WorktreeConflict) -> String {
    let git = |path: &Path, words: &[&str]| {
        let path = path.display().to_string();
        shell::join_args(["git", "-C", &path].into_iter().chain(words.iter().copied()))
    };
    match conflict {
        WorktreeConflict::BranchInUse { path, from, .. } if !path.exists() => leave_branch_command(from, path),
        WorktreeConflict::OperationInProgress { path, .. }
        | WorktreeConflict::BranchInUse { path, .. }
        | WorktreeConflict::BranchSwitched { path, .. } => git(path, &["status"]),
        WorktreeConflict::Dirty { path, .. } => git(path, &["status", "--short"]),
        WorktreeConflict::FileInTheWay { path, file, blocked, .. } => {
            let from = path.join(file);
            let blocked = path.join(blocked);
            let below = from.strip_prefix(&blocked).ok().filter(|below| below.parent().is_some());
            let aside = PathBuf::from(format!("{}.before-landing", blocked.display()));
            let aside = below.map_or_else(|| aside.clone(), |below| aside.join(below));
            let shown = |path: &Path| path.display().to_string();
            // For anyone but root, `mv` fails in a folder that its owner cannot write to.
            let locked = from
                .parent()
                .filter(|folder| folder.metadata().is_ok_and(|found| found.permissions().mode() & 0o200 == 0));
            let steps = [
                locked.map(|folder| ["chmod", "u+w", "--", &shown(folder)].map(str::to_owned)),
                below.and(aside.parent()).map(|folder| ["mkdir", "-p", "--", &shown(folder)].map(str::to_owned)),
            ];
            let moved = shell::join_args(["mv", "-n", "--", &shown(&from), &shown(&aside)]);
            let steps = steps.into_iter().flatten().map(|step| shell::join_args(step.iter().map(String::as_str)));
            steps.chain([moved]).collect::<Vec<_>>().join(" && ")
        }
    }
}
