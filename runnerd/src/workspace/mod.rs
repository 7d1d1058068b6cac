//! Workspaces: a repository of its own for each isolated run, which shares nothing with the one it was begun from.
//!
//! Makes, sweeps and removes them as folders. A workspace has its name only once it is complete and on the disk: what is
//! found under another that this daemon gives is what it has left when it was killed. Which run has which workspace, and what is published from
//! it, is told elsewhere; nothing of a run is done here. Whoever calls waits.

mod copy;
mod error;
mod unknown_files;
mod owner;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

pub use self::copy::CopiedFiles;
pub use self::error::WorkspaceError;
pub use self::unknown_files::find_unknown_files;
pub use self::owner::WorkspaceOwner;
use crate::config::{DaemonConfig, Patterns};
use crate::dir_permissions;
use crate::git::{Id, RepositoryClone, Repository};
use crate::repo::durable::{self, FileAccess};

/// Which workspace to make.
#[derive(Debug)]
pub struct WorkspaceOptions<'a> {
    /// The repository that it is made from, bound to the configuration that was captured at the person's request.
    pub source: &'a Repository,
    /// Where it is to be: a new folder.
    pub target_dir: &'a Path,
    /// The commit that is checked out in it.
    pub base: Id,
    /// What is copied of that which the source ignores.
    pub copy: &'a Patterns,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceProgress {
    /// Objects, references and settings are taken over.
    Repository,
    /// The files of the base are laid out.
    Files,
    /// What is to be copied of that which the source ignores is counted.
    Counting {
        /// Files so far.
        files: u64,
    },
    /// It is copied.
    Copying {
        /// Files that are copied.
        files: u64,
        /// Files that were counted; some may have come or gone since.
        total: u64,
    },
    /// It is written to the disk.
    Flushing,
}

/// A workspace that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceReport {
    /// What was copied of that which the source ignores.
    pub copied: CopiedFiles,
    /// Bytes of its objects.
    pub objects: u64,
    /// What a person should know, a sentence each.
    pub warnings: Vec<String>,
}

/// Who makes one, who hears of it, and who stops it.
struct WorkspaceBuilder<'a> {
    options: &'a WorkspaceOptions<'a>,
    folder: PathBuf,
    progress: &'a dyn Fn(WorkspaceProgress),
    stop: &'a CancellationToken,
}

/// Returns the folder of all workspaces: the configured one, else one in the daemon's state folder.
pub fn workspaces_dir(config: &DaemonConfig, state: &Path) -> PathBuf {
    config.workspaces.clone().unwrap_or_else(|| state.join("workspaces"))
}

/// Returns where the workspace of a run is, below the folder of all, by the id of the repository that it was begun from.
pub fn workspace_path(workspaces: &Path, source: &str, run: &str) -> PathBuf {
    workspaces.join(source).join(run)
}

/// Makes a workspace. Fails, and leaves nothing, where something is in its place, or when it is stopped.
pub fn create_workspace(
    (options, owner): (&WorkspaceOptions<'_>, &WorkspaceOwner),
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
            tracing::warn!(error = &error as &dyn std::error::Error, "what was begun of a workspace stays");
        }
    })
}

/// Removes a workspace, if there is one, whatever programs have made of it.
pub fn remove_workspace(folder: &Path) -> Result<(), WorkspaceError> {
    dir_permissions::remove_all(folder).map_err(WorkspaceError::io("removing", folder))
}

/// Copies what an order names of that which its source ignores to its place, where files of the source are laid out.
pub fn copy_ignored_files(options: &WorkspaceOptions<'_>, stop: &CancellationToken) -> Result<CopiedFiles, WorkspaceError> {
    copy::copy_ignored(&WorkspaceBuilder { options, folder: options.target_dir.to_owned(), progress: &|_| (), stop })
}

/// Removes what a daemon that was killed had begun to make or to remove below `workspaces`; returns the folders. What others
/// have begun there is theirs.
pub fn sweep_unfinished(workspaces: &Path, owner: &WorkspaceOwner) -> Result<Vec<PathBuf>, WorkspaceError> {
    let mut swept = Vec::new();
    for source in list_folders(workspaces)? {
        // Another user's, who shares the folder of all.
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

/// Returns the folders in a folder; none where there is no such folder.
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

    /// Tells how far it is; fails if it is to be stopped there.
    fn report(&self, progress: WorkspaceProgress) -> Result<(), WorkspaceError> {
        if self.stop.is_cancelled() {
            return Err(WorkspaceError::Stopped);
        }
        (self.progress)(progress);
        Ok(())
    }

    /// Gives it its name, durably.
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
