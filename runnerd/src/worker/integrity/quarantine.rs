//! Where an iteration's record keeps what was put back: nothing that a process has written is lost by it.
//!
//! The folder lies where agents write, so what one has put in its place is removed, not followed.

use std::path::{Path, PathBuf};

use crate::folders;
use crate::repo::durable::{self, FileAccess};
use crate::worker::clear;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::record;

/// The folder `reverted/` of one iteration's record.
#[derive(Debug)]
pub(crate) struct Quarantine<'a> {
    context: &'a RunContext,
    folder: PathBuf,
}

impl<'a> Quarantine<'a> {
    /// Names the folder; it is made with the first that is kept.
    pub(crate) fn for_iteration(context: &'a RunContext, iter: u32) -> Self {
        Self { context, folder: context.layout.iteration(&context.run, iter).join("reverted") }
    }

    /// Keeps bytes that were found at `path`, which is relative.
    pub(crate) fn save(&self, path: &str, bytes: &[u8]) -> Result<(), EffectError> {
        Ok(durable::replace(&self.create_path(path)?, bytes, FileAccess::Private)?)
    }

    /// Moves a file here that is too large to be copied: a copy would take the disk that a hole in it does not.
    pub(crate) fn move_file(&self, path: &str, file: &Path) -> Result<(), EffectError> {
        folders::rename(file, &self.create_path(path)?).map_err(EffectError::io_error("moving", file))
    }

    fn create_path(&self, path: &str) -> Result<PathBuf, EffectError> {
        let record = self.folder.parent().unwrap_or(&self.folder);
        record::create_record_dir(self.context, record)?;
        if std::fs::symlink_metadata(&self.folder).is_ok_and(|found| !found.is_dir()) {
            clear::remove_path(&self.folder)?;
        }
        durable::create_dir(&self.folder, FileAccess::Private)?;
        let target = self.folder.join(path.replace('/', "__"));
        clear::clear_path_for_file(&target)?;
        Ok(target)
    }
}
