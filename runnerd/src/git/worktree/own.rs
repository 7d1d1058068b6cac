//! The runner's own folder, in the work tree of a run: its files are compared and stored byte for byte, whatever attributes,
//! filters, ignore rules, marks and sparse patterns say of them, and whoever wrote those. Who may write what there is not
//! decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use gix::bstr::{BString, ByteSlice as _};
use gix::index::entry::{Flags, Mode, Stat};
use gix::index::{Entry, State};
use runner_core::layout::FOLDER;

use super::exclude;
use super::scan::{Finding, leads_through_a_link, stands_as};
use crate::git::index::marks::HIDDEN;
use crate::git::{GitError, Repository};

/// How the files of the folder differ from HEAD.
#[derive(Debug, Default)]
pub(in crate::git) struct Own {
    /// Every path that differs.
    pub(in crate::git) found: BTreeMap<BString, Finding>,
    /// Entries whose files were read and are as HEAD has them, by position, with what each looks like.
    pub(in crate::git) fresh: Vec<(usize, Stat)>,
}

impl Repository {
    /// Tells whether a path lies in the runner's folder, where this is the work tree of a run.
    pub(in crate::git) fn owns(&self, path: &[u8]) -> bool {
        let is_inside = path.strip_prefix(FOLDER.as_bytes()).is_some_and(|below| below.starts_with(b"/"));
        is_inside && !self.memory.lock().never.is_empty()
    }

    /// Tells whether the executable bit of a file says something here.
    pub fn has_executable_bit(&self) -> Result<bool, GitError> {
        let options = self.open()?.filesystem_options();
        Ok(options.map_err(GitError::library("reading settings of", self.git_dir()))?.executable_bit)
    }

    /// Returns the positions of the files in the runner's folder; a submodule is none.
    pub(in crate::git) fn own_positions(&self, state: &State) -> BTreeSet<usize> {
        let range = state.prefixed_entries_range(format!("{FOLDER}/").as_str().into()).unwrap_or_default();
        let is_file = |at: &usize| state.entries()[*at].mode != Mode::COMMIT;
        range.filter(is_file).filter(|at| self.owns(state.entries()[*at].path(state))).collect()
    }
}

impl Own {
    /// Compares the files with HEAD, and looks for others; `strangers` are all that can be there without an entry.
    pub(in crate::git) fn look(
        repo: &gix::Repository,
        paths: &Repository,
        (state, strangers): (&State, Option<&[BString]>),
    ) -> Result<Self, GitError> {
        let mut own = Self::default();
        if !paths.owns(format!("{FOLDER}/").as_bytes()) {
            return Ok(own);
        }
        let names = repo.filesystem_options().map_err(GitError::library("reading settings of", paths.git_dir()))?;
        for position in paths.own_positions(state) {
            let entry = &state.entries()[position];
            if entry.flags.contains(Flags::UPTODATE) {
                continue;
            }
            let path = entry.path(state);
            let file = paths.file(path);
            let looked = if leads_through_a_link(paths, path) {
                Err(Finding::Gone)
            } else {
                look_at(repo, &file, (entry, names.executable_bit)).map_err(GitError::io("looking at", &file))?
            };
            match looked {
                // A part of the files alone is checked out.
                Err(Finding::Gone) if entry.flags.intersects(HIDDEN) => {}
                Err(finding) => drop(own.found.insert(path.to_owned(), finding)),
                Ok(stat) => own.fresh.push((position, stat)),
            }
        }
        own.add_strangers(paths, state, strangers)?;
        Ok(own)
    }

    /// Adds what has no entry, ignored or not, but for what is never tracked.
    fn add_strangers(
        &mut self,
        paths: &Repository,
        state: &State,
        strangers: Option<&[BString]>,
    ) -> Result<(), GitError> {
        let never = paths.memory.lock().never.clone();
        let root = BString::from(FOLDER);
        let mut left = match strangers {
            Some(strangers) => strangers.iter().filter(|path| **path == root || paths.owns(path)).cloned().collect(),
            None => vec![root.clone()],
        };
        while let Some(path) = left.pop() {
            let file = paths.file(&path);
            let kind = match file.symlink_metadata() {
                Ok(found) => found.file_type(),
                Err(error) if is_absent(&error) => continue,
                Err(error) => return Err(GitError::io("looking at", &file)(error)),
            };
            let is_known = state.entry_range(path.as_ref()).is_some();
            if kind.is_dir() {
                // The folder itself and those right below it are the runner's, whatever a session has made of them.
                let is_made = path[root.len()..].find_iter(b"/").count() < 2;
                let is_repository = !is_made && file.join(".git").symlink_metadata().is_ok();
                if is_repository && !is_known {
                    // One that is held back is hidden from git too.
                    if !exclude::read(paths)?.contains([&path[..], b"/"].concat().as_bstr()) {
                        self.found.insert(path, Finding::NewRepository);
                    }
                } else if !is_repository && !never.contains([&path[..], b"/"].concat().as_bstr()) {
                    left.extend(names_in(paths, &path)?);
                }
            } else if !is_known && path != root {
                let is_stored = kind.is_file() || kind.is_symlink();
                self.found.insert(path, if is_stored { Finding::New } else { Finding::Unstorable });
            }
        }
        Ok(())
    }
}

/// Returns what a file looks like that is as its entry says, else how it differs.
fn look_at(
    repo: &gix::Repository,
    file: &Path,
    (entry, has_executable_bit): (&Entry, bool),
) -> io::Result<Result<Stat, Finding>> {
    let found = match file.symlink_metadata() {
        Ok(found) => found,
        Err(error) if is_absent(&error) => return Ok(Err(Finding::Gone)),
        Err(error) => return Err(error),
    };
    let kind = found.file_type();
    if kind.is_dir() && file.join(".git").symlink_metadata().is_err()
        || !kind.is_dir() && !kind.is_file() && !kind.is_symlink()
    {
        return Ok(Err(Finding::Gone));
    }
    if kind.is_dir() || kind.is_symlink() != (entry.mode == Mode::SYMLINK) {
        return Ok(Err(Finding::Retyped));
    }
    if kind.is_symlink() {
        let target = fs::read_link(file)?;
        let id = gix::objs::compute_hash(entry.id.kind(), gix::objs::Kind::Blob, target.as_os_str().as_bytes());
        let stat = gix::index::fs::Metadata::from_path_no_follow(file)
            .and_then(|found| Stat::from_fs(&found).map_err(io::Error::other))?;
        return Ok(if id.is_ok_and(|id| id == entry.id) { Ok(stat) } else { Err(Finding::Modified) });
    }
    let is_executable = found.permissions().mode() & 0o100 != 0;
    let has_mode = !has_executable_bit || is_executable == (entry.mode == Mode::FILE_EXECUTABLE);
    Ok(stands_as(repo, file, entry).filter(|_| has_mode).ok_or(Finding::Modified))
}

fn names_in(paths: &Repository, folder: &BString) -> Result<Vec<BString>, GitError> {
    let absolute = paths.file(folder);
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

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
