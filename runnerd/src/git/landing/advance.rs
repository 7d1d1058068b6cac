//! A branch moved to a commit, together with the work tree that has it checked out: the reference is locked, the work tree
//! looked at and brought along, and then the reference moves. What was begun and does not come to its end is put back by `undo`.

use std::path::Path;

use super::work_trees::Occupied;
use crate::git::refs::in_use::Use;
use crate::git::repository::identity::Identity;
use crate::git::repository::program::Git;
use crate::git::{GitError, Id, Repository};

/// A branch that is to move.
#[derive(Debug, Clone)]
pub struct Advance<'a> {
    /// Its short name.
    pub branch: &'a str,
    /// The commit that it is at; none where it is made.
    pub old: Option<Id>,
    /// The commit that it is to be at.
    pub new: Id,
    /// For the reflog.
    pub message: &'a str,
    /// Who moves it.
    pub by: &'a Identity,
}

/// Why a branch was not moved.
#[derive(Debug, thiserror::Error)]
pub enum NotAdvanced {
    /// The work tree cannot be brought along.
    #[error(transparent)]
    Occupied(#[from] Occupied),
    /// Git failed; everything is as before.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Git failed, and so did putting back what was begun.
    #[error("{failure}; and putting back what was begun failed")]
    NotPutBack {
        /// What failed first.
        failure: Box<GitError>,
        /// Why nothing was put back.
        source: GitError,
    },
}

impl Repository {
    /// Moves a branch; `holder` is the work tree that has it checked out.
    pub fn advance(&self, advance: &Advance<'_>, holder: Option<&Self>) -> Result<(), NotAdvanced> {
        let Advance { branch, old, new, message, by } = advance;
        let within = holder.unwrap_or(self);
        let name = format!("refs/heads/{branch}");
        if old.is_none() {
            self.refuse_no_room(&name)?;
        }
        let order = match old {
            Some(old) => format!("update {name} {new} {old}\n"),
            None => format!("create {name} {new}\n"),
        };
        let command = Git::new(within, "update-ref").args(["--create-reflog", "-m", message, "--stdin"]);
        let locked = by.in_environment(command).lock(&order).map_err(|error| self.moved_meanwhile(advance, error))?;
        // The reference and the holder's HEAD are locked: who holds the branch stays as it is now.
        self.is_held_by(branch, holder)?;
        let brought = holder.zip(*old);
        if let Some((holder, old)) = brought {
            holder.is_free(branch, &old, new)?;
        }
        let moved = match brought.map_or(Ok(()), |(holder, old)| holder.bring_along(&old, new)) {
            Ok(()) => locked.commit(),
            Err(failure) => {
                drop(locked);
                Err(failure)
            }
        };
        let Err(failure) = moved else { return Ok(()) };
        match brought.map_or(Ok(()), |(holder, old)| holder.undo_advance(&old, new)) {
            Ok(()) => Err(failure.into()),
            Err(source) => Err(NotAdvanced::NotPutBack { failure: Box::new(failure), source }),
        }
    }

    /// Explains a lock that was refused by what the branch is now, if that is the reason.
    fn moved_meanwhile(&self, advance: &Advance<'_>, error: GitError) -> GitError {
        match self.branch(advance.branch) {
            Ok(found) if found != advance.old => GitError::Moved {
                name: advance.branch.to_owned(),
                path: self.work_dir().to_owned(),
                expected: advance.old,
                found,
            },
            _ => error,
        }
    }

    /// Refuses where others than the work tree that is brought along have the branch checked out, or come back to it.
    fn is_held_by(&self, branch: &str, holder: Option<&Self>) -> Result<(), NotAdvanced> {
        let is_holder = |git_dir: &Path| {
            let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
            holder.is_some_and(|holder| canonical(holder.git_dir()) == canonical(git_dir))
        };
        let users = self.users_of(branch)?;
        if let Some(other) = users.iter().find(|user| user.how != Use::CheckedOut || !is_holder(user.git_dir())) {
            let (branch, path) = ((*branch).to_owned(), other.work_tree.clone());
            return Err(Occupied::InUse { branch, path, from: self.work_dir().to_owned() }.into());
        }
        match holder {
            Some(holder) if users.is_empty() => {
                let (branch, path) = ((*branch).to_owned(), holder.work_dir().to_owned());
                Err(Occupied::Left { branch, path }.into())
            }
            _ => Ok(()),
        }
    }

    /// Refuses where something is in the way of bringing this work tree from the commit `old` to `new`; touches no file.
    fn is_free(&self, branch: &str, old: &Id, new: &Id) -> Result<(), NotAdvanced> {
        if let Some(occupied) = self.occupied((branch, old, new))? {
            return Err(occupied.into());
        }
        if self.trusted.is_some() {
            self.distrust_index()?;
        }
        // The files were looked at by content; the program goes by what its index says of them.
        Git::new(self, "update-index").args(["-q", "--refresh"]).outcome()?;
        // Git itself is asked first: it knows of files that are hidden from a look, and refuses before it has touched any.
        let (from, to) = (old.to_string(), new.to_string());
        Ok(Git::new(self, "read-tree").args(["-n", "-m", "-u", &from, &to]).run().map(drop)?)
    }

    /// Brings this work tree from the commit `old` to `new`; the branch stays where it is.
    fn bring_along(&self, old: &Id, new: &Id) -> Result<(), GitError> {
        let (from, to) = (old.to_string(), new.to_string());
        Git::new(self, "read-tree").args(["-m", "-u", &from, &to]).run().map(drop)
    }

    /// Removes the locks that a move of a branch has left which was cut off.
    pub fn clear_locks_of(&self, branch: &str) -> Result<(), GitError> {
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
