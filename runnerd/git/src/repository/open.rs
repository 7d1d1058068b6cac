//! Finds and opens repositories. Paths are remembered between operations, so that editing the link in the work tree,
//! `commondir` or `core.worktree` cannot lead the runner elsewhere.

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use gix::discover::upwards;
use gix::open::permissions;
use gix::sec::Permission;

use super::engine::{GitEngine, RefStore};
use super::handle::ConfigSources;
use super::object_cache::{GixView, ObjectCache};
use super::preflight;
use super::user_config::{refuse_named_pipes, refuse_pipe_among, refuse_user_pipes};
use crate::durable::{MAX_WHOLE_BYTES, read_regular_file};
use crate::git_dir_snapshot::large_files;
use crate::{GitError, Repository};

/// Bytes of objects cached for repeated reads.
const OBJECT_CACHE_BYTES: NonZeroUsize = NonZeroUsize::new(4 * 1024 * 1024).expect("it is none");

/// Settings that hold whatever the repository says. Line endings that do not survive a round trip must not prevent a
/// file from being stored, and neither replaced objects nor a forged commit graph may show a history that does not
/// exist. All times of a file count, as a session can set all but one. The library panics if the system refuses it a
/// thread for an index.
pub(crate) const CONFIG_OVERRIDES: [&str; 6] = [
    "core.safecrlf=false",
    "core.useReplaceRefs=false",
    "core.commitGraph=false",
    "core.trustCtime=true",
    "core.checkStat=default",
    "index.threads=1",
];

/// Files of git's folder that are read whenever a repository is opened.
const CORE_FILES: [&str; 7] =
    ["HEAD", "config", "commondir", "packed-refs", "index", "info/exclude", "info/attributes"];

/// Fails if one of these files is a pipe, whose readers would wait forever, or too large to be read whole; an index that is
/// too large is not read.
fn refuse_unreadable(git_dir: &Path) -> Result<(), GitError> {
    let files = || CORE_FILES.iter().map(|name| git_dir.join(name));
    refuse_pipe_among(files())?;
    refuse_named_pipes(&git_dir.join("config"))?;
    refuse_large_among(files().filter(|file| !file.ends_with("index")))
}

fn refuse_large_among(mut files: impl Iterator<Item = PathBuf>) -> Result<(), GitError> {
    let is_large = |file: &PathBuf| {
        let most = large_files::max_bytes(file).unwrap_or(MAX_WHOLE_BYTES);
        file.metadata().is_ok_and(|found| found.is_file() && found.len() > most)
    };
    files.find(is_large).map_or(Ok(()), |path| Err(GitError::FileTooLarge { path }))
}

impl Repository {
    /// Finds the repository around `from`, a folder or file in its work tree or in a linked one.
    ///
    /// Refuses bare repositories, and those of another user unless `safe.directory` names them.
    pub fn discover(from: &Path) -> Result<Self, GitError> {
        Self::discover_with(from, ConfigSources::User)
    }

    /// Finds the repository around `from` to read what is committed in it. It may be bare; its folder then takes the
    /// place of the work tree.
    pub fn discover_read_only(from: &Path) -> Result<Self, GitError> {
        match Self::discover(from) {
            Err(GitError::BareRepository { path }) => {
                let path = canonicalize(&path)?;
                Ok(Self::from_dirs([path.clone(), path.clone(), path], ConfigSources::User, None))
            }
            found => found,
        }
    }

    /// Finds the repository around `from` as [`Self::discover`] does, reading no configuration but its own.
    pub fn discover_own_config(from: &Path) -> Result<Self, GitError> {
        Self::discover_with(from, ConfigSources::RepositoryOnly)
    }

