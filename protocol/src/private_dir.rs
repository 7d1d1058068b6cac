//! Folders that belong only to one user, for the socket, the locks and the daemon's state.
//!
//! Only creates and checks folders; [`crate::paths`] says which ones exist.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Why a folder cannot be trusted with the socket or with state.
#[derive(Debug, thiserror::Error)]
pub enum PrivateDirError {
    /// It could not be created.
    #[error("cannot make the directory {path}")]
    Create {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Its metadata could not be read.
    #[error("cannot look at the directory {path}")]
    Inspect {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is something else than a folder; a symbolic link counts as something else.
    #[error("{path} is not a directory")]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// It belongs to another user.
    #[error("the directory {path} belongs to user {owner}, not to this user ({own})")]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
        /// User id of this process.
        own: u32,
    },
    /// Others may enter it.
    #[error(
        "the directory {path} is open to others (mode {mode:04o}): name one of its own, which is created with mode 0700; or, if nothing else is in it, `chmod 700` it"
    )]
    OpenToOthers {
        /// The folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

/// Creates a folder with mode 0700 if it is missing, including its parents, and checks that it is private.
///
/// # Errors
///
/// Fails if the folder cannot be created, belongs to someone else, is open to others or is not a folder.
pub fn create_private_dir(path: &Path) -> Result<(), PrivateDirError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| PrivateDirError::Create { path: path.to_owned(), source })?;
    check_private_dir(path)
}

/// Checks that a folder is a real one, belongs to this user, and is closed to everyone else.
///
/// # Errors
///
/// Fails if one of these does not hold.
pub fn check_private_dir(path: &Path) -> Result<(), PrivateDirError> {
    let metadata =
        fs::symlink_metadata(path).map_err(|source| PrivateDirError::Inspect { path: path.to_owned(), source })?;
    let own_uid = nix::unistd::getuid().as_raw();
    if !metadata.is_dir() {
        Err(PrivateDirError::NotADirectory { path: path.to_owned() })
    } else if metadata.uid() != own_uid {
        Err(PrivateDirError::Foreign { path: path.to_owned(), owner: metadata.uid(), own: own_uid })
    } else if mode_bits(&metadata) & 0o077 != 0 {
        Err(PrivateDirError::OpenToOthers { path: path.to_owned(), mode: mode_bits(&metadata) })
    } else {
        Ok(())
    }
}

fn mode_bits(metadata: &Metadata) -> u32 {
    metadata.mode() & 0o7777
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_missing_folder_is_made_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        create_private_dir(&path).unwrap();
        assert_eq!(mode_bits(&fs::metadata(&path).unwrap()), 0o700);
    }

    #[test]
    fn a_folder_open_to_others_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o750)).unwrap();
        let error = create_private_dir(dir.path()).unwrap_err();
        assert!(matches!(error, PrivateDirError::OpenToOthers { mode: 0o750, .. }), "{error}");
        assert!(error.to_string().contains("mode 0750"), "{error}");
    }

    #[test]
    fn a_symbolic_link_in_place_of_a_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        symlink(dir.path(), &link).unwrap();
        assert!(matches!(create_private_dir(&link).unwrap_err(), PrivateDirError::NotADirectory { .. }));
    }
}
