//! A repository handle: where it is, which configuration applies, and what its clones share.
//!
//! Operations on it are methods in the file of each topic.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::cache::{RepositoryCache, VerifiedIndex};
use super::engine::GitEngine;
use super::object_cache::GixView;
use super::pinned_config::PinnedConfigDir;

/// A work tree and its git folder.
///
/// Cheap to clone and to send. Every operation sees the current state on disk, except for a captured configuration,
/// which is read once.
#[derive(Debug, Clone)]
pub struct Repository {
    pub(crate) work_dir: PathBuf,
    pub(crate) git_dir: PathBuf,
    pub(crate) common_dir: PathBuf,
    pub(crate) sources: ConfigSources,
    /// The captured configuration; `None` uses the repository's current one.
    pub(crate) pinned: Option<Arc<PinnedConfigDir>>,
    pub(crate) forced_engine: Option<GitEngine>,
    /// The library's view under the captured configuration, once opened.
    pub(crate) view: Arc<Mutex<Option<GixView>>>,
    /// The index whose checksum was last verified.
    pub(crate) verified_index: VerifiedIndex,
    /// Cached state of the tracked files.
    pub(crate) cache: RepositoryCache,
}

/// Which configuration applies in addition to the repository's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigSources {
    /// The user's and the system's, as for the git program.
    User,
    /// None, so that tests do not depend on the user who runs them.
    RepositoryOnly,
}

impl Repository {
    /// Returns the repository with this work tree, git folder and common folder.
    pub(crate) fn from_dirs(
        [work_dir, git_dir, common_dir]: [PathBuf; 3],
        sources: ConfigSources,
        trusted: Option<Arc<PinnedConfigDir>>,
    ) -> Self {
        Self {
            work_dir,
            git_dir,
            common_dir,
            sources,
            pinned: trusted,
            forced_engine: None,
            view: Arc::default(),
            verified_index: VerifiedIndex::default(),
            cache: RepositoryCache::default(),
        }
    }

    /// Returns the root of the work tree, absolute and without symbolic links.
    pub fn work_dir(&self) -> &Path {
        &self.work_dir
    }

    /// Returns this work tree's git folder, which holds its HEAD and index.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Returns the git folder that all work trees of the repository share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Returns the location on disk of a path relative to the work tree.
    pub(crate) fn absolute_path(&self, path: &[u8]) -> PathBuf {
        self.work_dir.join(OsStr::from_bytes(path))
    }

    pub(crate) fn index_path(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    pub(crate) fn uses_only_own_config(&self) -> bool {
        self.pinned.is_some() || self.sources == ConfigSources::RepositoryOnly
    }
}
