//! Opens settings files that a program obeys, only if no one else can have written them.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::{getegid, geteuid};

use crate::shell::quote_path;

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsFileError {
    /// The file could not be opened.
    #[error(transparent)]
    Open(#[from] io::Error),
    /// The file belongs to someone else.
    #[error("{} belongs to user {owner}, who could write anything there; make it yours: chown {} {}",
        path.display(), geteuid(), quote_path(path))]
    Owner {
        /// The file.
        path: PathBuf,
        /// The owner's user id.
        owner: u32,
    },
    /// Others can write the file.
    #[error("{} can be written by others than its owner; take that away: chmod go-w {}", path.display(), quote_path(path))]
    Writable {
        /// The file.
        path: PathBuf,
    },
}

/// Opens a settings file that belongs to this user or to root, and that no one else can write. The user's own group may
/// have write permission: on systems where each user has one, files are created that way.
pub fn open_settings(path: &Path) -> Result<File, SettingsFileError> {
    // Opening a pipe would wait for a writer.
    if fs::metadata(path)?.file_type().is_fifo() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe").into());
    }
    let file = File::open(path)?;
    check_owner(path, &file.metadata()?)?;
    Ok(file)
}

fn check_owner(path: &Path, found: &Metadata) -> Result<(), SettingsFileError> {
    let path = path.to_owned();
    let user = geteuid().as_raw();
    if ![0, user].contains(&found.uid()) {
        return Err(SettingsFileError::Owner { path, owner: found.uid() });
    }
    let writable_by_others = if found.gid() == getegid().as_raw() { 0o002 } else { 0o022 };
    if found.is_file() && found.mode() & writable_by_others != 0 {
        return Err(SettingsFileError::Writable { path });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown};

    use super::*;

    #[test]
    fn settings_that_others_can_write_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, "").unwrap();
        for (mode, is_obeyed) in [(0o600, true), (0o644, true), (0o664, true), (0o606, false)] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let refused = open_settings(&path).err().map(|error| error.to_string());
            let expected =
                format!("{0} can be written by others than its owner; take that away: chmod go-w {0}", path.display());
            assert_eq!(refused, (!is_obeyed).then_some(expected), "{mode:o}");
        }
    }

    #[test]
    fn settings_of_another_user_are_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // Only root can change a file's owner; for other users, a readable file of root takes its place.
        let path = if chown(file.path(), Some(4711), None).is_ok() { file.path() } else { Path::new("/etc/passwd") };
        let owner = path.metadata().unwrap().uid();
        let refused = open_settings(path).err().map(|error| error.to_string());
        let expected = format!(
            "{0} belongs to user 4711, who could write anything there; make it yours: chown {1} {0}",
            path.display(),
            geteuid().as_raw()
        );
        assert_eq!(refused, (owner == 4711).then_some(expected));
    }
}
