//! Digests of the inputs of a result: texts, folders, programs.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use protocol::hex::to_hex;
use sha2::{Digest as _, Sha256};

use crate::error::EvalError;

/// A SHA-256 over named parts, each prefixed with its length, so that parts cannot be confused.
pub(crate) struct InputDigest(Sha256);

impl InputDigest {
    pub(crate) fn new() -> Self {
        Self(Sha256::new())
    }

    pub(crate) fn add(&mut self, name: &str, bytes: &[u8]) {
        self.0.update(format!("{}:{name}:{}:", name.len(), bytes.len()));
        self.0.update(bytes);
    }

    /// Adds every file of a folder, by path.
    pub(crate) fn add_folder(&mut self, folder: &Path) -> Result<(), EvalError> {
        for path in list_files(folder)? {
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            let read_error = |error: io::Error| EvalError::file("reading", &path, &error);
            if path.is_symlink() {
                let target = fs::read_link(&path).map_err(read_error)?;
                self.add(&format!("link {name}"), target.as_os_str().as_bytes());
            } else {
                self.add(&name, &fs::read(&path).map_err(read_error)?);
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> String {
        to_hex(&self.0.finalize())
    }
}

/// Returns the digest of a folder.
pub(crate) fn digest_folder(folder: &Path) -> Result<String, EvalError> {
    let mut digest = InputDigest::new();
    digest.add_folder(folder)?;
    Ok(digest.finish())
}

/// Returns the SHA-256 of a file's contents.
pub(crate) fn digest_file(path: &Path) -> Result<String, EvalError> {
    let read_error = |error: &io::Error| EvalError::file("reading", path, error);
    let mut hasher = Sha256::new();
    let mut file = File::open(path).map_err(|error| read_error(&error))?;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer).map_err(|error| read_error(&error))? {
            0 => break,
            length => hasher.update(&buffer[..length]),
        }
    }
    Ok(to_hex(&hasher.finalize()))
}

/// Returns the files and links below a folder, sorted by path; symbolic links are not followed.
pub(crate) fn list_files(folder: &Path) -> Result<Vec<PathBuf>, EvalError> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let read_error = |error: io::Error| EvalError::file("reading the directory", &folder, &error);
        for entry in fs::read_dir(&folder).map_err(read_error)? {
            let entry = entry.map_err(read_error)?;
            let kind = entry.file_type().map_err(read_error)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() || kind.is_symlink() {
                paths.push(entry.path());
            }
        }
    }
    paths.sort();
    Ok(paths)
}

/// Copies a file with its executable bit, or a symbolic link as such. The target must not exist.
pub(crate) fn copy_entry(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_symlink() {
        fs::read_link(from).and_then(|target| symlink(target, to))
    } else {
        fs::copy(from, to).map(drop)
    }
}
