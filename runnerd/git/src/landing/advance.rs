//! Moves a branch to a commit, together with the work tree that has it checked out: locks the reference, checks and
//! updates the work tree, then moves the reference. If an advance does not complete, `undo` reverts it.

use std::path::Path;

use super::work_trees::WorktreeConflict;
use crate::refs::branch_use::BranchUseKind;
use crate::repository::identity::Identity;
use crate::repository::program::GitCommand;
use crate::{GitError, Id, Repository};

/// A request to move a branch.
#[derive(Debug, Clone)]
pub struct BranchAdvance<'a> {
    /// Its short name.
    pub branch: &'a str,
    /// Commit the branch is at; `None` if it is to be created.
    pub old: Option<Id>,
    /// Commit to move it to.
    pub new: Id,
    /// Reflog message.
    pub message: &'a str,
    /// Identity for the reflog.
    pub identity: &'a Identity,
}

/// Why a branch was not moved.
#[derive(Debug, thiserror::Error)]
pub enum AdvanceError {
    /// The work tree cannot be updated.
    #[error(transparent)]
    WorktreeConflict(#[from] WorktreeConflict),
    /// Git failed; everything is as before.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Git failed, and so did reverting what was begun.
    #[error("{failure}; and putting back what was begun failed")]
    UndoFailed {
        /// The first failure.
        failure: Box<GitError>,
        /// Why the revert failed.
        source: GitError,
    },
}

impl Repository {
    /// Moves a branch; `holder` is the work tree that has it checked out, if any.
    pub fn advance_branch(&self, advance: &BranchAdvance<'_>, holder: Option<&Self>) -> Result<(), AdvanceError> {
        let BranchAdvance { branch, old, new, message, identity: by } = advance;
        let target = holder.unwrap_or(self);
        let name = format!("refs/heads/{branch}");
        if old.is_none() {
            self.check_ref_conflict(&name)?;
        }
        let order = match old {
            Some(old) => format!("update {name} {new} {old}\n"),
            None => format!("create {name} {new}\n"),
        };
        let command = GitCommand::new(target, "update-ref").args(["--create-reflog", "-m", message, "--stdin"]);
        let locked =
            by.apply_to(command).lock_refs(&order).map_err(|error| self.explain_lock_failure(advance, error))?;
        // The reference and the holder's HEAD are locked, so no other work tree can take the branch.
        self.check_advance(branch, *old, new, holder)?;
        let advanced = holder.zip(*old);
        if let Some((holder, old)) = advanced {
            holder.check_work_tree_update(&old, new)?;
        }
        let moved = match advanced.map_or(Ok(()), |(holder, old)| holder.update_work_tree(&old, new)) {
            Ok(()) => locked.commit(),
            Err(failure) => {
                drop(locked);
                Err(failure)
            }
        };
        let Err(failure) = moved else { return Ok(()) };
        match advanced.map_or(Ok(()), |(holder, old)| holder.undo_advance(&old, new)) {
            Ok(()) => Err(failure.into()),
            Err(source) => Err(AdvanceError::UndoFailed { failure: Box::new(failure), source }),
        }
    }

    /// Fails if a work tree is in the way of moving a branch from `old` to `new`; touches nothing. `holder` is the work
    /// tree that has the branch checked out, if any.
    pub fn check_advance(
        &self,
        branch: &str,
        old: Option<Id>,
        new: &Id,
        holder: Option<&Self>,
    ) -> Result<(), AdvanceError> {
        self.check_branch_users(branch, holder)?;
        let conflict = match holder.zip(old) {
            Some((holder, old)) => holder.find_work_tree_conflict(branch, &old, new)?,
            None => None,
        };
        conflict.map_or(Ok(()), |conflict| Err(conflict.into()))
    }

    /// Returns the error for a refused lock: that the branch has moved, if that is the reason.
    fn explain_lock_failure(&self, advance: &BranchAdvance<'_>, error: GitError) -> GitError {
        match self.find_branch_tip(advance.branch) {
            Ok(found) if found != advance.old => GitError::RefMoved {
                name: advance.branch.to_owned(),
                path: self.work_dir().to_owned(),
                expected: advance.old,
                found,
            },
            _ => error,
        }
    }

    /// Fails if a work tree other than `holder` has the branch checked out, or will return to it.
    fn check_branch_users(&self, branch: &str, holder: Option<&Self>) -> Result<(), AdvanceError> {
        let is_holder = |git_dir: &Path| {
            let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
            holder.is_some_and(|holder| canonical(holder.git_dir()) == canonical(git_dir))
        };
        let users = self.find_branch_users(branch)?;
        if let Some(other) =
            users.iter().find(|user| user.kind != BranchUseKind::CheckedOut || !is_holder(user.git_dir()))
        {
            let branch = (*branch).to_owned();
            let path = other.work_tree.clone();
            return Err(WorktreeConflict::BranchInUse { branch, path, from: self.work_dir().to_owned() }.into());
        }
        match holder {
            Some(holder) if users.is_empty() => {
                let branch = (*branch).to_owned();
                let path = holder.work_dir().to_owned();
                Err(WorktreeConflict::BranchSwitched { branch, path }.into())
            }
            _ => Ok(()),
        }
    }

    /// Fails if git refuses to move this work tree from `old` to `new`; touches no file.
    fn check_work_tree_update(&self, old: &Id, new: &Id) -> Result<(), AdvanceError> {
        if self.pinned.is_some() {
            self.invalidate_index_stats()?;
        }
        // The files were compared by content; the program relies on its index.
        GitCommand::new(self, "update-index").args(["-q", "--refresh"]).output()?;
        // git is asked first: it knows of files hidden from our check, and refuses before it touches anything.
        let from = old.to_string();
        let to = new.to_string();
        Ok(GitCommand::new(self, "read-tree").args(["-n", "-m", "-u", &from, &to]).run().map(drop)?)
    }

    /// Moves this work tree from commit `old` to `new`; the branch stays where it is.
    fn update_work_tree(&self, old: &Id, new: &Id) -> Result<(), GitError> {
        let from = old.to_string();
        let to = new.to_string();
        GitCommand::new(self, "read-tree").args(["-m", "-u", &from, &to]).run().map(drop)
    }

    /// Removes the locks that an interrupted move of a branch left behind.
    pub fn clear_branch_locks(&self, branch: &str) -> Result<(), GitError> {
        for lock in [
            self.common_dir().join(format!("refs/heads/{branch}.lock")),
            self.git_dir().join("HEAD.lock"),
            self.git_dir().join("index.lock"),
            self.common_dir().join("packed-refs.lock"),
            self.common_dir().join("reftable/tables.list.lock"),
        ] {
            self.clear_stale_lock(&lock)?;
        }
        Ok(())
    }
}
