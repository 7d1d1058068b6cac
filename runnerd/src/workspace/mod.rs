//! Workspaces: a repository of its own for each isolated run, which shares nothing with the one it was begun from.
//!
//! Makes, sweeps and removes them as folders. A workspace has its name only once it is complete and on the disk: what is
//! found under another that this daemon gives is what it has left when it was killed. Which run has which workspace, and what is published from
//! it, is told elsewhere; nothing of a run is done here. Whoever calls waits.

mod copy;
mod error;
mod foreign;
mod owner;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

pub use self::copy::Copied;
pub use self::error::WorkspaceError;
pub use self::foreign::foreign;
pub use self::owner::Owner;
use crate::config::{DaemonConfig, Patterns};
use crate::folders;
use crate::git::{Id, Replica, Repository};
use crate::repo::durable::{self, Access};

/// Which workspace to make.
#[derive(Debug)]
pub struct Order<'a> {
    /// The repository that it is made from, bound to the configuration that was captured at the person's request.
    pub source: &'a Repository,
    /// Where it is to be: a new folder.
    pub place: &'a Path,
    /// The commit that is checked out in it.
    pub base: Id,
    /// What is copied of that which the source ignores.
    pub copy: &'a Patterns,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
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
pub struct Made {
    /// What was copied of that which the source ignores.
    pub copied: Copied,
    /// Bytes of its objects.
    pub objects: u64,
    /// What a person should know, a sentence each.
    pub warnings: Vec<String>,
}

/// Who makes one, who hears of it, and who stops it.
struct Making<'a> {
    order: &'a Order<'a>,
    folder: PathBuf,
    progress: &'a dyn Fn(Progress),
    stop: &'a CancellationToken,
}

/// Returns the folder of all workspaces: the configured one, else one in the daemon's state folder.
pub fn folder(config: &DaemonConfig, state: &Path) -> PathBuf {
    config.workspaces.clone().unwrap_or_else(|| state.join("workspaces"))
}

/// Returns where the workspace of a run is, below the folder of all, by the id of the repository that it was begun from.
pub fn place(workspaces: &Path, source: &str, run: &str) -> PathBuf {
    workspaces.join(source).join(run)
}

/// Makes a workspace. Fails, and leaves nothing, where something is in its place, or when it is stopped.
pub fn make(
    (order, owner): (&Order<'_>, &Owner),
    progress: &dyn Fn(Progress),
    stop: &CancellationToken,
) -> Result<Made, WorkspaceError> {
    if order.source.is_partial()? {
        return Err(WorkspaceError::Partial { path: order.source.work_dir().to_owned() });
    }
    if order.place.symlink_metadata().is_ok() {
        return Err(WorkspaceError::Taken { path: order.place.to_owned() });
    }
    let parent = order.place.parent().unwrap_or(Path::new("/"));
    durable::create_dir(parent, Access::Private)?;
    let folder = owner.unfinished(order.place);
    remove(&folder)?;
    let making = Making { order, folder, progress, stop };
    making.make().inspect_err(|_| {
        if let Err(error) = remove(&making.folder) {
            tracing::warn!(error = &error as &dyn std::error::Error, "what was begun of a workspace stays");
        }
    })
}

/// Removes a workspace, if there is one, whatever programs have made of it.
pub fn remove(folder: &Path) -> Result<(), WorkspaceError> {
    folders::remove(folder).map_err(WorkspaceError::io("removing", folder))
}

/// Copies what an order names of that which its source ignores to its place, where files of the source are laid out.
pub fn bring(order: &Order<'_>, stop: &CancellationToken) -> Result<Copied, WorkspaceError> {
    copy::copy(&Making { order, folder: order.place.to_owned(), progress: &|_| (), stop })
}

/// Removes what a daemon that was killed had begun to make or to remove below `workspaces`; returns the folders. What others
/// have begun there is theirs.
pub fn sweep(workspaces: &Path, owner: &Owner) -> Result<Vec<PathBuf>, WorkspaceError> {
    let mut swept = Vec::new();
    for source in entries(workspaces)? {
        // Another user's, who shares the folder of all.
        if is_closed(&source) {
            continue;
        }
        for folder in entries(&source)? {
            if owner.has_begun(&folder) {
                remove(&folder)?;
                swept.push(folder);
            }
        }
    }
    Ok(swept)
}

/// Returns the folders in a folder; none where there is no such folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, WorkspaceError> {
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
fn is_closed(folder: &Path) -> bool {
    fs::read_dir(folder).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

impl Making<'_> {
    fn make(&self) -> Result<Made, WorkspaceError> {
        let Order { source, place, base, .. } = self.order;
        self.reach(Progress::Repository)?;
        let replica = Replica::begin(source, &self.folder, place)?;
        replica.settings()?;
        let objects = replica.objects(base)?;
        self.reach(Progress::Repository)?;
        replica.references()?;
        let objects = objects + replica.large_files()?;
        self.reach(Progress::Files)?;
        replica.check_out(base)?;
        let laid =
            tempfile::tempdir_in(self.folder.join(".git")).map_err(WorkspaceError::io("making", &self.folder))?;
        let mut warnings = replica.submodules(base, laid.path())?;
        laid.close().map_err(WorkspaceError::io("removing", &self.folder))?;
        let copied = copy::copy(self)?;
        warnings.extend(copied.warnings());
        self.reach(Progress::Flushing)?;
        durable::sync_everything(&self.folder)?;
        self.name()?;
        Ok(Made { copied, objects, warnings })
    }

    /// Tells how far it is; fails if it is to be stopped there.
    fn reach(&self, progress: Progress) -> Result<(), WorkspaceError> {
        if self.stop.is_cancelled() {
            return Err(WorkspaceError::Stopped);
        }
        (self.progress)(progress);
        Ok(())
    }

    /// Gives it its name, durably.
    fn name(&self) -> Result<(), WorkspaceError> {
        let place = self.order.place;
        fs::rename(&self.folder, place).map_err(WorkspaceError::io("naming", place))?;
        let parent = place.parent().unwrap_or(Path::new("/"));
        let flushed = fs::File::open(parent).and_then(|folder| folder.sync_all());
        flushed.map_err(WorkspaceError::io("flushing", parent))
    }
}

#[cfg(test)]
mod tests;
