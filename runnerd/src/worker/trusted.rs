//! What git may obey in a work tree, as a person's command found it: a sealed note, and the folder where it is laid out.
//!
//! What git reads there, and that the folder is as the note says, is `git`'s. A note that is gone while a run is under
//! way stands for nothing: what the repository says by then may be a session's.

use std::path::{Path, PathBuf};

use crate::git::{PinnedConfig, GitError, Repository};
use crate::repo::kept::{SealedFile, Sealable};
use crate::repo::layout::Layout;
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

/// There is no note.
#[derive(Debug, thiserror::Error)]
#[error("nothing was captured: {path} is missing")]
struct MissingPin {
    path: PathBuf,
}

impl PinnedRepo {
    /// Names what git may obey in a work tree of a repository.
    pub fn for_work_tree(store: &RepoStore, work_tree: &Path) -> Self {
        let (sealed_config, config_dir) = store.git_config_file(work_tree);
        Self { sealed_config, config_dir, work_tree: work_tree.to_owned() }
    }

    /// Returns the work tree.
    pub fn work_tree(&self) -> &Path {
        &self.work_tree
    }

    /// Returns the repository bound to what was captured, whatever has become of its git folder; none if nothing was.
    pub fn try_open(&self) -> Result<Option<Repository>, GitError> {
        let config = self.sealed_config.read().map_err(|error| self.not_pinned_error(error))?;
        let repository = config.map(|captured| Repository::from_pinned(&self.config_dir, captured));
        Ok(repository.inspect(|repository| repository.set_never_tracked([Layout::CONTEXT, Layout::ITERATIONS])))
    }

    /// Returns the repository as [`Self::repository`] does, for those who would obey what it says without.
    pub fn open(&self) -> Result<Repository, GitError> {
        self.try_open()?.ok_or_else(|| self.not_pinned_error(MissingPin { path: self.sealed_config.path() }))
    }

    /// Binds a repository that is bound to nothing yet to what was captured; as it is where that is not known.
    #[must_use]
    pub fn bind_repository(&self, repository: Repository) -> Repository {
        match self.sealed_config.read() {
            Ok(Some(captured)) => repository.or_pinned_to(&self.config_dir, captured),
            Ok(None) | Err(_) => repository,
        }
    }

    /// Takes what the repository says now as what counts from now on.
    pub fn pin(&self, repository: &Repository) -> Result<(), GitError> {
        let config = repository.pin_config(&self.config_dir)?;
        self.save(config.pinned_config())
    }

    /// Remembers that a person has asked to go on with the git folder that is there now.
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
