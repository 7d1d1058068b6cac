//! Clears the flag of known entries whose files no longer look as they did when they were read, and lists other paths
//! in their folders. Looks at each folder and file once, on several cores; reads no file and judges nothing: whatever
//! is not plainly unchanged is left to the library.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::resume_unwind;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::index::entry::stat::Time;
use gix::index::entry::{Flags, Mode, Stat};
use gix::index::{Entry, State};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode as Permissions, OFlags, openat, statat};
use rustix::io::Errno;

use crate::Repository;
use crate::index::index_flags::HIDING_FLAGS;

/// Entries that are worth starting one more thread for, and the maximum number of threads, as in git.
const ENTRIES_PER_THREAD: usize = 500;
const MAX_THREADS: usize = 20;
/// With more paths without an entry than this, walking everything is no slower than looking for each.
const MAX_UNTRACKED: usize = 64;
/// Flags for opening a folder.
const DIR_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

static CORES: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));

/// What remains to be checked after the plain cases.
pub(crate) struct IndexPreload {
    /// Paths in the indexed folders without an entry, ignored or not; `None` if everything must be walked.
    pub(crate) untracked: Option<Vec<BString>>,
    /// Positions of the entries whose files must be read.
    pub(crate) unverified: Vec<usize>,
}

impl IndexPreload {
    /// Checks everything that is known, and keeps the flag on entries whose files look unchanged.
    pub(crate) fn run(repo: &gix::Repository, repository: &Repository, known: &mut State) -> Self {
        let found = scan_all(repo, repository, known);
        let entries = known.entries_mut();
        let mut is_verified = vec![false; entries.len()];
        for position in found.iter().flat_map(|found| &found.verified) {
            is_verified[*position] = true;
        }
        let mut unverified = Vec::new();
        for (position, entry) in entries.iter_mut().enumerate().filter(|(position, _)| !is_verified[*position]) {
            entry.flags.remove(Flags::UPTODATE);
            if !entry.flags.intersects(HIDING_FLAGS) {
                unverified.push(position);
            }
        }
        let untracked = found.map(|found| found.untracked).filter(|strangers| strangers.len() <= MAX_UNTRACKED);
        Self { untracked, unverified }
    }
}

/// `None` if names can be spelled in several ways, if the index has a path that no checkout has, or if the system
/// refuses access.
fn scan_all(repo: &gix::Repository, repository: &Repository, index: &State) -> Option<PreloadResult> {
    let names = repo.filesystem_options().ok()?;
    if names.ignore_case || names.precompose_unicode {
        return None;
    }
    let root = openat(CWD, repository.work_dir(), DIR_FLAGS, Permissions::empty()).ok()?;
    let scan = PreloadScan { root, index, folders: list_index_dirs(index)? };
    let threads = (index.entries().len() / ENTRIES_PER_THREAD).clamp(1, MAX_THREADS).min(*CORES);
    scan.scan_parallel(threads, &scan.find_present_dirs().ok()?).ok()
}

/// A folder in the index.
#[derive(Default)]
struct IndexDir {
    /// Its path without a trailing slash; empty for the root.
    path: BString,
    /// Positions of its direct entries, in order.
    entries: Vec<usize>,
    /// Positions of its direct subfolders.
    folders: Vec<usize>,
}

/// Returns the folders of an index, parents first; `None` if a path is not valid in a checkout.
fn list_index_dirs(index: &State) -> Option<Vec<IndexDir>> {
    let mut folders = vec![IndexDir::default()];
    let mut stack = vec![];
    for (position, entry) in index.entries().iter().enumerate() {
        let path = entry.path(index);
        while stack.last().is_some_and(|at: &usize| !is_inside(path, folders[*at].path.as_ref())) {
            stack.pop();
        }
        let mut at = stack.last().copied().unwrap_or_default();
        let inside = if at == 0 { 0 } else { folders[at].path.len() + 1 };
        for slash in path[inside..].find_iter(b"/") {
            let path = path[..inside + slash].as_bstr();
            let folder = valid_file_name(path).map(|_| folders.len())?;
            folders[at].folders.push(folder);
            folders.push(IndexDir { path: path.to_owned(), ..IndexDir::default() });
            stack.push(folder);
            at = folder;
        }
        valid_file_name(path)?;
        folders[at].entries.push(position);
    }
    Some(folders)
}

fn is_inside(path: &BStr, folder: &BStr) -> bool {
    path.strip_prefix(folder.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
}

/// Returns the last component of a path, if a file in a work tree can have that name.
fn valid_file_name(path: &BStr) -> Option<&[u8]> {
    let name = path.rfind_byte(b'/').map_or(path.as_bytes(), |slash| &path[slash + 1..]);
    (!matches!(name, b"" | b"." | b".." | b".git")).then_some(name)
}

/// What was found in a set of folders.
#[derive(Default)]
struct PreloadResult {
    /// Positions of the entries whose files are unchanged.
    verified: Vec<usize>,
    untracked: Vec<BString>,
}

impl PreloadResult {
    fn merge(mut self, other: Self) -> Self {
        self.verified.extend(other.verified);
        self.untracked.extend(other.untracked);
        self
    }
}

/// One check of everything that an index contains.
struct PreloadScan<'a> {
    root: OwnedFd,
    index: &'a State,
    folders: Vec<IndexDir>,
}

