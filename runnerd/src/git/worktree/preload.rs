//! Takes the mark off known entries whose files do not look any more as when they were read, and names what lies in
//! their folders besides. One look at each folder and file, on several cores; no file is read and nothing is judged:
//! whatever is not plainly as known is left to the library.

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

use crate::git::Repository;
use crate::git::index::marks::HIDDEN;

/// Entries for which one more thread is worth its start, and the most threads: as git has them.
const ENTRIES_PER_THREAD: usize = 500;
const MAX_THREADS: usize = 20;
/// Above this many paths without an entry, a walk of everything is no slower than to look for each.
const MAX_STRANGERS: usize = 64;
/// How a folder is opened.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

static CORES: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));

/// What is left to look at when the plain cases are known.
pub(in crate::git) struct Preload {
    /// What lies in the folders of the index without an entry, ignored or not; none where everything has to be walked.
    pub(in crate::git) strangers: Option<Vec<BString>>,
    /// The entries whose files have to be read, by position.
    pub(in crate::git) doubts: Vec<usize>,
}

impl Preload {
    /// Looks at everything that is known, and leaves the mark on the entries whose files look as they did.
    pub(in crate::git) fn run(repo: &gix::Repository, paths: &Repository, known: &mut State) -> Self {
        let found = look_at_all(repo, paths, known);
        let entries = known.entries_mut();
        let mut is_sure = vec![false; entries.len()];
        for position in found.iter().flat_map(|found| &found.sure) {
            is_sure[*position] = true;
        }
        let mut doubts = Vec::new();
        for (position, entry) in entries.iter_mut().enumerate().filter(|(position, _)| !is_sure[*position]) {
            entry.flags.remove(Flags::UPTODATE);
            if !entry.flags.intersects(HIDDEN) {
                doubts.push(position);
            }
        }
        let strangers = found.map(|found| found.strangers).filter(|strangers| strangers.len() <= MAX_STRANGERS);
        Self { strangers, doubts }
    }
}

/// None where a name can be written in several ways, where the index has a path that no checkout has, and where the
/// system refuses a look.
fn look_at_all(repo: &gix::Repository, paths: &Repository, index: &State) -> Option<Found> {
    let names = repo.filesystem_options().ok()?;
    if names.ignore_case || names.precompose_unicode {
        return None;
    }
    let root = openat(CWD, paths.work_dir(), FOLDER, Permissions::empty()).ok()?;
    let look = Look { root, index, folders: folders(index)? };
    let threads = (index.entries().len() / ENTRIES_PER_THREAD).clamp(1, MAX_THREADS).min(*CORES);
    look.share(threads, &look.standing().ok()?).ok()
}

/// A folder that the index knows.
#[derive(Default)]
struct Folder {
    /// Its path without a slash at the end; empty for the root.
    path: BString,
    /// Positions of the entries that lie in it, in their order.
    entries: Vec<usize>,
    /// Positions of the folders that lie in it.
    folders: Vec<usize>,
}

/// Returns the folders of an index, each before those in it; none where a path is that of no file in a checkout.
fn folders(index: &State) -> Option<Vec<Folder>> {
    let mut folders = vec![Folder::default()];
    let mut way = vec![];
    for (position, entry) in index.entries().iter().enumerate() {
        let path = entry.path(index);
        while way.last().is_some_and(|at: &usize| !lies_in(path, folders[*at].path.as_ref())) {
            way.pop();
        }
        let mut at = way.last().copied().unwrap_or_default();
        let inside = if at == 0 { 0 } else { folders[at].path.len() + 1 };
        for slash in path[inside..].find_iter(b"/") {
            let path = path[..inside + slash].as_bstr();
            let folder = plain(path).map(|_| folders.len())?;
            folders[at].folders.push(folder);
            folders.push(Folder { path: path.to_owned(), ..Folder::default() });
            way.push(folder);
            at = folder;
        }
        plain(path)?;
        folders[at].entries.push(position);
    }
    Some(folders)
}

fn lies_in(path: &BStr, folder: &BStr) -> bool {
    path.strip_prefix(folder.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
}

/// Returns the name at the end of a path, if a file of a work tree can have it.
fn plain(path: &BStr) -> Option<&[u8]> {
    let name = path.rfind_byte(b'/').map_or(path.as_bytes(), |slash| &path[slash + 1..]);
    (!matches!(name, b"" | b"." | b".." | b".git")).then_some(name)
}

/// What was found in some folders.
#[derive(Default)]
struct Found {
    /// Positions of the entries that are as their files.
    sure: Vec<usize>,
    strangers: Vec<BString>,
}

impl Found {
    fn and(mut self, other: Self) -> Self {
        self.sure.extend(other.sure);
        self.strangers.extend(other.strangers);
        self
    }
}

/// One look at everything that an index knows.
struct Look<'a> {
    root: OwnedFd,
    index: &'a State,
    folders: Vec<Folder>,
}

