//! Saves what is about to be restored in the iteration's record, so that nothing a process has written is lost.
//!
//! The folder is where agents can write, so anything planted in its place is removed, not followed.

use std::path::{Path, PathBuf};

use runner_os::dir_permissions;

use crate::repo::durable::{self, FileAccess};
use crate::worker::cleanup;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::record;

/// The folder `reverted/` of one iteration's record.
#[derive(Debug)]
pub(crate) struct Quarantine<'a> {
    context: &'a RunContext,
    folder: PathBuf,
}

impl<'a> Quarantine<'a> {
    /// Names the folder, which is created with its first file.
    pub(crate) fn for_iteration(context: &'a RunContext, iter: u32) -> Self {
        Self { context, folder: context.layout.iteration(&context.run, iter).join("reverted") }
    }

    /// Saves bytes found at `path`, which is relative.
    pub(crate) fn save(&self, path: &str, bytes: &[u8]) -> Result<(), EffectError> {
        Ok(durable::replace(&self.create_path(path)?, bytes, FileAccess::Private)?)
    }

    /// Moves in a file that is too large to copy: a copy of a sparse file would need the disk space that its holes do
    /// not.
    pub(crate) fn move_file(&self, path: &str, file: &Path) -> Result<(), EffectError> {
        dir_permissions::rename(file, &self.create_path(path)?).map_err(EffectError::io_error("moving", file))
    }

    fn create_path(&self, path: &str) -> Result<PathBuf, EffectError> {
        let record = self.folder.parent().unwrap_or(&self.folder);
        record::create_record_dir(self.context, record)?;
        if std::fs::symlink_metadata(&self.folder).is_ok_and(|found| !found.is_dir()) {
            cleanup::remove_path(&self.folder)?;
        }
        durable::create_dir(&self.folder, FileAccess::Private)?;
        let target = self.folder.join(path.replace('/', "__"));
        cleanup::clear_path_for_file(&target)?;
        Ok(target)
    }
}