impl PreloadScan<'_> {
    /// Returns for each folder whether it exists, with no link on the way to it.
    fn find_present_dirs(&self) -> Result<Vec<bool>, Errno> {
        let mut present = vec![true; self.folders.len()];
        for (position, folder) in self.folders.iter().enumerate() {
            for child in &folder.folders {
                present[*child] = present[position] && {
                    let found = read_stat(&self.root, &self.folders[*child].path)?;
                    found.is_some_and(|found| FileType::from_raw_mode(found.st_mode).is_dir())
                };
            }
        }
        Ok(present)
    }

    /// Checks the existing folders with this many threads, or as many as the system grants.
    fn scan_parallel(&self, threads: usize, present: &[bool]) -> Result<PreloadResult, Errno> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut found = PreloadResult::default();
            loop {
                let position = next.fetch_add(1, Ordering::Relaxed);
                match present.get(position) {
                    Some(true) => self.scan_dir(&self.folders[position], present, &mut found)?,
                    Some(false) => {}
                    None => return Ok(found),
                }
            }
        };
        thread::scope(|scope| {
            let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
            let others: Vec<_> = (1..threads).map_while(start).collect();
            let own = work();
            let join =
                |other: thread::ScopedJoinHandle<'_, _>| other.join().unwrap_or_else(|panic| resume_unwind(panic));
            others.into_iter().map(join).try_fold(own?, |found, other| Ok(found.merge(other?)))
        })
    }

    /// Compares the entries of a folder with its files, and lists whatever else is in it.
    fn scan_dir(&self, folder: &IndexDir, present: &[bool], found: &mut PreloadResult) -> Result<(), Errno> {
        let path = if folder.path.is_empty() { b"." } else { folder.path.as_bytes() };
        let mut listing = Dir::new(openat(&self.root, path, DIR_FLAGS | OFlags::NOFOLLOW, Permissions::empty())?)?;
        let children = folder.folders.iter().filter(|child| present[**child]);
        let mut known: Vec<&[u8]> =
            children.filter_map(|child| valid_file_name(self.folders[*child].path.as_ref())).collect();
        for position in &folder.entries {
            let entry = &self.index.entries()[*position];
            let Some(name) = valid_file_name(entry.path(self.index)) else { continue };
            let Some(file) = read_stat(listing.fd()?, name)? else { continue };
            let is_of_kind = FileType::from_raw_mode(file.st_mode).is_dir() == (entry.mode == Mode::COMMIT);
            if is_of_kind && known.last() != Some(&name) {
                known.push(name);
            }
            if is_verified(entry, &file) {
                found.verified.push(*position);
            }
        }
        let mut count = 0;
        visit_names(&mut listing, |_| count += 1)?;
        if count != known.len() {
            let known: HashSet<&[u8]> = known.into_iter().collect();
            listing.rewind();
            visit_names(&mut listing, |name| {
                if !known.contains(name) {
                    found.untracked.push(join_path(folder.path.as_ref(), name));
                }
            })?;
        }
        Ok(())
    }
}

/// Whether a file looks as it did when it was read.
fn is_verified(entry: &Entry, file: &rustix::fs::Stat) -> bool {
    let kind = FileType::from_raw_mode(file.st_mode);
    let is_executable = file.st_mode & 0o100 != 0;
    let has_mode = match entry.mode {
        Mode::FILE => kind.is_file() && !is_executable,
        Mode::FILE_EXECUTABLE => kind.is_file() && is_executable,
        Mode::SYMLINK => kind.is_symlink(),
        _ => false,
    };
    has_mode && entry.flags.contains(Flags::UPTODATE) && to_index_stat(file) == Some(entry.stat)
}

/// Visits every name in a folder except git's own.
fn visit_names(listing: &mut Dir, mut visit: impl FnMut(&[u8])) -> Result<(), Errno> {
    while let Some(entry) = listing.read() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b".." | b".git") {
            visit(name);
        }
    }
    Ok(())
}

fn join_path(folder: &BStr, name: &[u8]) -> BString {
    if folder.is_empty() { name.into() } else { [folder.as_bytes(), b"/", name].concat().into() }
}

/// Returns a file's status; `None` if it does not exist.
fn read_stat(folder: impl AsFd, name: &[u8]) -> Result<Option<rustix::fs::Stat>, Errno> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        found => found.map(Some),
    }
}

/// Returns a file's stat data as an index stores them; `None` if they do not fit.
fn to_index_stat(file: &rustix::fs::Stat) -> Option<Stat> {
    let low = |wide: u64| u32::try_from(wide & u64::from(u32::MAX)).ok();
    let time = |secs, nsecs| Some(Time { secs: u32::try_from(secs).ok()?, nsecs: u32::try_from(nsecs).ok()? });
    Some(Stat {
        mtime: time(file.st_mtime, file.st_mtime_nsec)?,
        ctime: time(file.st_ctime, file.st_ctime_nsec)?,
        dev: low(file.st_dev)?,
        ino: low(file.st_ino)?,
        uid: file.st_uid,
        gid: file.st_gid,
        size: low(u64::try_from(file.st_size).ok()?)?,
    })
}
