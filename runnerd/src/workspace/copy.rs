//! `[workspace] copy`: copies files that the source's rules ignore, such as `.env` or `node_modules`, to a workspace.
//!
//! A folder that matches a pattern is copied with all its contents, except what a later pattern excludes. Links stay as
//! they are; those that lead out of the workspace are reported. Files of the base are not overwritten, and nothing is
//! written through a link. A `.git` that is a file or a link would lead to another git folder, so it is left out.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use runner_os::file_copy;

use super::{WorkspaceBuilder, WorkspaceError, WorkspaceProgress};
use crate::repo::layout::Layout;

/// Maximum number of files copied.
const MAX_FILES: u64 = 2_000_000;
/// Nesting depth up to which folders are searched.
const MAX_DEPTH: usize = 200;
/// Maximum number of names of each kind kept for display.
const MAX_NAMED: usize = 20;
/// Number of files between progress reports.
const FILES_PER_UPDATE: u64 = 1000;

/// Result of copying.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopiedFiles {
    /// Number of files and links.
    pub files: u64,
    /// Total size of the files in bytes.
    pub bytes: u64,
    /// Links that lead out of the workspace, each with its target.
    pub outward: NameList,
    /// Paths that match a pattern but are not copied, each with the reason.
    pub skipped: NameList,
}

/// The first few of a list of names, and its length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameList {
    /// The first names.
    pub first: Vec<String>,
    /// The total number.
    pub count: u64,
}

impl NameList {
    fn add(&mut self, name: String) {
        self.count += 1;
        if self.first.len() < MAX_NAMED {
            self.first.push(name);
        }
    }

    fn format_warning(&self, what: &str) -> Option<String> {
        let more = self.count.saturating_sub(self.first.len() as u64);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        (self.count > 0).then(|| format!("{what}: {}{more}", self.first.join(", ")))
    }
}

impl CopiedFiles {
    /// Returns what a person should know about it.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let outward = self.outward.format_warning("copied links that lead out of the workspace, to what is shared");
        let left_out = self.skipped.format_warning("not copied");
        outward.into_iter().chain(left_out)
    }
}

/// Copies the paths that match the patterns, after counting them.
pub(super) fn copy_ignored(builder: &WorkspaceBuilder<'_>) -> Result<CopiedFiles, WorkspaceError> {
    if builder.options.copy.as_slice().is_empty() {
        return Ok(CopiedFiles::default());
    }
    let ignored = builder.options.source.list_ignored()?;
    let counted = IgnoredCopy::new(builder, None).copy_all(&ignored)?;
    IgnoredCopy::new(builder, Some(counted.files)).copy_all(&ignored)
}

/// A walk through the paths that match the patterns.
struct IgnoredCopy<'a> {
    builder: &'a WorkspaceBuilder<'a>,
    /// Number of files to copy; `None` while they are being counted and nothing is copied.
    total: Option<u64>,
    report: CopiedFiles,
    /// The folder that was last created or found to exist.
    last_made: PathBuf,
}

impl<'a> IgnoredCopy<'a> {
    fn new(builder: &'a WorkspaceBuilder<'a>, total: Option<u64>) -> Self {
        Self { builder, total, report: CopiedFiles::default(), last_made: PathBuf::new() }
    }

    fn copy_all(mut self, ignored: &[Vec<u8>]) -> Result<CopiedFiles, WorkspaceError> {
        self.report_progress()?;
        for name in ignored {
            let path = Path::new(OsStr::from_bytes(name.strip_suffix(b"/").unwrap_or(name)));
            if !path.starts_with(Layout::FOLDER) {
                self.copy_listed(path)?;
            }
        }
        self.report_progress()?;
        Ok(self.report)
    }

    fn report_progress(&self) -> Result<(), WorkspaceError> {
        let files = self.report.files;
        self.builder.report(match self.total {
            None => WorkspaceProgress::Counting { files },
            Some(total) => WorkspaceProgress::Copying { files, total },
        })
    }

    fn source_path(&self, path: &Path) -> PathBuf {
        self.builder.options.source.work_dir().join(path)
    }

    fn target_path(&self, path: &Path) -> PathBuf {
        self.builder.folder.join(path)
    }

    /// Processes a path: a file or folder that a pattern matches by its own name or by that of a parent.
    fn copy_listed(&mut self, path: &Path) -> Result<(), WorkspaceError> {
        let ancestors = path.ancestors().skip(1).filter(|folder| *folder != Path::new(""));
        let mut ancestors = ancestors;
        let selected = ancestors.find_map(|folder| self.match_pattern(folder)).unwrap_or(false);
        self.copy_entry(path, selected, 0)
    }

    fn match_pattern(&self, path: &Path) -> Option<bool> {
        self.builder.options.copy.match_path(&path.to_string_lossy())
    }

