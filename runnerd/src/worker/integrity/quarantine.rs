//! Where an iteration's record keeps what was put back: nothing that a process has written is lost by it.
//!
//! The folder lies where agents write, so what one has put in its place is removed, not followed.

use std::path::{Path, PathBuf};

use crate::folders;
use crate::repo::durable::{self, Access};
use crate::worker::clear;
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::record;

/// The folder `reverted/` of one iteration's record.
#[derive(Debug)]
pub(crate) struct Quarantine<'a> {
    context: &'a RunContext,
    folder: PathBuf,
}

impl<'a> Quarantine<'a> {
    /// Names the folder; it is made with the first that is kept.
    pub(crate) fn of(context: &'a RunContext, iter: u32) -> Self {
        Self { context, folder: context.layout.iteration(&context.run, iter).join("reverted") }
    }

    /// Keeps bytes that were found at `path`, which is relative.
    pub(crate) fn keep(&self, path: &str, bytes: &[u8]) -> Result<(), Obstacle> {
        Ok(durable::replace(&self.place(path)?, bytes, Access::Private)?)
    }

    /// Moves a file here that is too large to be copied: a copy would take the disk that a hole in it does not.
    pub(crate) fn take(&self, path: &str, file: &Path) -> Result<(), Obstacle> {
        folders::rename(file, &self.place(path)?).map_err(Obstacle::system("moving", file))
    }

    fn place(&self, path: &str) -> Result<PathBuf, Obstacle> {
        let record = self.folder.parent().unwrap_or(&self.folder);
        record::make_folder(self.context, record)?;
        if std::fs::symlink_metadata(&self.folder).is_ok_and(|found| !found.is_dir()) {
            clear::remove(&self.folder)?;
        }
        durable::create_dir(&self.folder, Access::Private)?;
        let place = self.folder.join(path.replace('/', "__"));
        clear::clear_for_file(&place)?;
        Ok(place)
    }
}
