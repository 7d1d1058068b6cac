//! The runner's own folder in the work tree of a run: its files are compared and stored byte for byte, whatever
//! attributes, filters, ignore rules, flags and sparse patterns apply, regardless of who wrote those. Who may write to
//! it is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use gix::bstr::{BString, ByteSlice as _};
use gix::index::entry::{Flags, Mode, Stat};
use gix::index::{Entry, State};
use runner_core::files::layout::FOLDER;

use super::exclude;
use super::scan::{ScanFinding, has_symlink_parent, stat_if_unchanged};
use crate::index::index_flags::HIDING_FLAGS;
use crate::{GitError, Repository};

/// How the files of the folder differ from HEAD.
#[derive(Debug, Default)]
pub(crate) struct RunnerDirDiff {
    /// Every path that differs.
    pub(crate) differences: BTreeMap<BString, ScanFinding>,
    /// Entries whose files were read and are as HEAD has them, by position, with their stat data.
    pub(crate) verified: Vec<(usize, Stat)>,
}

impl Repository {
    /// Whether a path is in the runner's folder, if this is the work tree of a run.
    pub(crate) fn is_runner_path(&self, path: &[u8]) -> bool {
        let is_inside = path.strip_prefix(FOLDER.as_bytes()).is_some_and(|below| below.starts_with(b"/"));
        is_inside && !self.cache.lock().never_tracked.is_empty()
    }

    /// Whether the executable bit is meaningful here.
    pub fn has_executable_bit(&self) -> Result<bool, GitError> {
        let options = self.open()?.filesystem_options();
        Ok(options.map_err(GitError::gix("reading settings of", self.git_dir()))?.executable_bit)
    }

    /// Returns the positions of the entries in the runner's folder, except submodules.
    pub(crate) fn runner_file_positions(&self, state: &State) -> BTreeSet<usize> {
        let range = state.prefixed_entries_range(format!("{FOLDER}/").as_str().into()).unwrap_or_default();
        let is_file = |at: &usize| state.entries()[*at].mode != Mode::COMMIT;
        range.filter(is_file).filter(|at| self.is_runner_path(state.entries()[*at].path(state))).collect()
    }
}

impl RunnerDirDiff {
    /// Compares the files with HEAD, and looks for new ones; `untracked` are all paths that may exist without an entry.
    pub(crate) fn compare(
        repo: &gix::Repository,
        repository: &Repository,
        state: &State,
        untracked: Option<&[BString]>,
    ) -> Result<Self, GitError> {
        let mut diff = Self::default();
        if !repository.is_runner_path(format!("{FOLDER}/").as_bytes()) {
            return Ok(diff);
        }
        let options = repo.filesystem_options().map_err(GitError::gix("reading settings of", repository.git_dir()))?;
        for position in repository.runner_file_positions(state) {
            let entry = &state.entries()[position];
            if entry.flags.contains(Flags::UPTODATE) {
                continue;
            }
            let path = entry.path(state);
            let file = repository.absolute_path(path);
            let compared = if has_symlink_parent(repository, path) {
                Err(ScanFinding::Removed)
            } else {
                compare_file(repo, &file, entry, options.executable_bit).map_err(GitError::io("looking at", &file))?
            };
            match compared {
                // Only some of the files are checked out.
                Err(ScanFinding::Removed) if entry.flags.intersects(HIDING_FLAGS) => {}
                Err(finding) => drop(diff.differences.insert(path.to_owned(), finding)),
                Ok(stat) => diff.verified.push((position, stat)),
            }
        }
        diff.add_untracked(repository, state, untracked)?;
        Ok(diff)
    }

    /// Adds paths without an entry, ignored or not, except those never tracked.
    fn add_untracked(
        &mut self,
        repository: &Repository,
        state: &State,
        untracked: Option<&[BString]>,
    ) -> Result<(), GitError> {
        let never = repository.cache.lock().never_tracked.clone();
        let root = BString::from(FOLDER);
        let mut pending = match untracked {
            Some(strangers) => {
                strangers.iter().filter(|path| **path == root || repository.is_runner_path(path)).cloned().collect()
            }
            None => vec![root.clone()],
        };
        while let Some(path) = pending.pop() {
            let file = repository.absolute_path(&path);
            let kind = match file.symlink_metadata() {
                Ok(found) => found.file_type(),
                Err(error) if is_missing_error(&error) => continue,
                Err(error) => return Err(GitError::io("looking at", &file)(error)),
            };
            let is_known = state.entry_range(path.as_ref()).is_some();
            if kind.is_dir() {
                // The folder and its direct children are the runner's, whatever a session has turned them into.
                let is_made = path[root.len()..].find_iter(b"/").count() < 2;
                let is_repository = !is_made && file.join(".git").symlink_metadata().is_ok();
                if is_repository && !is_known {
                    // A path that is held back is also hidden from git.
                    if !exclude::read_excluded_paths(repository)?.contains([&path[..], b"/"].concat().as_bstr()) {
                        self.differences.insert(path, ScanFinding::NewRepository);
                    }
                } else if !is_repository && !never.contains([&path[..], b"/"].concat().as_bstr()) {
                    pending.extend(list_names(repository, &path)?);
                }
            } else if !is_known && path != root {
                let is_stored = kind.is_file() || kind.is_symlink();
                self.differences.insert(path, if is_stored { ScanFinding::New } else { ScanFinding::Unstorable });
            }
        }
        Ok(())
    }
}

/// Returns the stat data of a file that matches its entry, or else how it differs.
fn compare_file(
    repo: &gix::Repository,
    file: &Path,
    entry: &Entry,
    has_executable_bit: bool,
) -> io::Result<Result<Stat, ScanFinding>> {
    let found = match file.symlink_metadata() {
        Ok(found) => found,
        Err(error) if is_missing_error(&error) => return Ok(Err(ScanFinding::Removed)),
        Err(error) => return Err(error),
    };
    let kind = found.file_type();
    if kind.is_dir() && file.join(".git").symlink_metadata().is_err()
        || !kind.is_dir() && !kind.is_file() && !kind.is_symlink()
    {
        return Ok(Err(ScanFinding::Removed));
    }
    if kind.is_dir() || kind.is_symlink() != (entry.mode == Mode::SYMLINK) {
        return Ok(Err(ScanFinding::Retyped));
    }
    if kind.is_symlink() {
        let target = fs::read_link(file)?;
        let id = gix::objs::compute_hash(entry.id.kind(), gix::objs::Kind::Blob, target.as_os_str().as_bytes());
        let stat = gix::index::fs::Metadata::from_path_no_follow(file)
            .and_then(|found| Stat::from_fs(&found).map_err(io::Error::other))?;
        return Ok(if id.is_ok_and(|id| id == entry.id) { Ok(stat) } else { Err(ScanFinding::Modified) });
    }
    let is_executable = found.permissions().mode() & 0o100 != 0;
    let has_mode = !has_executable_bit || is_executable == (entry.mode == Mode::FILE_EXECUTABLE);
    Ok(stat_if_unchanged(repo, file, entry).filter(|_| has_mode).ok_or(ScanFinding::Modified))
}

fn list_names(repository: &Repository, folder: &BString) -> Result<Vec<BString>, GitError> {
    let absolute = repository.absolute_path(folder);
    let failed = || GitError::io("listing", &absolute);
    let mut names = Vec::new();
    for entry in fs::read_dir(&absolute).map_err(failed())? {
        let name = entry.map_err(failed())?.file_name();
        if name != ".git" {
            names.push([folder.as_slice(), b"/", name.as_bytes()].concat().into());
        }
    }
    Ok(names)
}

fn is_missing_error(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
