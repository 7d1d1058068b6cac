//! Saves what is about to be restored in the iteration's record, so that nothing a process has written is lost.
//!
//! The folder is where agents can write, so anything planted in its place is removed, not followed.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use runner_os::dir_permissions;

use crate::repo::durable::{self, FileAccess};
use crate::worker::cleanup;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::path_content::{PathContent, is_absent, read_content};
use crate::worker::record;

/// Mode of a file in a record.
const PRIVATE_MODE: u32 = 0o600;

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

    /// Moves in a file of git's folder: of one on another file system a copy, up to a length, and of anything else a note.
    pub(crate) fn move_git_file(&self, path: &str, file: &Path) -> Result<(), EffectError> {
        let found = match fs::symlink_metadata(file) {
            Ok(found) => found,
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => return Err(EffectError::io_error("looking at", file)(error)),
        };
        if found.is_symlink() {
            let target = fs::read_link(file).map_err(EffectError::io_error("reading", file))?;
            return self.save(path, &[b"symbolic link to ", target.as_os_str().as_bytes(), b"\n"].concat());
        }
        if !found.is_file() {
            return self.save(path, b"no file\n");
        }
        let target = self.create_path(path)?;
        match dir_permissions::rename(file, &target) {
            Err(error) if error.kind() == ErrorKind::CrossesDevices => {
                let PathContent::File(bytes) = read_content(file)? else {
                    self.save(path, b"a large file\n")?;
                    return cleanup::remove_path(file);
                };
                self.save(path, &bytes)?;
                cleanup::remove_path(file)
            }
            // With another name, it is also somebody else's file.
            Ok(()) if found.nlink() == 1 => {
                let set = fs::set_permissions(&target, fs::Permissions::from_mode(PRIVATE_MODE));
                set.map_err(EffectError::io_error("protecting", &target))
            }
            moved => moved.map_err(EffectError::io_error("moving", file)),
        }
    }

    fn create_path(&self, path: &str) -> Result<PathBuf, EffectError> {
        let record = self.folder.parent().unwrap_or(&self.folder);
        record::create_record_dir(self.context, record)?;
        if fs::symlink_metadata(&self.folder).is_ok_and(|found| !found.is_dir()) {
            cleanup::remove_path(&self.folder)?;
        }
        durable::create_dir(&self.folder, FileAccess::Private)?;
        let target = self.folder.join(path.replace('/', "__"));
        cleanup::clear_path_for_file(&target)?;
        Ok(target)
    }
}
