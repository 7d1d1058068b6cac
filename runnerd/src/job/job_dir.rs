//! The private folder of a job, below the temporary folder: state, socket, access to the remote, and the work tree if
//! none was given. Leftovers of dead drivers are removed when the next one starts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use protocol::paths::{Paths, job_dir, jobs_dir};
use protocol::private_dir;
use runner_core::driver::Driver;
use runner_os::error_chain::display_chain;

use super::JobError;
use crate::workspace;

/// The file whose lock shows that a driver is using the folder.
const LOCK_NAME: &str = "lock";

/// The private folder of a job; removed when this is dropped.
#[derive(Debug)]
pub(super) struct JobDir {
    folder: PathBuf,
    _lock: File,
}

impl JobDir {
    /// Creates the folder, and removes what dead drivers of this user have left.
    pub(super) fn create(driver: &Driver) -> Result<Self, JobError> {
        let jobs_dir = jobs_dir();
        private_dir::create_private_dir(&jobs_dir)?;
        // Prevents a sweep between the creation of a folder and its lock.
        let sweep_lock = open_lock(&jobs_dir.join(LOCK_NAME))?;
        sweep_lock.lock().map_err(JobError::io("locking", &jobs_dir.join(LOCK_NAME)))?;
        sweep_dead_jobs(&jobs_dir)?;
        let preferred = job_dir(&driver.engine, &driver.job);
        let folder =
            if preferred.exists() { jobs_dir.join(format!("{}-{}", driver.name(), driver.nonce)) } else { preferred };
        private_dir::create_private_dir(&folder)?;
        let lock = open_lock(&folder.join(LOCK_NAME))?;
        lock.try_lock().map_err(|error| JobError::io("locking", &folder.join(LOCK_NAME))(error.into()))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Returns the paths of the job's daemon; the settings are the user's.
    pub(super) fn paths(&self, user_paths: &Paths) -> Result<Paths, JobError> {
        let paths = Paths { state: self.folder.join("state"), config: user_paths.config.clone(), ..user_paths.clone() };
        Ok(paths.with_socket(&self.folder.join("runnerd.sock"), "the directory of the job")?)
    }

    /// Returns the folder for access to the remote.
    pub(super) fn remote_dir(&self) -> PathBuf {
        self.folder.join("remote.git")
    }

    /// Returns the default work tree.
    pub(super) fn work_tree_dir(&self) -> PathBuf {
        self.folder.join("work")
    }
}

impl Drop for JobDir {
    fn drop(&mut self) {
        remove_job_dir(&self.folder);
    }
}

fn open_lock(path: &Path) -> Result<File, JobError> {
    let options = File::options().read(true).write(true).create(true).truncate(false).to_owned();
    options.open(path).map_err(JobError::io("opening", path))
}

/// Removes the folders of dead drivers: those whose locks are free.
fn sweep_dead_jobs(jobs_dir: &Path) -> Result<(), JobError> {
    for entry in fs::read_dir(jobs_dir).map_err(JobError::io("listing", jobs_dir))? {
        let folder = entry.map_err(JobError::io("listing", jobs_dir))?.path();
        if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            continue;
        }
        // A lock that cannot be opened belongs to someone else.
        let Ok(lock) = open_lock(&folder.join(LOCK_NAME)) else { continue };
        if lock.try_lock().is_ok() {
            remove_job_dir(&folder);
        }
    }
    Ok(())
}

/// Removes the folder of a dead driver. What programs that are about to exit still use is left to the next sweep.
fn remove_job_dir(folder: &Path) {
    if let Err(error) = workspace::remove_workspace(folder) {
        tracing::warn!(folder = %folder.display(), error = display_chain(&error), "not removed");
    }
}
