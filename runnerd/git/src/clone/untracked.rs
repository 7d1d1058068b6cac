//! Files in the work tree that the captured rules of a repository ignore, and other uncommitted files. Changes nothing.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::repository::program::GitCommand;
use crate::{GitError, Repository};

impl Repository {
    /// Returns the ignored paths relative to the work tree: files, and folders that contain nothing else, which end in
    /// a slash.
    pub fn list_ignored(&self) -> Result<Vec<Vec<u8>>, GitError> {
        self.list_others(&["--ignored", "--exclude-standard"])
    }

    /// Returns everything uncommitted in the work tree, ignored or not, in the same form.
    pub fn list_uncommitted_paths(&self) -> Result<Vec<Vec<u8>>, GitError> {
        self.list_others(&[])
    }

    /// Returns every uncommitted file of the work tree. Follows no links.
    pub fn list_uncommitted_files(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let mut files = Vec::new();
        for name in self.list_uncommitted_paths()? {
            if name.ends_with(b"/") {
                files.extend(self.list_files_below(&name)?);
            } else {
                files.push(name);
            }
        }
        Ok(files)
    }

    /// Returns the files in a folder of such a list, including a nested repository; files removed meanwhile are left
    /// out.
    pub fn list_files_below(&self, folder: &[u8]) -> Result<Vec<Vec<u8>>, GitError> {
        let mut files = Vec::new();
        let mut pending = vec![folder.strip_suffix(b"/").unwrap_or(folder).to_vec()];
        while let Some(folder) = pending.pop() {
            let path = self.absolute_path(&folder);
            let listed = match fs::read_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                listed => listed.map_err(GitError::io("listing", &path))?,
            };
            for entry in listed {
                let entry = entry.map_err(GitError::io("listing", &path))?;
                let name = [folder.as_slice(), b"/", entry.file_name().as_bytes()].concat();
                let is_folder = entry.file_type().map_err(GitError::io("looking at", &entry.path()))?.is_dir();
                if is_folder { pending.push(name) } else { files.push(name) }
            }
        }
        Ok(files)
    }

    fn list_others(&self, args: &[&str]) -> Result<Vec<Vec<u8>>, GitError> {
        let listed = GitCommand::new(self, "ls-files").args(["--others", "--directory", "-z"]).args(args).run()?;
        Ok(listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Returns the location on disk of a path in such a list.
    pub fn entry_path(&self, name: &[u8]) -> PathBuf {
        self.absolute_path(name)
    }
}