    pub(crate) fn discover_with(from: &Path, sources: ConfigSources) -> Result<Self, GitError> {
        let from = from.canonicalize().map_err(GitError::io("looking for a repository at", from))?;
        from.ancestors().map(|folder| folder.join(".git")).try_for_each(|folder| refuse_unreadable(&folder))?;
        if sources == ConfigSources::User {
            refuse_user_pipes()?;
        }
        let (found, _) = gix::discover::upwards(&from).map_err(|error| discover_error(&from, error))?;
        let (git_dir, work_dir) = found.into_repository_and_work_tree_directories();
        let opened = gix::open_opts(work_dir.as_ref().unwrap_or(&git_dir), open_options(sources))
            .map_err(GitError::gix("opening the repository", &git_dir))?;
        if opened.git_dir_trust() != gix::sec::Trust::Full {
            // git names a repository by its work tree if it has one.
            let path = opened.workdir().map_or(Ok(git_dir), canonicalize)?;
            return Err(GitError::ForeignOwner { path });
        }
        let Some(work_dir) = opened.workdir() else {
            return Err(GitError::BareRepository { path: git_dir });
        };
        let places = [canonicalize(work_dir)?, canonicalize(opened.git_dir())?, canonicalize(opened.common_dir())?];
        Ok(Self::from_dirs(places, sources, None))
    }

    /// Opens the library's view of the repository, or returns the open one. Fails if parts of the repository moved.
    pub(crate) fn open(&self) -> Result<gix::Repository, GitError> {
        self.check_not_moved()?;
        let Some(pinned) = &self.pinned else { return self.open_uncached() };
        refuse_large_among([self.git_dir.join("HEAD"), self.common_dir.join("packed-refs")].into_iter())?;
        if !pinned.has_object_link() {
            self.write_pinned_files()?;
        }
        let packs = self.common_dir.join("objects/pack").metadata().ok();
        let packs = packs.map(|found| (found.mtime(), found.mtime_nsec()));
        let mut view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = view.as_ref().filter(|view| view.packs == packs) {
            return Ok(view.to_local());
        }
        let repo = self.open_uncached()?.into_sync();
        let shared = GixView { repo, packs, objects: ObjectCache::new(OBJECT_CACHE_BYTES) };
        Ok(view.insert(shared).to_local())
    }

