//! Pipes, sockets and devices where git reads a file: it would wait for ever for somebody to write. They hold no bytes, so
//! removing one loses nothing.

use std::fs::{self, FileType};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice as _;

use crate::folders::Opened;
use crate::git::moment::{Moment, has_no_folders};
use crate::git::path::display;
use crate::git::{Change, ChangeKind, Fingerprint, GitError, Repository};

/// Files of the work tree that git reads without being asked to.
const RULES: [&str; 3] = [".gitignore", ".gitattributes", ".gitmodules"];
/// Folders deeper than this are not looked into.
const DEEPEST: usize = 512;

impl Repository {
    /// Removes what git would wait for, in its own folder and among the rules in the work tree; returns the paths.
    ///
    /// What was there `before` is not the session's: folders that nothing came into since are not listed.
    pub fn remove_pipes(&self, before: &Fingerprint) -> Result<Vec<String>, GitError> {
        let pipes = self.pipes(before.moment());
        self.remove_all(&pipes)?;
        Ok(pipes.iter().map(|pipe| self.name_of(pipe)).collect())
    }

    /// Removes pipes, sockets and devices that stand where HEAD has something: git cannot store them, and whoever reads the
    /// file would wait. Tells whether there were any.
    pub fn remove_pipes_among(&self, changes: &[Change]) -> Result<bool, GitError> {
        let of_head = changes.iter().filter(|it| !matches!(it.kind, ChangeKind::Untracked | ChangeKind::Added));
        let paths = of_head.map(|change| self.file(change.path.as_bstr()));
        let is_pipe = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| is_endless(found.file_type()));
        let pipes: Vec<PathBuf> = paths.filter(is_pipe).collect();
        self.remove_all(&pipes)?;
        Ok(!pipes.is_empty())
    }

    fn remove_all(&self, pipes: &[PathBuf]) -> Result<(), GitError> {
        // Folders of git's own are open: they are given back first of all.
        let in_tree = pipes.iter().filter_map(|pipe| pipe.strip_prefix(&self.work_dir).ok());
        let _open = Opened::ways(&self.work_dir, in_tree);
        pipes.iter().try_for_each(|pipe| fs::remove_file(pipe).map_err(GitError::io("removing", pipe)))
    }

    /// Returns the paths of the pipes that git would read, and of links to such.
    ///
    /// A socket or a device is a person's own affair: git has a socket in its folder itself.
    pub fn find_pipes(&self) -> Vec<PathBuf> {
        let is_pipe = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
        self.pipes(None).into_iter().filter(is_pipe).collect()
    }

    fn pipes(&self, since: Option<&Moment>) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let own = Some(&self.git_dir).filter(|folder| !folder.starts_with(&self.common_dir));
        let folders: Vec<&PathBuf> = own.into_iter().chain([&self.common_dir]).collect();
        for folder in &folders {
            walk(folder, since, |_| false, &mut |path, kind| {
                if is_endless(kind) {
                    found.push(path);
                }
            });
        }
        walk(&self.work_dir, since, |folder| folders.contains(&folder), &mut |path, kind| {
            let is_read = is_rule(&path) || path.components().any(|part| part.as_os_str() == ".git");
            if is_read && (is_endless(kind) || kind.is_symlink() && leads_to_endless(&path)) {
                found.push(path);
            }
        });
        found
    }

    /// Returns what a path in git's folder or the work tree is called in receipts.
    pub fn name_of(&self, path: &Path) -> String {
        let name = match path.strip_prefix(&self.common_dir) {
            Ok(inside) => Path::new(".git").join(inside),
            Err(_) => path.strip_prefix(&self.work_dir).unwrap_or(path).to_owned(),
        };
        display(name.as_os_str().as_bytes())
    }
}

/// A folder that is still to be listed.
struct Ahead {
    path: PathBuf,
    depth: usize,
    /// Whether what is in it may have been brought with it.
    may_be_brought: bool,
}

/// Visits what is neither a file nor a folder and may have come since a moment below a folder, links not followed.
/// What is below a folder that `is_seen` is left out.
fn walk(
    root: &Path,
    moment: Option<&Moment>,
    is_seen: impl Fn(&PathBuf) -> bool,
    visit: &mut impl FnMut(PathBuf, FileType),
) {
    let found = root.symlink_metadata().ok();
    let known = found.is_some_and(|found| moment.is_some_and(|moment| moment.is_after(&found) || moment.knows(&found)));
    let mut ahead = vec![Ahead { path: root.to_owned(), depth: 0, may_be_brought: !known }];
    while let Some(Ahead { path: folder, depth, may_be_brought }) = ahead.pop() {
        // A folder that cannot be listed is no more readable for git.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            // Most are files: they are passed by without so much as their path.
            let Some(kind) = entry.file_type().ok().filter(|kind| !kind.is_file()) else { continue };
            if !kind.is_dir() {
                visit(entry.path(), kind);
                continue;
            }
            let Some(found) = entry.metadata().ok().filter(|_| depth < DEEPEST) else { continue };
            let is_as_it_was = !may_be_brought && moment.is_some_and(|moment| moment.is_after(&found));
            let path = entry.path();
            if is_as_it_was && has_no_folders(&found) || is_seen(&path) {
                continue;
            }
            let may_be_brought = !is_as_it_was && !moment.is_some_and(|moment| moment.knows(&found));
            ahead.push(Ahead { path, depth: depth + 1, may_be_brought });
        }
    }
}

fn is_endless(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device()
}

fn leads_to_endless(link: &Path) -> bool {
    fs::metadata(link).is_ok_and(|found| is_endless(found.file_type()))
}

fn is_rule(path: &Path) -> bool {
    path.file_name().is_some_and(|name| RULES.iter().any(|rule| name == *rule))
}
