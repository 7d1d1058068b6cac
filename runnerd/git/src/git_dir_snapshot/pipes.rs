//! Pipes, sockets and devices in places where git reads a file: git would wait forever for a writer. They hold no
//! bytes, so removing one loses nothing.

use std::fs::{self, FileType};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, ByteSlice as _};
use runner_core::files::layout::ITERATIONS;
use runner_os::dir_permissions::OpenedDirs;

use crate::fs_clock::{FsClock, has_no_subdirs};
use crate::path::display_path;
use crate::{ChangeKind, GitDirSnapshot, GitError, Repository, WorktreeChange};

/// Files of the work tree that git reads on its own.
const RULE_FILES: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];
/// Folders nested deeper are not searched.
const MAX_DEPTH: usize = 512;

impl Repository {
    /// Removes what git would wait for, in its own folder and among the rules files in the work tree; returns the
    /// paths.
    ///
    /// What was there `before` is not the session's: folders without new entries are not listed.
    pub fn remove_pipes(&self, before: &GitDirSnapshot) -> Result<Vec<String>, GitError> {
        let pipes = self.find_blocking_files(before.clock());
        self.remove_files(&pipes)?;
        Ok(pipes.iter().map(|pipe| self.display_git_path(pipe)).collect())
    }

    /// Removes pipes, sockets and devices at paths of HEAD and at those of `others`: git cannot store them, and reading one
    /// would block. Returns whether there were any.
    pub fn remove_pipes_among<'a>(
        &self,
        changes: &'a [WorktreeChange],
        others: impl Iterator<Item = &'a str>,
    ) -> Result<bool, GitError> {
        let of_head = changes.iter().filter(|entry| !matches!(entry.kind, ChangeKind::Untracked | ChangeKind::Added));
        let names = of_head.map(|change| change.path.as_bstr()).chain(others.map(BStr::new));
        let paths = names.map(|name| self.absolute_path(name));
        let is_pipe = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| is_blocking(found.file_type()));
        let pipes: Vec<PathBuf> = paths.filter(is_pipe).collect();
        self.remove_files(&pipes)?;
        Ok(!pipes.is_empty())
    }

    fn remove_files(&self, pipes: &[PathBuf]) -> Result<(), GitError> {
        // git's own folders are already open: their permissions are restored before anything else.
        let in_tree = pipes.iter().filter_map(|pipe| pipe.strip_prefix(&self.work_dir).ok());
        let _open = OpenedDirs::open_parents(&self.work_dir, in_tree);
        pipes.iter().try_for_each(|pipe| fs::remove_file(pipe).map_err(GitError::io("removing", pipe)))
    }

    /// Returns the paths of pipes that git would read, and of links to pipes.
    ///
    /// A socket or a device is a person's own affair: git itself has a socket in its folder.
    pub fn find_pipes(&self) -> Vec<PathBuf> {
        let is_pipe = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
        self.find_blocking_files(None).into_iter().filter(is_pipe).collect()
    }

    fn find_blocking_files(&self, since: Option<&FsClock>) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let own = Some(&self.git_dir).filter(|folder| !folder.starts_with(&self.common_dir));
        let folders: Vec<&PathBuf> = own.into_iter().chain([&self.common_dir]).collect();
        for folder in &folders {
            visit_special_files(folder, since, |_| false, &mut |path, kind| {
                if is_blocking(kind) {
                    found.push(path);
                }
            });
        }
        // Git never enters the records, which grow with each iteration.
        let records = self.work_dir.join(ITERATIONS);
        let is_visited = |folder: &PathBuf| folders.contains(&folder) || *folder == records;
        visit_special_files(&self.work_dir, since, is_visited, &mut |path, kind| {
            let is_read = is_rules_file(&path) || path.components().any(|part| part.as_os_str() == ".git");
            if is_read && (is_blocking(kind) || kind.is_symlink() && links_to_blocking(&path)) {
                found.push(path);
            }
        });
        found
    }

    /// Returns the name in receipts of a path in git's folder or the work tree.
    pub fn display_git_path(&self, path: &Path) -> String {
        let name = match path.strip_prefix(&self.common_dir) {
            Ok(inside) => Path::new(".git").join(inside),
            Err(_) => path.strip_prefix(&self.work_dir).unwrap_or(path).to_owned(),
        };
        display_path(name.as_os_str().as_bytes())
    }
}

/// A folder still to be listed.
struct PendingDir {
    path: PathBuf,
    depth: usize,
    /// Whether its contents may have been moved in with it.
    may_be_moved_in: bool,
}

/// Visits everything below a folder that is neither a file nor a folder and may have appeared since a moment, without
/// following links. Skips the contents of folders for which `is_visited` returns true.
fn visit_special_files(
    root: &Path,
    moment: Option<&FsClock>,
    is_visited: impl Fn(&PathBuf) -> bool,
    visit: &mut impl FnMut(PathBuf, FileType),
) {
    let found = root.symlink_metadata().ok();
    let known =
        found.is_some_and(|found| moment.is_some_and(|moment| moment.is_unchanged(&found) || moment.knew_dir(&found)));
    let mut pending = vec![PendingDir { path: root.to_owned(), depth: 0, may_be_moved_in: !known }];
    while let Some(PendingDir { path: folder, depth, may_be_moved_in }) = pending.pop() {
        // A folder we cannot list is no more readable for git.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            // Most entries are files: skip them without building a path.
            let Some(kind) = entry.file_type().ok().filter(|kind| !kind.is_file()) else { continue };
            if !kind.is_dir() {
                visit(entry.path(), kind);
                continue;
            }
            let Some(found) = entry.metadata().ok().filter(|_| depth < MAX_DEPTH) else { continue };
            let is_unchanged = !may_be_moved_in && moment.is_some_and(|moment| moment.is_unchanged(&found));
            let path = entry.path();
            if is_unchanged && has_no_subdirs(&found) || is_visited(&path) {
                continue;
            }
            let may_be_moved_in = !is_unchanged && !moment.is_some_and(|moment| moment.knew_dir(&found));
            pending.push(PendingDir { path, depth: depth + 1, may_be_moved_in });
        }
    }
}

fn is_blocking(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device()
}

fn links_to_blocking(link: &Path) -> bool {
    fs::metadata(link).is_ok_and(|found| is_blocking(found.file_type()))
}

fn is_rules_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| RULE_FILES.iter().any(|rule| name == *rule))
}
