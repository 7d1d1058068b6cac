//! `[workspace] copy`: files that the source's rules ignore, such as `.env` or `node_modules`, copied into a workspace.
//!
//! A folder that a pattern takes is copied with all that is in it, less what a later pattern takes out. Links stay as they
//! are; those that lead out of the workspace are named. What the base has is not written over, and nothing is written
//! through a link. A `.git` that is a file or a link would lead to another git folder: it is left out.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use super::{Making, Progress, WorkspaceError};
use crate::file_copy;
use crate::repo::layout::Layout;

/// Most files that are copied.
const MAX_FILES: u64 = 2_000_000;
/// Folders in each other that are looked into.
const DEEPEST: usize = 200;
/// Names of each kind that are kept to be shown.
const MAX_NAMED: usize = 20;
/// Files between two words of how far it is.
const FILES_PER_WORD: u64 = 1000;

/// What was copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// Files and links.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Links that lead out of the workspace, each with its target.
    pub outward: Named,
    /// What a pattern names and is not copied, each with the reason.
    pub left_out: Named,
}

/// Some names, and how many there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// The first of them.
    pub first: Vec<String>,
    /// All of them.
    pub count: u64,
}

impl Named {
    fn add(&mut self, name: String) {
        self.count += 1;
        if self.first.len() < MAX_NAMED {
            self.first.push(name);
        }
    }

    fn sentence(&self, what: &str) -> Option<String> {
        let more = self.count.saturating_sub(self.first.len() as u64);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        (self.count > 0).then(|| format!("{what}: {}{more}", self.first.join(", ")))
    }
}

impl Copied {
    /// Says what a person should know of it.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let outward = self.outward.sentence("copied links that lead out of the workspace, to what is shared");
        let left_out = self.left_out.sentence("not copied");
        outward.into_iter().chain(left_out)
    }
}

/// Copies what the patterns name, once it is known how much that is.
pub(super) fn copy(making: &Making<'_>) -> Result<Copied, WorkspaceError> {
    if making.order.copy.as_slice().is_empty() {
        return Ok(Copied::default());
    }
    let ignored = making.order.source.ignored()?;
    let counted = Copying::new(making, None).take_all(&ignored)?;
    Copying::new(making, Some(counted.files)).take_all(&ignored)
}

/// A walk through what the patterns name.
struct Copying<'a> {
    making: &'a Making<'a>,
    /// How many files there are to copy; none while that is being counted, and nothing is copied.
    total: Option<u64>,
    done: Copied,
    /// The folder that was made last, or found to be there.
    last_made: PathBuf,
}

impl<'a> Copying<'a> {
    fn new(making: &'a Making<'a>, total: Option<u64>) -> Self {
        Self { making, total, done: Copied::default(), last_made: PathBuf::new() }
    }

    fn take_all(mut self, ignored: &[Vec<u8>]) -> Result<Copied, WorkspaceError> {
        self.tell()?;
        for name in ignored {
            let path = Path::new(OsStr::from_bytes(name.strip_suffix(b"/").unwrap_or(name)));
            if !path.starts_with(Layout::FOLDER) {
                self.take_at_root(path)?;
            }
        }
        self.tell()?;
        Ok(self.done)
    }

    fn tell(&self) -> Result<(), WorkspaceError> {
        let files = self.done.files;
        self.making.reach(match self.total {
            None => Progress::Counting { files },
            Some(total) => Progress::Copying { files, total },
        })
    }

    fn old(&self, path: &Path) -> PathBuf {
        self.making.order.source.work_dir().join(path)
    }

    fn target(&self, path: &Path) -> PathBuf {
        self.making.folder.join(path)
    }

    /// Takes what a path names: a file or folder whose own name, or that of a folder around it, is matched.
    fn take_at_root(&mut self, path: &Path) -> Result<(), WorkspaceError> {
        let around = path.ancestors().skip(1).filter(|folder| *folder != Path::new(""));
        let mut around = around;
        let taken = around.find_map(|folder| self.verdict(folder)).unwrap_or(false);
        self.take(path, taken, 0)
    }

    fn verdict(&self, path: &Path) -> Option<bool> {
        self.making.order.copy.verdict_on_path(&path.to_string_lossy())
    }

    fn take(&mut self, path: &Path, taken_around: bool, depth: usize) -> Result<(), WorkspaceError> {
        let old = self.old(path);
        let found = match old.symlink_metadata() {
            // It is no more: somebody works there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.map_err(WorkspaceError::io("looking at", &old))?,
        };
        let is_taken = self.verdict(path).unwrap_or(taken_around);
        let is_git = path.file_name() == Some(OsStr::new(".git"));
        if found.is_dir() {
            return self.take_folder(path, is_taken, depth);
        }
        if !is_taken {
            return Ok(());
        }
        if is_git {
            self.leave_out(path, "it names another git folder");
        } else if self.total.is_none() && (found.is_symlink() || found.is_file()) {
            self.count()?;
        } else if found.is_symlink() {
            self.copy_link(path)?;
        } else if found.is_file() {
            self.copy_file(path)?;
        } else {
            self.leave_out(path, "it is no file");
        }
        Ok(())
    }

