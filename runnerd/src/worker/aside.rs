//! Where an iteration's record keeps what was put back: nothing that a process has written is lost by it.
//!
//! The folder lies where agents write, so what one has put in its place is removed, not followed.

use std::path::{Path, PathBuf};

use super::mischief;
use super::record;
use super::site::{Obstacle, Site};
use crate::repo::durable::{self, Access};

/// The folder `reverted/` of one iteration's record.
#[derive(Debug)]
pub(super) struct Aside<'a> {
    site: &'a Site,
    folder: PathBuf,
}

impl<'a> Aside<'a> {
    /// Names the folder; it is made with the first that is kept.
    pub(super) fn of(site: &'a Site, iter: u32) -> Self {
        Self { site, folder: site.layout.iteration(&site.run, iter).join("reverted") }
    }

    /// Keeps bytes that were found at `path`, which is relative.
    pub(super) fn keep(&self, path: &str, bytes: &[u8]) -> Result<(), Obstacle> {
        Ok(durable::replace(&self.place(path)?, bytes, Access::Private)?)
    }

    /// Moves a file here that is too large to be copied: a copy would take the disk that a hole in it does not.
    pub(super) fn take(&self, path: &str, file: &Path) -> Result<(), Obstacle> {
        std::fs::rename(file, self.place(path)?).map_err(Obstacle::system("moving", file))
    }

    fn place(&self, path: &str) -> Result<PathBuf, Obstacle> {
        let record = self.folder.parent().unwrap_or(&self.folder);
        record::make_folder(self.site, record)?;
        if std::fs::symlink_metadata(&self.folder).is_ok_and(|found| !found.is_dir()) {
            mischief::remove(&self.folder)?;
        }
        durable::create_dir(&self.folder, Access::Private)?;
        let place = self.folder.join(path.replace('/', "__"));
        mischief::clear_for_file(&place)?;
        Ok(place)
    }
}