impl Look<'_> {
    /// Tells of each folder whether it is there, and no link on the way to it.
    fn standing(&self) -> Result<Vec<bool>, Errno> {
        let mut standing = vec![true; self.folders.len()];
        for (position, folder) in self.folders.iter().enumerate() {
            for child in &folder.folders {
                standing[*child] = standing[position] && {
                    let found = status(&self.root, &self.folders[*child].path)?;
                    found.is_some_and(|found| FileType::from_raw_mode(found.st_mode).is_dir())
                };
            }
        }
        Ok(standing)
    }

    /// Looks at the folders that stand with as many threads, or with those that the system grants.
    fn share(&self, threads: usize, standing: &[bool]) -> Result<Found, Errno> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut found = Found::default();
            loop {
                let position = next.fetch_add(1, Ordering::Relaxed);
                match standing.get(position) {
                    Some(true) => self.look_into(&self.folders[position], standing, &mut found)?,
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
            others.into_iter().map(join).try_fold(own?, |found, other| Ok(found.and(other?)))
        })
    }

    /// Compares the entries of a folder with its files, and names what else is in it.
    fn look_into(&self, folder: &Folder, standing: &[bool], found: &mut Found) -> Result<(), Errno> {
        let path = if folder.path.is_empty() { b"." } else { folder.path.as_bytes() };
        let mut listing = Dir::new(openat(&self.root, path, FOLDER | OFlags::NOFOLLOW, Permissions::empty())?)?;
        let children = folder.folders.iter().filter(|child| standing[**child]);
        let mut known: Vec<&[u8]> = children.filter_map(|child| plain(self.folders[*child].path.as_ref())).collect();
        for position in &folder.entries {
            let entry = &self.index.entries()[*position];
            let Some(name) = plain(entry.path(self.index)) else { continue };
            let Some(file) = status(listing.fd()?, name)? else { continue };
            let is_of_kind = FileType::from_raw_mode(file.st_mode).is_dir() == (entry.mode == Mode::COMMIT);
            if is_of_kind && known.last() != Some(&name) {
                known.push(name);
            }
            if is_sure(entry, &file) {
                found.sure.push(*position);
            }
        }
        let mut count = 0;
        each_name(&mut listing, |_| count += 1)?;
        if count != known.len() {
            let known: HashSet<&[u8]> = known.into_iter().collect();
            listing.rewind();
            each_name(&mut listing, |name| {
                if !known.contains(name) {
                    found.strangers.push(below(folder.path.as_ref(), name));
                }
            })?;
        }
        Ok(())
    }
}

/// Tells whether a file looks as it did when it was read.
fn is_sure(entry: &Entry, file: &rustix::fs::Stat) -> bool {
    let kind = FileType::from_raw_mode(file.st_mode);
    let is_executable = file.st_mode & 0o100 != 0;
    let has_mode = match entry.mode {
        Mode::FILE => kind.is_file() && !is_executable,
        Mode::FILE_EXECUTABLE => kind.is_file() && is_executable,
        Mode::SYMLINK => kind.is_symlink(),
        _ => false,
    };
    has_mode && entry.flags.contains(Flags::UPTODATE) && recorded(file) == Some(entry.stat)
}

/// Names everything in a folder but git's own.
fn each_name(listing: &mut Dir, mut tell: impl FnMut(&[u8])) -> Result<(), Errno> {
    while let Some(entry) = listing.read() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b".." | b".git") {
            tell(name);
        }
    }
    Ok(())
}

fn below(folder: &BStr, name: &[u8]) -> BString {
    if folder.is_empty() { name.into() } else { [folder.as_bytes(), b"/", name].concat().into() }
}

/// Returns what a file looks like; none where there is none.
fn status(folder: impl AsFd, name: &[u8]) -> Result<Option<rustix::fs::Stat>, Errno> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        found => found.map(Some),
    }
}

/// Returns what an index would say of a file; none where it has no room for it.
fn recorded(file: &rustix::fs::Stat) -> Option<Stat> {
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