    fn copy_entry(&mut self, path: &Path, is_parent_selected: bool, depth: usize) -> Result<(), WorkspaceError> {
        let old = self.source_path(path);
        let found = match old.symlink_metadata() {
            // It has disappeared: someone is working there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.map_err(WorkspaceError::io("looking at", &old))?,
        };
        let is_selected = self.match_pattern(path).unwrap_or(is_parent_selected);
        let is_git = path.file_name() == Some(OsStr::new(".git"));
        if found.is_dir() {
            return self.copy_folder(path, is_selected, depth);
        }
        if !is_selected {
            return Ok(());
        }
        if is_git {
            self.skip_path(path, "it names another git directory");
        } else if self.total.is_none() && (found.is_symlink() || found.is_file()) {
            self.count_file()?;
        } else if found.is_symlink() {
            self.copy_link(path)?;
        } else if found.is_file() {
            self.copy_file(path)?;
        } else {
            self.skip_path(path, "it is no file");
        }
        Ok(())
    }

    fn copy_folder(&mut self, path: &Path, is_selected: bool, depth: usize) -> Result<(), WorkspaceError> {
        let old = self.source_path(path);
        let new = self.target_path(path);
        if old == self.builder.folder {
            return Ok(());
        }
        if depth >= MAX_DEPTH {
            self.skip_path(path, "it is too deep");
            return Ok(());
        }
        let listed = match fs::read_dir(&old) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // Someone else's folder, such as a container's data, is not a reason to fail the start of a run.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                if is_selected {
                    self.skip_path(path, "it may not be read");
                }
                return Ok(());
            }
            listed => listed.map_err(WorkspaceError::io("listing", &old))?,
        };
        let is_made = is_selected && self.total.is_some();
        if is_made && !self.create_folder(path)? {
            return Ok(());
        }
        for entry in listed {
            let entry = entry.map_err(WorkspaceError::io("listing", &old))?;
            self.copy_entry(&path.join(entry.file_name()), is_selected, depth + 1)?;
        }
        if is_made && let Ok(found) = old.metadata() {
            // Last: nothing could be created in a folder without write permission.
            let mode = found.permissions().mode() & 0o777;
            fs::set_permissions(&new, Permissions::from_mode(mode)).map_err(WorkspaceError::io("copying", &old))?;
        }
        Ok(())
    }

    fn copy_file(&mut self, path: &Path) -> Result<(), WorkspaceError> {
        if self.create_parents(path)? {
            let old = self.source_path(path);
            let new = self.target_path(path);
            match file_copy::copy_file(&old, &new) {
                Ok(bytes) => self.report.bytes += bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.skip_path(path, "the base has it");
                    return Ok(());
                }
                Err(error) => return Err(WorkspaceError::io("copying", &old)(error)),
            }
            self.count_file()?;
        }
        Ok(())
    }

    fn copy_link(&mut self, path: &Path) -> Result<(), WorkspaceError> {
        if !self.create_parents(path)? {
            return Ok(());
        }
        let old = self.source_path(path);
        let new = self.target_path(path);
        let target = fs::read_link(&old).map_err(WorkspaceError::io("reading the link", &old))?;
        match symlink(&target, &new) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.skip_path(path, "the base has it");
                return Ok(());
            }
            result => result.map_err(WorkspaceError::io("linking", &new))?,
        }
        if points_outside(path, &target) {
            self.report.outward.add(format!("{} → {}", path.display(), target.display()));
        }
        self.count_file()
    }

    fn count_file(&mut self) -> Result<(), WorkspaceError> {
        self.report.files += 1;
        if self.report.files > MAX_FILES {
            let path = self.builder.options.source.work_dir().to_owned();
            return Err(WorkspaceError::TooManyFiles { path, most: MAX_FILES });
        }
        if self.report.files.is_multiple_of(FILES_PER_UPDATE) { self.report_progress() } else { Ok(()) }
    }

    fn skip_path(&mut self, path: &Path, why: &str) {
        self.report.skipped.add(format!("{} ({why})", path.display()));
    }

    /// Creates the parents of a path; false if something else is in the place of one.
    fn create_parents(&mut self, path: &Path) -> Result<bool, WorkspaceError> {
        match path.parent().filter(|folder| *folder != Path::new("")) {
            Some(folder) => self.create_folder(folder),
            None => Ok(true),
        }
    }

    /// Creates a folder and its parents; false if something else is in the place of one, even a link to a folder.
    fn create_folder(&mut self, path: &Path) -> Result<bool, WorkspaceError> {
        if self.last_made == path {
            return Ok(true);
        }
        let mut so_far = PathBuf::new();
        for name in path.components() {
            so_far.push(name);
            let new = self.target_path(&so_far);
            match new.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Ok(_) => {
                    self.skip_path(path, "the base has no directory there");
                    return Ok(false);
                }
                Err(_) => {
                    let mode =
                        self.source_path(&so_far).metadata().map_or(0, |found| found.permissions().mode() & 0o777);
                    let created = DirBuilder::new().mode(mode | 0o700).create(&new);
                    created.map_err(WorkspaceError::io("making", &new))?;
                }
            }
        }
        path.clone_into(&mut self.last_made);
        Ok(true)
    }
}

/// Whether the target of a link at a path leads out of the root, judged only by its text.
fn points_outside(path: &Path, target: &Path) -> bool {
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
            assert!(points_outside(Path::new(path), Path::new(target)), "{path} → {target}");
        }
        for (path, target) in [("a/b", "../x"), ("a", "x"), ("a/b/c", "../../x"), ("a/b", "."), ("a", "./b/../c")] {
            assert!(!points_outside(Path::new(path), Path::new(target)), "{path} → {target}");
        }
    }
}
