//! Workspaces: a separate repository for each isolated run, which shares nothing with the one it was started from.
//!
//! Creates, sweeps and removes them as folders. A workspace gets its name only when it is complete and durable: a
//! folder under another name of this daemon's is a leftover from when it was killed. Which run has which workspace, and
//! what is published from it, is handled elsewhere; nothing here concerns the run itself. Calls block.

mod copy;
mod error;
mod owner;
mod unknown_files;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use runner_config::{DaemonConfig, Patterns};
use runner_git::{Id, Repository, RepositoryClone};
use runner_os::dir_permissions;
use tokio_util::sync::CancellationToken;

pub use self::copy::CopiedFiles;
pub use self::error::WorkspaceError;
pub use self::owner::WorkspaceOwner;
pub use self::unknown_files::find_unknown_files;
use crate::repo::durable::{self, FileAccess};

/// A workspace to create.
#[derive(Debug)]
pub struct WorkspaceOptions<'a> {
    /// The repository it is created from, bound to the configuration that was captured at the person's request.
    pub source: &'a Repository,
    /// Its place: a new folder.
    pub target_dir: &'a Path,
    /// The commit to check out.
    pub base: Id,
    /// Which of the source's ignored files to copy.
    pub copy: &'a Patterns,
}

/// Progress of creating a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceProgress {
    /// Objects, references and settings are being copied.
    Repository,
    /// The files of the base are being checked out.
    Files,
    /// The ignored files to be copied are being counted.
    Counting {
        /// Number of files so far.
        files: u64,
    },
    /// The ignored files are being copied.
    Copying {
        /// Number of files copied so far.
        files: u64,
        /// Number of files counted; some may have been added or removed since.
        total: u64,
    },
    /// Everything is being flushed to the disk.
    Flushing,
}

/// A workspace that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceReport {
    /// The ignored files that were copied.
    pub copied: CopiedFiles,
    /// Size of its objects in bytes.
    pub objects: u64,
    /// What a person should know, one sentence each.
    pub warnings: Vec<String>,
}

/// Context of creating one: the order, its owner, who is notified of progress, and how it is cancelled.
struct WorkspaceBuilder<'a> {
    options: &'a WorkspaceOptions<'a>,
    folder: PathBuf,
    progress: &'a dyn Fn(WorkspaceProgress),
    stop: &'a CancellationToken,
}

/// Returns the folder for all workspaces: the configured one, or else one in the daemon's state folder.
pub fn workspaces_dir(config: &DaemonConfig, state: &Path) -> PathBuf {
    config.workspaces.clone().unwrap_or_else(|| state.join("workspaces"))
}

/// Returns the place of a run's workspace in the folder for all, by the id of the repository that it was started from.
pub fn workspace_path(workspaces: &Path, source: &str, run: &str) -> PathBuf {
    workspaces.join(source).join(run)
}

/// Creates a workspace. Fails, and leaves nothing behind, if its place is taken or if it is cancelled.
pub fn create_workspace(
    options: &WorkspaceOptions<'_>,
    owner: &WorkspaceOwner,
    progress: &dyn Fn(WorkspaceProgress),
    stop: &CancellationToken,
) -> Result<WorkspaceReport, WorkspaceError> {
    if options.source.is_partial()? {
        return Err(WorkspaceError::PartialClone { path: options.source.work_dir().to_owned() });
    }
    if options.target_dir.symlink_metadata().is_ok() {
        return Err(WorkspaceError::AlreadyExists { path: options.target_dir.to_owned() });
    }
    let parent = options.target_dir.parent().unwrap_or(Path::new("/"));
    durable::create_dir(parent, FileAccess::Private)?;
    let folder = owner.unfinished_path(options.target_dir);
    remove_workspace(&folder)?;
    let builder = WorkspaceBuilder { options, folder, progress, stop };
    builder.build().inspect_err(|_| {
        if let Err(error) = remove_workspace(&builder.folder) {
            tracing::warn!(error = &error as &dyn std::error::Error, "failed to remove an unfinished workspace");
        }
    })
}

