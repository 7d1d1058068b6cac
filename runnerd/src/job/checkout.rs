//! The work tree of a job: created, or reused if it was kept, with leftovers of the previous driver preserved.
//!
//! Objects are fetched by the `RemoteClient`, which reads none of the work tree's settings. The caller decides what is
//! checked out.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use runner_git::{HoldBackRule, Id, Identity, Repository, SnapshotRequest};

use super::{JobError, print_note};
use crate::upstream::{run_user_git, without_password};

/// The file whose lock shows that a driver is using the work tree, and whose existence shows that one has created it.
const LOCK_NAME: &str = "runnerd-drive.lock";

/// Files from which git reads settings, below the git folder, and the one that points to another git folder.
const SETTINGS_FILES: [&str; 4] = ["config", "config.worktree", "info/attributes", "commondir"];

/// The work tree of a job.
#[derive(Debug)]
pub(super) struct JobCheckout {
    /// Its root.
    pub(super) folder: PathBuf,
    _lock: File,
}

impl JobCheckout {
    /// Creates the repository if it is missing, without checking anything out. Only one created by a driver is reused:
    /// a checkout replaces existing files.
    pub(super) fn open(folder: &Path, remote: &str, url: &str, cache: Option<&Path>) -> Result<Self, JobError> {
        fs::create_dir_all(folder).map_err(JobError::io("making", folder))?;
        let folder = &folder.canonicalize().map_err(JobError::io("looking at", folder))?;
        let git = folder.join(".git");
        if !git.join(LOCK_NAME).is_file() {
            if fs::read_dir(folder).map_err(JobError::io("listing", folder))?.next().is_some() {
                return Err(JobError::NotCreatedByDriver { path: folder.to_owned() });
            }
            fs::create_dir(&git).map_err(JobError::io("making", &git))?;
        }
        let checkout = Self { folder: folder.clone(), _lock: lock_work_tree(&git.join(LOCK_NAME), folder)? };
        remove_settings(&git)?;
        run_user_git(folder, &["init", "--quiet", "--template=", "."])?;
        fs::create_dir_all(git.join("info")).map_err(JobError::io("making", folder))?;
        // Sessions can read it.
        run_user_git(folder, &["config", &format!("remote.{remote}.url"), &without_password(url)])?;
        if let Some(cache) = cache {
            checkout.add_alternate(cache)?;
        }
        Ok(checkout)
    }

    /// Makes git also read objects from another store.
    fn add_alternate(&self, cache: &Path) -> Result<(), JobError> {
        let cache = cache.canonicalize().map_err(JobError::io("looking at", cache))?;
        let store = [cache.join("objects"), cache.join(".git/objects")].into_iter().find(|store| store.is_dir());
        let store = store.ok_or_else(|| JobError::MissingObjects { path: cache.clone() })?;
        let file = self.objects_dir().join("info/alternates");
        let known = fs::read_to_string(&file).unwrap_or_default();
        let line = store.display().to_string();
        if known.lines().any(|known| known == line) {
            return Ok(());
        }
        fs::create_dir_all(self.objects_dir().join("info")).map_err(JobError::io("making", &file))?;
        fs::write(&file, format!("{known}{line}\n")).map_err(JobError::io("writing", &file))
    }

    /// Returns the folder of its objects.
    pub(super) fn objects_dir(&self) -> PathBuf {
        self.folder.join(".git/objects")
    }

    /// Opens the repository.
    pub(super) fn open_repository(&self) -> Result<Repository, JobError> {
        Ok(Repository::discover(&self.folder)?)
    }

    /// Returns the commit that is checked out in a kept work tree; `None` if that is unknown, which only costs a longer
    /// transfer.
    pub(super) fn checked_out_commit(&self) -> Option<Id> {
        self.open_repository().ok()?.head().ok()?.commit()
    }

    /// Checks out a commit. Existing files that are not committed, or not in that commit, are first saved under
    /// references.
    pub(super) fn check_out(&self, request: &CheckoutRequest<'_>) -> Result<(), JobError> {
        let repository = self.open_repository()?;
        repository.clear_leftovers(&[])?;
        if repository.head()?.commit().is_some() && !repository.list_changes()?.is_empty() {
            let name = format!("{}-files", request.ref_prefix);
            let snapshot = repository.create_snapshot(&SnapshotRequest {
                name: &name,
                message: "What a driver has left that was killed",
                author: repository.identity().unwrap_or_else(Identity::runner),
                hold_back: &HoldBackRule::nested_only(),
                restore_target: None,
            })?;
            print_note(&format!("kept as {name}: what an earlier driver has left in the working tree"));
            // The existing files are in that commit, so that a checkout of one without them removes them.
            run_user_git(&self.folder, &["checkout", "--quiet", "--force", "--detach", &snapshot.commit.to_string()])?;
        }
        self.preserve_unpublished(&repository, request)?;
        run_user_git(
            &self.folder,
            &["checkout", "--quiet", "--force", "-B", request.branch, &request.commit.to_string()],
        )?;
        Ok(())
    }

    /// Saves the run's local branch if the remote has never received it: nothing is based on what a session could have
    /// written.
    fn preserve_unpublished(&self, repository: &Repository, request: &CheckoutRequest<'_>) -> Result<(), JobError> {
        let Some(own_tip) = repository.find_branch_tip(request.run_branch)? else { return Ok(()) };
        if !repository.is_ancestor(&own_tip, &request.commit)? {
            let name = format!("{}-commits", request.ref_prefix);
            run_user_git(&self.folder, &["update-ref", &name, &own_tip.to_string()])?;
            print_note(&format!("kept as {name}: what an earlier driver has committed and not published"));
        }
        run_user_git(&self.folder, &["checkout", "--quiet", "--force", "--detach"])?;
        run_user_git(&self.folder, &["update-ref", "-d", &format!("refs/heads/{}", request.run_branch)])?;
        Ok(())
    }
}

/// Removes the files from which git would read settings: a session could have written them, and some name programs. A
/// driver recreates what it needs.
fn remove_settings(git: &Path) -> Result<(), JobError> {
    if git.symlink_metadata().map_err(JobError::io("looking at", git))?.is_symlink() {
        return Err(JobError::NotCreatedByDriver { path: git.to_owned() });
    }
    for name in SETTINGS_FILES {
        let path = git.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(JobError::io("removing", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What to check out.
#[derive(Debug)]
pub(super) struct CheckoutRequest<'a> {
    /// Id of the commit.
    pub(super) commit: Id,
    /// The branch that it is known as.
    pub(super) branch: &'a str,
    /// The run's branch.
    pub(super) run_branch: &'a str,
    /// Prefix of the references that save existing work.
    pub(super) ref_prefix: &'a str,
}

/// Locks the work tree; fails if another driver is using it.
fn lock_work_tree(path: &Path, folder: &Path) -> Result<File, JobError> {
    let options = File::options().read(true).write(true).create(true).truncate(false).to_owned();
    let file = options.open(path).map_err(JobError::io("opening", path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JobError::Occupied { path: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(JobError::io("locking", path)(source)),
    }
}
