//! What the rules of a repository ignore in its work tree, as they were captured. Nothing is changed.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::git::repository::program::GitCommand;
use crate::git::{GitError, Repository};

impl Repository {
    /// Returns what is ignored in the work tree, by paths relative to it: files, and folders with nothing else in them,
    /// which end in a slash.
    pub fn list_ignored(&self) -> Result<Vec<Vec<u8>>, GitError> {
        self.list_others(&["--ignored", "--exclude-standard"])
    }

    /// Returns what no commit of the work tree has, ignored or not, in the same form.
    pub fn list_uncommitted_paths(&self) -> Result<Vec<Vec<u8>>, GitError> {
        self.list_others(&[])
    }

    /// Returns what no commit of the work tree has, file by file. No link is followed.
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

    /// Returns the files in a folder of such a list, a repository of its own included; what is gone meanwhile is not there.
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

    /// Returns where a path of such a list is.
    pub fn entry_path(&self, name: &[u8]) -> PathBuf {
        self.absolute_path(name)
    }
}
