//! The work tree of a job: made, or taken up where it was kept, with what a driver before has left kept aside.
//!
//! Objects come through the gate, which reads nothing of the work tree's settings. What is checked out is the caller's to say.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::{JobError, print_note};
use crate::git::{HoldBackRule, Id, Identity, Repository, SnapshotRequest};
use crate::upstream::{run_user_git, without_password};

/// The file whose lock says that a driver has the work tree, and which says that one has made it.
const LOCK: &str = "runnerd-drive.lock";

/// Files that git takes settings from, below the git folder, and the one that leads to those of another.
const SETTINGS: [&str; 4] = ["config", "config.worktree", "info/attributes", "commondir"];

/// The work tree of a job.
#[derive(Debug)]
pub(super) struct JobCheckout {
    /// Its root.
    pub(super) folder: PathBuf,
    _lock: File,
}

impl JobCheckout {
    /// Makes the repository where it is missing; nothing is checked out. Only what a driver has made is taken up: what is
    /// checked out replaces what is there.
    pub(super) fn open(folder: &Path, (remote, url): (&str, &str), cache: Option<&Path>) -> Result<Self, JobError> {
        fs::create_dir_all(folder).map_err(JobError::io("making", folder))?;
        let folder = &folder.canonicalize().map_err(JobError::io("looking at", folder))?;
        let git = folder.join(".git");
        if !git.join(LOCK).is_file() {
            if fs::read_dir(folder).map_err(JobError::io("listing", folder))?.next().is_some() {
                return Err(JobError::NotOurs { path: folder.to_owned() });
            }
            fs::create_dir(&git).map_err(JobError::io("making", &git))?;
        }
        let ground = Self { folder: folder.clone(), _lock: lock_work_tree(&git.join(LOCK), folder)? };
        remove_settings(&git)?;
        run_user_git(folder, &["init", "--quiet", "--template=", "."])?;
        fs::create_dir_all(git.join("info")).map_err(JobError::io("making", folder))?;
        // Sessions can read it.
        run_user_git(folder, &["config", &format!("remote.{remote}.url"), &without_password(url)])?;
        if let Some(cache) = cache {
            ground.add_alternate(cache)?;
        }
        Ok(ground)
    }

    /// Has objects be taken from another store as well.
    fn add_alternate(&self, cache: &Path) -> Result<(), JobError> {
        let cache = cache.canonicalize().map_err(JobError::io("looking at", cache))?;
        let store = [cache.join("objects"), cache.join(".git/objects")].into_iter().find(|store| store.is_dir());
        let store = store.ok_or_else(|| JobError::NoStore { path: cache.clone() })?;
        let file = self.objects_dir().join("info/alternates");
        let known = fs::read_to_string(&file).unwrap_or_default();
        let line = store.display().to_string();
        if known.lines().any(|known| known == line) {
            return Ok(());
        }
        fs::create_dir_all(self.objects_dir().join("info")).map_err(JobError::io("making", &file))?;
        fs::write(&file, format!("{known}{line}\n")).map_err(JobError::io("writing", &file))
    }

    /// Returns the store of its objects.
    pub(super) fn objects_dir(&self) -> PathBuf {
        self.folder.join(".git/objects")
    }

    /// Opens it.
    pub(super) fn open_repository(&self) -> Result<Repository, JobError> {
        Ok(Repository::discover(&self.folder)?)
    }

    /// Returns the commit that is checked out where the work tree was kept; none where that cannot be told, which costs no
    /// more than a longer transfer.
    pub(super) fn checked_out_commit(&self) -> Option<Id> {
        self.open_repository().ok()?.head().ok()?.commit()
    }

    /// Checks a commit out. What is there and is not committed, or not in that commit, is kept under references first.
    pub(super) fn check_out(&self, out: &CheckoutRequest<'_>) -> Result<(), JobError> {
        let repository = self.open_repository()?;
        repository.clear_leftovers(&[])?;
        if repository.head()?.commit().is_some() && !repository.list_changes()?.is_empty() {
            let name = format!("{}-files", out.aside);
            let kept = repository.create_snapshot(&SnapshotRequest {
                name: &name,
                message: "What a driver has left that was killed",
                author: repository.identity().unwrap_or_else(Identity::runner),
                hold_back: &HoldBackRule::nested_only(),
                restore_target: None,
            })?;
            print_note(&format!("kept as {name}: what an earlier driver has left in the work tree"));
            // What is there is in that commit, and goes with it where the next one does not have it.
            run_user_git(&self.folder, &["checkout", "--quiet", "--force", "--detach", &kept.commit.to_string()])?;
        }
        self.preserve_unpublished(&repository, out)?;
        run_user_git(&self.folder, &["checkout", "--quiet", "--force", "-B", out.branch, &out.commit.to_string()])?;
        Ok(())
    }

    /// Keeps the run's branch as it is here, where the remote has never got it: what a session can write is not gone on from.
    fn preserve_unpublished(&self, repository: &Repository, out: &CheckoutRequest<'_>) -> Result<(), JobError> {
        let Some(own_tip) = repository.find_branch_tip(out.run)? else { return Ok(()) };
        if !repository.is_ancestor(&own_tip, &out.commit)? {
            let name = format!("{}-commits", out.aside);
            run_user_git(&self.folder, &["update-ref", &name, &own_tip.to_string()])?;
            print_note(&format!("kept as {name}: what an earlier driver has committed and not published"));
        }
        run_user_git(&self.folder, &["checkout", "--quiet", "--force", "--detach"])?;
        run_user_git(&self.folder, &["update-ref", "-d", &format!("refs/heads/{}", out.run)])?;
        Ok(())
    }
}

/// Removes what git would take settings from: a session could have written them, and some name programs. What a driver needs
/// of them is made anew.
fn remove_settings(git: &Path) -> Result<(), JobError> {
    if git.symlink_metadata().map_err(JobError::io("looking at", git))?.is_symlink() {
        return Err(JobError::NotOurs { path: git.to_owned() });
    }
    for name in SETTINGS {
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

/// What is checked out.
#[derive(Debug)]
pub(super) struct CheckoutRequest<'a> {
    /// The commit.
    pub(super) commit: Id,
    /// The branch that names it.
    pub(super) branch: &'a str,
    /// The run's branch.
    pub(super) run: &'a str,
    /// How references begin that keep what was there.
    pub(super) aside: &'a str,
}

/// Takes the work tree, or tells that another driver has it.
fn lock_work_tree(path: &Path, folder: &Path) -> Result<File, JobError> {
    let options = File::options().read(true).write(true).create(true).truncate(false).to_owned();
    let file = options.open(path).map_err(JobError::io("opening", path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JobError::Occupied { path: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(JobError::io("locking", path)(source)),
    }
}