    /// Drops cached objects, as another process may have removed them since.
    pub fn clear_object_cache(&self) {
        if let Some(view) = self.view.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            view.objects = ObjectCache::new(OBJECT_CACHE_BYTES);
        }
    }

    /// Reads the configuration in force, and creates the library's view with it.
    pub(crate) fn open_uncached(&self) -> Result<gix::Repository, GitError> {
        let (folder, sources) = if let Some(folder) = self.pinned_dir() {
            self.write_pinned_files()?;
            (folder, ConfigSources::RepositoryOnly)
        } else {
            refuse_unreadable(&self.git_dir)?;
            refuse_unreadable(&self.common_dir)?;
            if self.sources == ConfigSources::User {
                refuse_user_pipes()?;
            }
            (self.git_dir.as_path(), self.sources)
        };
        let mut repo = gix::open_opts(folder, open_options(sources).open_path_as_is(true))
            .map_err(GitError::gix("opening the repository", folder))?;
        if self.pinned.is_some() {
            repo.refs = self.open_refs(&repo);
        }
        repo.set_workdir(self.work_dir.clone()).map_err(GitError::gix("reading the working tree", &self.work_dir))?;
        ObjectCache::new(OBJECT_CACHE_BYTES).attach_to(&mut repo);
        Ok(repo)
    }

    /// Fails if the git folder is missing or no longer shares the common folder it did when the repository was found.
    pub(crate) fn check_not_moved(&self) -> Result<(), GitError> {
        let shared = Some(&self.common_dir).filter(|folder| **folder != self.git_dir);
        for folder in [&self.git_dir].into_iter().chain(shared) {
            if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                return Err(GitError::GitDirMissing { path: folder.clone(), work_dir: self.work_dir.clone() });
            }
        }
        let link = self.git_dir.join("commondir");
        let is_file = link.symlink_metadata().is_ok_and(|found| found.is_file());
        let found = match is_file.then(|| read_regular_file(&link)) {
            Some(Ok(text)) => canonicalize(&self.git_dir.join(OsStr::from_bytes(text.trim_ascii_end())))?,
            _ => self.git_dir.clone(),
        };
        if found == self.common_dir {
            return self.check_work_tree_not_moved();
        }
        Err(GitError::GitLinkChanged { path: self.work_dir.clone(), expected: self.common_dir.clone(), found })
    }

    /// Fails if `git worktree move` has moved this work tree.
    pub fn check_work_tree_not_moved(&self) -> Result<(), GitError> {
        if self.git_dir == self.common_dir || self.work_dir.symlink_metadata().is_ok() {
            return Ok(());
        }
        // If that is unknown, whatever needs the work tree reports that it is missing.
        let Ok(link) = read_regular_file(&self.git_dir.join("gitdir")) else { return Ok(()) };
        let link = self.git_dir.join(OsStr::from_bytes(link.trim_ascii_end()));
        match link.parent() {
            Some(to) if link.is_file() && to != self.work_dir => Err(GitError::WorkTreeMoved {
                from: self.work_dir.clone(),
                to: to.canonicalize().unwrap_or_else(|_| to.to_owned()),
                common: self.common_dir.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Returns the repository's own references, for a library that has opened the trusted folder.
    fn open_refs(&self, repo: &gix::Repository) -> gix::RefStore {
        let git_dir = self.git_dir.clone();
        let hash = repo.object_hash();
        let mut refs = if self.git_dir == self.common_dir {
            gix::RefStore::at(git_dir, hash)
        } else {
            gix::RefStore::for_linked_worktree(git_dir, self.common_dir.clone(), hash)
        };
        refs.write_reflog = repo.refs.write_reflog;
        refs.precompose_unicode = repo.refs.precompose_unicode;
        refs
    }

    /// Chooses the engine for the next operation on the work tree.
    pub(crate) fn choose_engine(&self, repo: &gix::Repository) -> GitEngine {
        self.forced_engine.unwrap_or_else(|| preflight::choose_engine(repo, self))
    }

    /// Chooses what reads and moves references.
    pub(crate) fn choose_ref_store(&self, repo: &gix::Repository) -> RefStore {
        if self.forced_engine == Some(GitEngine::Git) || preflight::has_foreign_ref_store(repo) {
            RefStore::GitOnly
        } else {
            RefStore::Files
        }
    }

    /// Returns the reasons for using the git program instead of the library, each naming the setting.
    pub fn explain_git_engine(&self) -> Result<Vec<&'static str>, GitError> {
        let repo = self.open()?;
        let store = preflight::has_foreign_ref_store(&repo).then_some("extensions.refStorage is not \"files\"");
        Ok(preflight::reasons_for_git(&repo, self).chain(store).collect())
    }

    #[cfg(test)]
    pub(crate) fn with_engine(mut self, engine: GitEngine) -> Self {
        self.forced_engine = Some(engine);
        self
    }
}

fn discover_error(from: &Path, error: gix::Error) -> GitError {
    match error.downcast_any_ref::<upwards::Error>() {
        Some(upwards::Error::NoTrustedGitRepository { candidate, .. }) => {
            let work_tree = candidate.parent().filter(|_| candidate.ends_with(".git"));
            GitError::ForeignOwner { path: work_tree.unwrap_or(candidate).to_owned() }
        }
        Some(_) => GitError::NoRepository { path: from.to_owned() },
        None => GitError::gix("looking for a repository", from)(error),
    }
}

fn canonicalize(path: &Path) -> Result<PathBuf, GitError> {
    path.canonicalize().map_err(GitError::io("resolving", path))
}

/// The daemon's environment must not influence git: only the locations of the user's configuration are read from it.
fn open_options(sources: ConfigSources) -> gix::open::Options {
    let permissions = match sources {
        ConfigSources::RepositoryOnly => gix::open::Permissions::isolated(),
        ConfigSources::User => gix::open::Permissions {
            env: permissions::Environment {
                xdg_config_home: Permission::Allow,
                home: Permission::Allow,
                ..permissions::Environment::isolated()
            },
            config: permissions::Config { env: false, ..permissions::Config::all() },
            attributes: permissions::Attributes::all(),
        },
    };
    // git obeys this only on macOS; the library obeys it everywhere, and would not find files by their actual names.
    let as_named = cfg!(not(target_os = "macos")).then_some("core.precomposeUnicode=false");
    let overrides = CONFIG_OVERRIDES.into_iter().chain(as_named);
    gix::open::Options::default().permissions(permissions).lossy_config(true).cli_overrides(overrides)
}
