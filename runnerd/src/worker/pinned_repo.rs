//! The git configuration that may be obeyed in a work tree, captured at a person's command: a sealed note, and the
//! folder where it is written out.
//!
//! Capturing it, and checking the folder against the note, is done in `git`. If the note is missing during a run,
//! nothing is trusted: by then, what the repository says may come from a session.

use std::path::{Path, PathBuf};

use runner_git::{GitError, PinnedConfig, Repository};

use crate::repo::layout::Layout;
use crate::repo::sealed::{Sealable, SealedFile};
use crate::store::RepoStore;

impl Sealable for PinnedConfig {
    const KIND: &'static str = "git-configuration";
    const VERSION: u32 = 1;
}

/// What git may obey in one work tree.
#[derive(Debug, Clone)]
pub struct PinnedRepo {
    sealed_config: SealedFile<PinnedConfig>,
    config_dir: PathBuf,
    work_tree: PathBuf,
}

/// The note does not exist.
#[derive(Debug, thiserror::Error)]
#[error("nothing was captured: {path} is missing")]
struct MissingPin {
    path: PathBuf,
}

impl PinnedRepo {
    /// Returns the pinned configuration of a work tree of a repository; reads nothing yet.
    pub fn for_work_tree(store: &RepoStore, work_tree: &Path) -> Self {
        let (sealed_config, config_dir) = store.git_config_file(work_tree);
        Self { sealed_config, config_dir, work_tree: work_tree.to_owned() }
    }

    /// Returns the work tree.
    pub fn work_tree(&self) -> &Path {
        &self.work_tree
    }

    /// Returns the repository bound to what was captured, whatever has happened to its git folder; `None` if nothing
    /// was captured.
    pub fn try_open(&self) -> Result<Option<Repository>, GitError> {
        let config = self.sealed_config.read().map_err(|error| self.not_pinned_error(error))?;
        let repository = config.map(|captured| Repository::from_pinned(&self.config_dir, captured));
        Ok(repository.inspect(|repository| repository.set_never_tracked([Layout::CONTEXT, Layout::ITERATIONS])))
    }

    /// Returns the repository like [`Self::try_open`], but fails if nothing was captured: its own configuration is not
    /// obeyed.
    pub fn open(&self) -> Result<Repository, GitError> {
        self.try_open()?.ok_or_else(|| self.not_pinned_error(MissingPin { path: self.sealed_config.path() }))
    }

    /// Binds an unbound repository to what was captured; returns it unchanged if that is unknown.
    #[must_use]
    pub fn bind_repository(&self, repository: Repository) -> Repository {
        match self.sealed_config.read() {
            Ok(Some(captured)) => repository.or_pinned_to(&self.config_dir, captured),
            Ok(None) | Err(_) => repository,
        }
    }

    /// Captures the repository's current configuration as trusted from now on.
    pub fn pin(&self, repository: &Repository) -> Result<(), GitError> {
        let config = repository.pin_config(&self.config_dir)?;
        self.save(config.pinned_config())
    }

    /// Records that a person has accepted the git folder in its current state.
    pub fn repin(&self, repository: &Repository) -> Result<(), GitError> {
        self.save(repository.repinned_config()?.as_ref())
    }

    fn save(&self, config: Option<&PinnedConfig>) -> Result<(), GitError> {
        match config {
            Some(captured) => self.sealed_config.write(captured).map_err(|error| self.not_pinned_error(error)),
            None => Err(self.not_pinned_error(MissingPin { path: self.sealed_config.path() })),
        }
    }

    fn not_pinned_error(&self, source: impl std::error::Error + Send + Sync + 'static) -> GitError {
        GitError::PinnedConfigLost { path: self.work_tree.clone(), source: Box::new(source) }
    }
}
