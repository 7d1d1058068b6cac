//! Copies large files (`git lfs`), for which git has only pointers, into the store of another repository on this
//! machine. Runs no program and contacts no server.
//!
//! What a session has written to the store is not trusted: only a file whose content matches its name is copied.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::libc;
use runner_os::temp_file;
use sha2::{Digest as _, Sha256};

use crate::{GitError, Repository};

/// Path of the store in the git folder that work trees share.
const LFS_STORE: [&str; 2] = ["lfs", "objects"];
/// Digits of a file's name, and of each of the two folder names above it.
const DIGITS: usize = 64;
const FOLDER_DIGITS: usize = 2;
/// Size in bytes of the copy buffer.
const CHUNK_BYTES: usize = 64 * 1024;

impl Repository {
    /// Copies the large files that another repository lacks into its store, durably.
    pub fn send_large_files(&self, to: &Repository) -> Result<(), GitError> {
        let Some(from) = find_store(self.common_dir()) else { return Ok(()) };
        let temp_dir = to.common_dir().join(LFS_STORE[0]);
        let to = temp_dir.join(LFS_STORE[1]);
        for first in list_hash_names(&from, FOLDER_DIGITS)? {
            for second in list_hash_names(&from.join(&first), FOLDER_DIGITS)? {
                let subdir = Path::new(&first).join(&second);
                for name in list_hash_names(&from.join(&subdir), DIGITS)? {
                    let file = subdir.join(&name);
                    if name.starts_with(&format!("{first}{second}")) && to.join(&file).symlink_metadata().is_err() {
                        let [old, new] = [from.join(&file), to.join(&file)];
                        copy_large_file(&old, &new, &temp_dir).map_err(GitError::io("copying", &old))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the store of large files, if there is one; a link in its place does not count.
fn find_store(common_dir: &Path) -> Option<PathBuf> {
    let mut folder = common_dir.to_owned();
    for name in LFS_STORE {
        folder.push(name);
        if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return None;
        }
    }
    Some(folder)
}

/// Returns the entries of a folder whose names have this many digits; none if it is not a folder.
fn list_hash_names(folder: &Path, digits: usize) -> Result<Vec<String>, GitError> {
    if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(Vec::new());
    }
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let listed = fs::read_dir(folder).map_err(GitError::io("listing", folder))?;
    let names = listed.map(|entry| entry.map(|entry| entry.file_name().into_string().ok()));
    let names = names.collect::<io::Result<Vec<_>>>().map_err(GitError::io("listing", folder))?;
    Ok(names.into_iter().flatten().filter(|name| name.len() == digits && name.bytes().all(is_digit)).collect())
}

/// Copies a file named after its content, to `temp_dir` first, and flushes it and the folders that hold it; leaves a
/// file whose content does not match its name.
fn copy_large_file(old: &Path, new: &Path, temp_dir: &Path) -> io::Result<()> {
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(old) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Ok(()),
        file => file?,
    };
    let found = file.metadata()?;
    let Some(folder) = new.parent().filter(|_| found.is_file()) else { return Ok(()) };
    fs::create_dir_all(temp_dir)?;
    let mut copy = temp_file::create_in(temp_dir, new)?;
    let name = copy_hashed(&file, copy.as_file_mut())?;
    if new.file_name() != Some(OsStr::new(&name)) {
        tracing::warn!(file = %old.display(), "a large file is not published: its name does not match its content");
        return Ok(());
    }
    copy.as_file().set_permissions(Permissions::from_mode(found.permissions().mode() & 0o666))?;
    copy.as_file().sync_all()?;
    fs::create_dir_all(folder)?;
    copy.persist(new).map_err(|error| error.error)?;
    folder.ancestors().take(LFS_STORE.len() + 3).try_for_each(|folder| File::open(folder)?.sync_all())
}

/// Copies bytes and returns the name for a file with this content.
fn copy_hashed(mut from: impl Read, to: &mut impl Write) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match from.read(&mut chunk)? {
            0 => return Ok(protocol::hex::to_hex(&hasher.finalize())),
            length => {
                hasher.update(&chunk[..length]);
                to.write_all(&chunk[..length])?;
            }
        }
    }
}