/// Removes a workspace, if it exists, whatever programs have done to it.
pub fn remove_workspace(folder: &Path) -> Result<(), WorkspaceError> {
    dir_permissions::remove_all(folder).map_err(WorkspaceError::io("removing", folder))
}

/// Copies the ignored files that an order names to its place, in which files of the source are checked out.
pub fn copy_ignored_files(
    options: &WorkspaceOptions<'_>,
    stop: &CancellationToken,
) -> Result<CopiedFiles, WorkspaceError> {
    copy::copy_ignored(&WorkspaceBuilder { options, folder: options.target_dir.to_owned(), progress: &|_| (), stop })
}

/// Removes what a killed daemon was creating or removing in `workspaces`; returns the folders. Leaves alone what other
/// daemons have begun there.
pub fn sweep_unfinished(workspaces: &Path, owner: &WorkspaceOwner) -> Result<Vec<PathBuf>, WorkspaceError> {
    let mut swept = Vec::new();
    for source in list_folders(workspaces)? {
        // Belongs to another user who shares the folder for all workspaces.
        if is_unlistable(&source) {
            continue;
        }
        for folder in list_folders(&source)? {
            if owner.is_owner_of(&folder) {
                remove_workspace(&folder)?;
                swept.push(folder);
            }
        }
    }
    Ok(swept)
}

/// Returns the subfolders of a folder; empty if there is no such folder.
fn list_folders(folder: &Path) -> Result<Vec<PathBuf>, WorkspaceError> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(WorkspaceError::io("listing", folder))?,
    };
    let mut found = Vec::new();
    for entry in listed {
        let entry = entry.map_err(WorkspaceError::io("listing", folder))?;
        let kind = entry.file_type().map_err(WorkspaceError::io("looking at", &entry.path()))?;
        found.extend(kind.is_dir().then(|| entry.path()));
    }
    Ok(found)
}

/// Whether a folder may not be listed.
fn is_unlistable(folder: &Path) -> bool {
    fs::read_dir(folder).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

impl WorkspaceBuilder<'_> {
    fn build(&self) -> Result<WorkspaceReport, WorkspaceError> {
        let WorkspaceOptions { source, target_dir: place, base, .. } = self.options;
        self.report(WorkspaceProgress::Repository)?;
        let clone = RepositoryClone::create(source, &self.folder, place)?;
        clone.copy_settings()?;
        let objects = clone.copy_objects(base)?;
        self.report(WorkspaceProgress::Repository)?;
        clone.copy_references()?;
        let objects = objects + clone.copy_large_files()?;
        self.report(WorkspaceProgress::Files)?;
        clone.check_out(base)?;
        let rules_dir =
            tempfile::tempdir_in(self.folder.join(".git")).map_err(WorkspaceError::io("making", &self.folder))?;
        let mut warnings = clone.clone_submodules(base, rules_dir.path())?;
        rules_dir.close().map_err(WorkspaceError::io("removing", &self.folder))?;
        let copied = copy::copy_ignored(self)?;
        warnings.extend(copied.warnings());
        self.report(WorkspaceProgress::Flushing)?;
        durable::sync_file_system(&self.folder)?;
        self.move_into_place()?;
        Ok(WorkspaceReport { copied, objects, warnings })
    }

    /// Reports progress; fails if creation is cancelled at this point.
    fn report(&self, progress: WorkspaceProgress) -> Result<(), WorkspaceError> {
        if self.stop.is_cancelled() {
            return Err(WorkspaceError::Stopped);
        }
        (self.progress)(progress);
        Ok(())
    }

    /// Gives the workspace its name, durably.
    fn move_into_place(&self) -> Result<(), WorkspaceError> {
        let place = self.options.target_dir;
        fs::rename(&self.folder, place).map_err(WorkspaceError::io("naming", place))?;
        let parent = place.parent().unwrap_or(Path::new("/"));
        let flushed = fs::File::open(parent).and_then(|folder| folder.sync_all());
        flushed.map_err(WorkspaceError::io("flushing", parent))
    }
}

#[cfg(test)]
mod tests;
