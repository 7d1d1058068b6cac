//! What git may obey in a work tree, as a person's command found it: a sealed note, and the folder where it is laid out.
//!
//! What git reads there, and that the folder is as the note says, is `git`'s. A note that is gone while a run is under
//! way stands for nothing: what the repository says by then may be a session's.

use std::path::{Path, PathBuf};

use crate::git::{Captured, GitError, Repository};
use crate::repo::kept::{Kept, Note};
use crate::repo::layout::Layout;
use crate::store::Store;

impl Note for Captured {
    const KIND: &'static str = "git-configuration";
    const VERSION: u32 = 1;
}

/// What git may obey in one work tree.
#[derive(Debug, Clone)]
pub struct Trusted {
    note: Kept<Captured>,
    folder: PathBuf,
    work_tree: PathBuf,
}

/// There is no note.
#[derive(Debug, thiserror::Error)]
#[error("nothing was captured: {path} is missing")]
struct Missing {
    path: PathBuf,
}

impl Trusted {
    /// Names what git may obey in a work tree of a repository.
    pub fn of(store: &Store, work_tree: &Path) -> Self {
        let (note, folder) = store.git(work_tree);
        Self { note, folder, work_tree: work_tree.to_owned() }
    }

    /// Returns the work tree.
    pub fn work_tree(&self) -> &Path {
        &self.work_tree
    }

    /// Returns the repository bound to what was captured, whatever has become of its git folder; none if nothing was.
    pub fn repository(&self) -> Result<Option<Repository>, GitError> {
        let captured = self.note.read().map_err(|error| self.not_known(error))?;
        let bound = captured.map(|captured| Repository::of_captured(&self.folder, captured));
        Ok(bound.inspect(|repository| repository.never_track([Layout::CONTEXT, Layout::ITERATIONS])))
    }

    /// Returns the repository as [`Self::repository`] does, for those who would obey what it says without.
    pub fn bound(&self) -> Result<Repository, GitError> {
        self.repository()?.ok_or_else(|| self.not_known(Missing { path: self.note.path() }))
    }

    /// Binds a repository that is bound to nothing yet to what was captured; as it is where that is not known.
    #[must_use]
    pub fn bind(&self, repository: Repository) -> Repository {
        match self.note.read() {
            Ok(Some(captured)) => repository.or_bound_to(&self.folder, captured),
            Ok(None) | Err(_) => repository,
        }
    }

    /// Takes what the repository says now as what counts from now on.
    pub fn capture(&self, repository: &Repository) -> Result<(), GitError> {
        let captured = repository.capture(&self.folder)?;
        self.keep(captured.captured())
    }

    /// Remembers that a person has asked to go on with the git folder that is there now.
    pub fn accept(&self, repository: &Repository) -> Result<(), GitError> {
        self.keep(repository.accepting()?.as_ref())
    }

    fn keep(&self, captured: Option<&Captured>) -> Result<(), GitError> {
        match captured {
            Some(captured) => self.note.write(captured).map_err(|error| self.not_known(error)),
            None => Err(self.not_known(Missing { path: self.note.path() })),
        }
    }

    fn not_known(&self, source: impl std::error::Error + Send + Sync + 'static) -> GitError {
        GitError::NotCaptured { path: self.work_tree.clone(), source: Box::new(source) }
    }
}
