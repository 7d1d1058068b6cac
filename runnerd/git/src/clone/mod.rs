//! A second repository with the objects, references and settings of the first that shares nothing with it: no object
//! file, no borrowed store, no remote that leads back. Changes in one are never visible in the other.
//!
//! A replica is made in steps, each of which is a method; the caller (`workspace`) decides which steps to take, where,
//! and what else to check out. Uses neither git's own clone nor its transport: those link objects, borrow them, and run
//! the hooks of templates.

mod large_files;
mod objects;
mod references;
mod settings;
mod submodules;
mod untracked;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use self::settings::RemoteSource;
use super::repository::engine::RefStore;
use super::repository::program::GitCommand;
use crate::{GitError, Id, Repository};

/// A replica under construction.
#[derive(Debug)]
pub struct RepositoryClone<'a> {
    source: &'a Repository,
    target: Repository,
    /// The folder it is built in, and its final place.
    relocation: [PathBuf; 2],
    remotes: RemoteSource,
}

impl<'a> RepositoryClone<'a> {
    /// Creates an empty repository in `work_dir`, a new folder that will be moved to `final_dir`, with the formats
    /// of `source`, whose configuration must have been captured.
    ///
    /// Refuses a source of which a part belongs to another user: what that user writes there meanwhile would take
    /// effect here.
    pub fn create(source: &'a Repository, work_dir: &Path, final_dir: &Path) -> Result<Self, GitError> {
        source.check_owner()?;
        fs::create_dir(work_dir).map_err(GitError::io("making", work_dir))?;
        fs::set_permissions(work_dir, Permissions::from_mode(0o700)).map_err(GitError::io("making", work_dir))?;
        let moves = [work_dir.to_owned(), final_dir.to_owned()];
        Self {
            source,
            target: new_repository(source, work_dir, &work_dir.join(".git")),
            relocation: moves,
            remotes: RemoteSource::Pinned,
        }
        .init_repository()
    }

    /// Creates the empty repository.
    fn init_repository(self) -> Result<Self, GitError> {
        let Self { source, target, .. } = &self;
        let git_dir = target.git_dir();
        fs::create_dir_all(git_dir).map_err(GitError::io("making", git_dir))?;
        fs::set_permissions(git_dir, Permissions::from_mode(0o700)).map_err(GitError::io("making", git_dir))?;
        let opened = source.open()?;
        let mut init = GitCommand::new(target, "init").args(["--quiet", "--template="]);
        if opened.object_hash() != gix::hash::Kind::Sha1 {
            init = init.arg(format!("--object-format={}", opened.object_hash()));
        }
        // Only a program that supports another format knows the option.
        if source.choose_ref_store(&opened) == RefStore::GitOnly {
            init = init.arg(format!("--ref-format={}", ref_format(&opened)));
        }
        init.run()?;
        let info = git_dir.join("info");
        fs::create_dir_all(&info).map_err(GitError::io("making", &info))?;
        Ok(self)
    }

    /// Returns the final location of one of its paths.
    fn final_path(&self, path: &Path) -> PathBuf {
        let [folder, place] = &self.relocation;
        path.strip_prefix(folder).map_or_else(|_| path.to_owned(), |below| place.join(below))
    }

    /// Returns the repository in its current state.
    pub fn repository(&self) -> &Repository {
        &self.target
    }

    /// Checks out the files of `base`, with HEAD detached at that commit.
    pub fn check_out(&self, base: &Id) -> Result<(), GitError> {
        self.target.verify_files(base)?;
        let attributes = self.target.git_dir().join(settings::USER_ATTRIBUTES_FILE);
        GitCommand::new(&self.target, "checkout")
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "core.attributesFile")
            .env("GIT_CONFIG_VALUE_0", attributes)
            .args(["--quiet", "--detach", &base.to_string(), "--"])
            .run()
            .map(drop)
    }
}

impl Repository {
    /// Fails if one of the source's folders belongs to another user, whatever `safe.directory` says.
    fn check_owner(&self) -> Result<(), GitError> {
        let own = nix::unistd::geteuid().as_raw();
        for folder in [self.work_dir(), self.git_dir(), self.common_dir()] {
            let found = folder.symlink_metadata().map_err(GitError::io("looking at", folder))?;
            if found.uid() != own {
                return Err(GitError::ForeignOwner { path: folder.to_owned() });
            }
        }
        Ok(())
    }

    /// Returns the object folder of the replica.
    fn objects_dir(&self) -> PathBuf {
        self.common_dir().join("objects")
    }
}

/// Returns the repository to be created in two folders.
fn new_repository(source: &Repository, work_dir: &Path, git_dir: &Path) -> Repository {
    Repository::from_dirs([work_dir.to_owned(), git_dir.to_owned(), git_dir.to_owned()], source.sources, None)
}

fn ref_format(repo: &gix::Repository) -> String {
    repo.config_snapshot().string("extensions.refStorage").map_or_else(|| "files".to_owned(), |name| name.to_string())
}
