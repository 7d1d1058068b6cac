//! A branch moved to a commit, together with the work tree that has it checked out: the reference is locked, the work tree
//! looked at and brought along, and then the reference moves. What was begun and does not come to its end is put back.

use std::fs;
use std::path::Path;

use gix::bstr::ByteSlice as _;

use super::work_trees::Occupied;
use crate::git::objects::checked;
use crate::git::objects::diff::compare_trees;
use crate::git::path::display;
use crate::git::refs::in_use::Use;
use crate::git::repository::identity::Identity;
use crate::git::repository::program::Git;
use crate::git::{GitError, HoldBack, Id, Repository, SnapshotRequest};

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
            return Err(Occupied::InUse { branch, path }.into());
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

    /// Puts back what an advance that came to no end has changed in this work tree, whose branch is at `old`.
    ///
    /// It was clean when that began, so that the files in which the two differ are the advance's own; somebody may have
    /// changed them since, so that what is there is kept first.
    pub fn undo_advance(&self, old: &Id, new: &Id) -> Result<(), GitError> {
        self.keep_before_undoing(new)?;
        let repo = self.open()?;
        let read = || {
            let (old, new) = (checked::tree_of(&repo, old.object())?, checked::tree_of(&repo, new.object())?);
            compare_trees(&repo, &old, &new)
        };
        let differing = read().map_err(GitError::library("comparing commits", self.git_dir()))?;
        self.unlocked(|| Git::new(self, "read-tree").args(["-m", &old.to_string()]).run().map(drop))?;
        let changed: Vec<Vec<u8>> = self.changes()?.into_iter().map(|change| change.path).collect();
        let (mut back, mut gone) = (Vec::new(), Vec::new());
        for difference in &differing {
            let path = difference.path.as_slice();
            match &difference.old {
                Some(_) if changed.iter().any(|it| it == path) => back.push(path),
                None if !differing.iter().any(|it| it.path == difference.path && it.old.is_some()) => gone.push(path),
                _ => {}
            }
        }
        for path in gone {
            self.remove_added(path)?;
        }
        let list = back.iter().flat_map(|path| [path, &b"\0"[..]]).collect::<Vec<_>>().concat();
        if !list.is_empty() {
            Git::new(self, "checkout-index").args(["--force", "-u", "-z", "--stdin"]).input(list).run()?;
        }
        // That some differ is no failure of a refresh.
        Git::new(self, "update-index").args(["-q", "--refresh"]).outcome().map(drop)
    }

    /// Keeps what is in this work tree, before what an advance has left is put back.
    fn keep_before_undoing(&self, new: &Id) -> Result<(), GitError> {
        let hold_back = HoldBack { names: Vec::new(), max_file_bytes: u64::MAX };
        let request = SnapshotRequest {
            name: &format!("refs/runner/rescue/land/{}", new.short(12)),
            message: "What was in the work tree when a landing that was cut off was put back",
            author: self.identity().unwrap_or_else(Identity::runner),
            hold_back: &hold_back,
            restoring: Some(*new),
        };
        self.snapshot(&request).map(drop)
    }

    /// Removes a file that an advance has added, and the folders that it leaves empty.
    fn remove_added(&self, path: &[u8]) -> Result<(), GitError> {
        let file = self.file(path);
        match fs::remove_file(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(()),
            removed => removed.map_err(GitError::io("removing", &file))?,
        }
        let shown = display(path.as_bstr());
        tracing::debug!(file = shown, "put back");
        let mut folder = file.parent();
        while let Some(empty) = folder.filter(|folder| *folder != self.work_dir()) {
            if fs::remove_dir(empty).is_err() {
                break;
            }
            folder = empty.parent();
        }
        Ok(())
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
