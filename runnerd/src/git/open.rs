//! Finds a repository and opens it. What is remembered between operations are paths, so that nobody who edits the link
//! in the work tree, `commondir` or `core.worktree` can lead the runner elsewhere.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use gix::discover::upwards;
use gix::open::permissions;
use gix::sec::Permission;

use super::GitError;
use super::preflight::{self, Engine};
use super::refs::RefStore;

/// A work tree and its git folder.
///
/// Cheap to clone and to send. Every operation sees the repository as it is on disk at that moment.
#[derive(Debug, Clone)]
pub struct Repository {
    work_dir: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    sources: Sources,
    forced: Option<Engine>,
}

/// Which configuration counts beside the repository's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sources {
    /// The user's and the system's, as for the git program.
    User,
    /// None, so that tests do not depend on who runs them.
    RepositoryOnly,
}

/// Settings that hold whatever the repository says. Line endings that do not survive a round trip must not keep a file
/// from being stored, and replaced objects must not show a history that is not there.
const OVERRIDES: [&str; 2] = ["core.safecrlf=false", "core.useReplaceRefs=false"];

impl Repository {
    /// Finds the repository around `from`, a folder or file in its work tree or in a linked one.
    ///
    /// Refuses bare repositories, and such as belong to another user unless `safe.directory` names them.
    pub fn discover(from: &Path) -> Result<Self, GitError> {
        Self::discover_with(from, Sources::User)
    }

    pub(super) fn discover_with(from: &Path, sources: Sources) -> Result<Self, GitError> {
        let from = from.canonicalize().map_err(GitError::io("looking for a repository at", from))?;
        let (found, _) = gix::discover::upwards(&from).map_err(|error| not_found(&from, error))?;
        let (git_dir, work_dir) = found.into_repository_and_work_tree_directories();
        let opened = gix::open_opts(work_dir.as_ref().unwrap_or(&git_dir), options(sources))
            .map_err(GitError::library("opening the repository", &git_dir))?;
        if opened.git_dir_trust() != gix::sec::Trust::Full {
            return Err(GitError::ForeignOwner { path: git_dir });
        }
        let Some(work_dir) = opened.workdir() else {
            return Err(GitError::Bare { path: git_dir });
        };
        Ok(Self {
            work_dir: canonical(work_dir)?,
            git_dir: canonical(opened.git_dir())?,
            common_dir: canonical(opened.common_dir())?,
            sources,
            forced: None,
        })
    }

    /// Returns the root of the work tree, absolute and without symbolic links.
    pub fn work_dir(&self) -> &Path {
        &self.work_dir
    }

    /// Returns the git folder of this work tree: the one with its HEAD and index.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Returns the git folder that all work trees of the repository share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Opens the library's view of the repository. Refuses one whose parts moved.
    pub(super) fn open(&self) -> Result<gix::Repository, GitError> {
        if !self.git_dir.exists() {
            return Err(GitError::NoRepository { path: self.work_dir.clone() });
        }
        let mut repo = gix::open_opts(&self.git_dir, options(self.sources).open_path_as_is(true))
            .map_err(GitError::library("opening the repository", &self.git_dir))?;
        let common_dir = canonical(repo.common_dir())?;
        if common_dir != self.common_dir {
            return Err(GitError::Replaced {
                path: self.work_dir.clone(),
                expected: self.common_dir.clone(),
                found: common_dir,
            });
        }
        repo.set_workdir(self.work_dir.clone()).map_err(GitError::library("reading the work tree", &self.work_dir))?;
        repo.object_cache_size_if_unset(4 * 1024 * 1024);
        Ok(repo)
    }

    /// Returns where a path relative to the work tree is on disk.
    pub(super) fn file(&self, path: &[u8]) -> PathBuf {
        self.work_dir.join(OsStr::from_bytes(path))
    }

    pub(super) fn index_path(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    pub(super) fn uses_own_configuration_only(&self) -> bool {
        self.sources == Sources::RepositoryOnly
    }

    /// Chooses who carries out the next operation on the work tree.
    pub(super) fn engine(&self, repo: &gix::Repository) -> Engine {
        self.forced.unwrap_or_else(|| preflight::engine(repo, self))
    }

    /// Chooses who reads and moves references.
    pub(super) fn ref_store(&self, repo: &gix::Repository) -> RefStore {
        if self.forced == Some(Engine::Program) || preflight::has_foreign_ref_store(repo) {
            RefStore::Program
        } else {
            RefStore::Files
        }
    }

    #[cfg(test)]
    pub(super) fn with_engine(mut self, engine: Engine) -> Self {
        self.forced = Some(engine);
        self
    }
}

fn not_found(from: &Path, error: gix::Error) -> GitError {
    match error.downcast_any_ref::<upwards::Error>() {
        Some(upwards::Error::NoTrustedGitRepository { candidate, .. }) => {
            GitError::ForeignOwner { path: candidate.clone() }
        }
        Some(_) => GitError::NoRepository { path: from.to_owned() },
        None => GitError::library("looking for a repository", from)(error),
    }
}

fn canonical(path: &Path) -> Result<PathBuf, GitError> {
    path.canonicalize().map_err(GitError::io("resolving", path))
}

/// The daemon's environment must not steer git: of it only the places of the user's configuration are read.
fn options(sources: Sources) -> gix::open::Options {
    let permissions = match sources {
        Sources::RepositoryOnly => gix::open::Permissions::isolated(),
        Sources::User => gix::open::Permissions {
            env: permissions::Environment {
                xdg_config_home: Permission::Allow,
                home: Permission::Allow,
                ..permissions::Environment::isolated()
            },
            config: permissions::Config { env: false, ..permissions::Config::all() },
            attributes: permissions::Attributes::all(),
        },
    };
    gix::open::Options::default().permissions(permissions).lossy_config(true).cli_overrides(OVERRIDES)
}
