//! Checkouts of a run's branch. Each is noted before git starts, so that the changes of one that was cut off are reverted
//! before the run continues: git removes a file before it writes the new one.

use protocol::path::WirePath;
use runner_git::{GitError, Id, Repository, WorktreeChange};
use serde::{Deserialize, Serialize};

use crate::repo::sealed::Sealable;
use crate::store::RepoStore;
use crate::worker::cleanup::clear_leftovers;
use crate::worker::context::{EffectError, RunContext};

/// A checkout that git may not have finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PendingCheckout {
    /// The work tree.
    path: WirePath,
    /// Commit that HEAD was at.
    from: String,
    /// Commit to check out.
    to: String,
    /// Files that had been changed before, which git does not overwrite.
    dirty: Vec<String>,
}

impl Sealable for PendingCheckout {
    const KIND: &'static str = "checkout";
    const VERSION: u32 = 1;
}

/// Switches the work tree to an existing branch.
pub(super) fn switch_branch(context: &RunContext, repository: &Repository, branch: &str) -> Result<(), EffectError> {
    let tip = repository.find_branch_tip(branch)?;
    check_out(context, repository, tip, || repository.switch_branch(branch))
}

/// Creates a branch and switches the work tree to it.
pub(super) fn start_branch(
    context: &RunContext,
    repository: &Repository,
    branch: &str,
    at: &Id,
) -> Result<(), EffectError> {
    check_out(context, repository, Some(*at), || repository.start_branch(branch, at))
}

fn check_out(
    context: &RunContext,
    repository: &Repository,
    to: Option<Id>,
    checkout: impl FnOnce() -> Result<(), GitError>,
) -> Result<(), EffectError> {
    let Some((from, to)) = repository.head()?.commit().zip(to).filter(|(from, to)| from != to) else {
        return Ok(checkout()?);
    };
    let dirty = repository.list_changes()?.iter().map(WorktreeChange::display_path).collect();
    let path = WirePath::from(repository.work_dir());
    let note = context.store.checkout_file();
    note.write(&PendingCheckout { path, from: from.to_string(), to: to.to_string(), dirty })?;
    match checkout() {
        // The program that was not answering would also be needed to revert the changes.
        Err(error @ GitError::Ended { .. }) => return Err(error.into()),
        Err(error) => {
            revert_unfinished(&context.store, repository)?;
            return Err(error.into());
        }
        Ok(()) => {}
    }
    Ok(note.remove()?)
}

/// Removes what killed processes have left, and reverts a checkout that was cut off.
pub(super) fn clear_work_tree(context: &RunContext, repository: &Repository) -> Result<(), EffectError> {
    clear_leftovers(repository)?;
    revert_unfinished(&context.store, repository)
}

/// Whether a checkout was cut off and is not reverted, as far as that is known.
pub(crate) fn is_pending(store: &RepoStore) -> bool {
    !matches!(store.checkout_file::<PendingCheckout>().read(), Ok(None))
}

/// Reverts the changes of a checkout that was cut off, if there was one in this work tree and HEAD has not moved since.
pub(crate) fn revert_unfinished(store: &RepoStore, repository: &Repository) -> Result<(), EffectError> {
    let note = store.checkout_file::<PendingCheckout>();
    let Some(pending) = note.read()?.filter(|pending| pending.path.as_path() == repository.work_dir()) else {
        return Ok(());
    };
    let ids = pending.from.parse::<Id>().ok().zip(pending.to.parse::<Id>().ok());
    let head = repository.head()?.commit();
    if let Some((from, to)) = ids.filter(|(from, _)| head == Some(*from)) {
        repository.undo_checkout(&from, &to, &pending.dirty)?;
    }
    Ok(note.remove()?)
}
