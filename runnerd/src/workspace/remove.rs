//! Removes a folder with all that is in it, though a program may have taken the right to write there away from its folders.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::WorkspaceError;

/// Removes a folder, if there is one. No link in it is followed.
pub fn remove(folder: &Path) -> Result<(), WorkspaceError> {
    let removed = match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(folder).and_then(|()| fs::remove_dir_all(folder))
        }
        removed => removed,
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(WorkspaceError::io("removing", folder)(error)),
        _ => Ok(()),
    }
}

/// Gives this user the right to list and change each folder.
fn open_up(folder: &Path) -> io::Result<()> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}