    fn take_folder(&mut self, path: &Path, is_taken: bool, depth: usize) -> Result<(), WorkspaceError> {
        let (old, new) = (self.old(path), self.target(path));
        if old == self.making.folder {
            return Ok(());
        }
        if depth >= DEEPEST {
            self.leave_out(path, "it is too deep");
            return Ok(());
        }
        let listed = match fs::read_dir(&old) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // A folder of somebody else's, such as a container's data, is no reason to begin no run.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                if is_taken {
                    self.leave_out(path, "it may not be read");
                }
                return Ok(());
            }
            listed => listed.map_err(WorkspaceError::io("listing", &old))?,
        };
        let is_made = is_taken && self.total.is_some();
        if is_made && !self.make_folder(path)? {
            return Ok(());
        }
        for entry in listed {
            let entry = entry.map_err(WorkspaceError::io("listing", &old))?;
            self.take(&path.join(entry.file_name()), is_taken, depth + 1)?;
        }
        if is_made && let Ok(found) = old.metadata() {
            // Last: in a folder that nobody may write to, nothing could be put.
            let mode = found.permissions().mode() & 0o777;
            fs::set_permissions(&new, Permissions::from_mode(mode)).map_err(WorkspaceError::io("copying", &old))?;
        }
        Ok(())
    }

    fn copy_file(&mut self, path: &Path) -> Result<(), WorkspaceError> {
        if self.make_around(path)? {
            let (old, new) = (self.old(path), self.target(path));
            match file_copy::copy(&old, &new) {
                Ok(bytes) => self.done.bytes += bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.leave_out(path, "the base has it");
                    return Ok(());
                }
                Err(error) => return Err(WorkspaceError::io("copying", &old)(error)),
            }
            self.count()?;
        }
        Ok(())
    }

    fn copy_link(&mut self, path: &Path) -> Result<(), WorkspaceError> {
        if !self.make_around(path)? {
            return Ok(());
        }
        let (old, new) = (self.old(path), self.target(path));
        let target = fs::read_link(&old).map_err(WorkspaceError::io("reading the link", &old))?;
        match symlink(&target, &new) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.leave_out(path, "the base has it");
                return Ok(());
            }
            made => made.map_err(WorkspaceError::io("linking", &new))?,
        }
        if leads_out(path, &target) {
            self.done.outward.add(format!("{} → {}", path.display(), target.display()));
        }
        self.count()
    }

    fn count(&mut self) -> Result<(), WorkspaceError> {
        self.done.files += 1;
        if self.done.files > MAX_FILES {
            let path = self.making.order.source.work_dir().to_owned();
            return Err(WorkspaceError::TooMuch { path, most: MAX_FILES });
        }
        if self.done.files.is_multiple_of(FILES_PER_WORD) { self.tell() } else { Ok(()) }
    }

    fn leave_out(&mut self, path: &Path, why: &str) {
        self.done.left_out.add(format!("{} ({why})", path.display()));
    }

    /// Makes the folders around a path; false if something else stands in the place of one.
    fn make_around(&mut self, path: &Path) -> Result<bool, WorkspaceError> {
        match path.parent().filter(|folder| *folder != Path::new("")) {
            Some(folder) => self.make_folder(folder),
            None => Ok(true),
        }
    }

    /// Makes a folder and those around it; false if something else stands in the place of one, be it a link to a folder.
    fn make_folder(&mut self, path: &Path) -> Result<bool, WorkspaceError> {
        if self.last_made == path {
            return Ok(true);
        }
        let mut so_far = PathBuf::new();
        for name in path.components() {
            so_far.push(name);
            let new = self.target(&so_far);
            match new.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Ok(_) => {
                    self.leave_out(path, "the base has no folder there");
                    return Ok(false);
                }
                Err(_) => {
                    let rights = self.old(&so_far).metadata().map_or(0, |found| found.permissions().mode() & 0o777);
                    let made = DirBuilder::new().mode(rights | 0o700).create(&new);
                    made.map_err(WorkspaceError::io("making", &new))?;
                }
            }
        }
        path.clone_into(&mut self.last_made);
        Ok(true)
    }
}

/// Tells whether a link at a path below a root leads out of that, by its words alone.
fn leads_out(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::Prefix(_) | Component::RootDir => return true,
            Component::CurDir => {}
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_that_leads_out_is_told_from_one_that_does_not() {
        for (path, target) in [("a/b", "../../x"), ("a", "/x"), ("a/b", "../c/../../x"), ("a", "..")] {
            assert!(leads_out(Path::new(path), Path::new(target)), "{path} → {target}");
        }
        for (path, target) in [("a/b", "../x"), ("a", "x"), ("a/b/c", "../../x"), ("a/b", "."), ("a", "./b/../c")] {
            assert!(!leads_out(Path::new(path), Path::new(target)), "{path} → {target}");
        }
    }
}
