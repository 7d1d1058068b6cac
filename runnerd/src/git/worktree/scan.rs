//! Compares the files of HEAD with the work tree: one walk that finds changed, removed and new files. Reads only, and
//! reports paths; what is to be done about them is decided by `status` and `stage`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::dir::EntryRef;
use gix::dir::entry::{Kind, Status};
use gix::dir::walk::{Action, Delegate, EmissionMode};
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stat};
use gix::status::index_worktree::Options;
use gix::status::plumbing::index_as_worktree::traits::{HashEq, SubmoduleStatus};
use gix::status::plumbing::index_as_worktree::{Change, EntryStatus};
use gix::status::plumbing::index_as_worktree_with_renames::{Entry, VisitEntry};
use gix::worktree::stack::state::ignore::Source;

use super::content::{Contents, Refused, head_of, open_plain};
use super::known::Tracked;
use super::own::Own;
use super::preload::Preload;
use super::renormalise;
use crate::git::index::cachetree;
use crate::git::index::marks::UNREAD;
use crate::git::index::names::Names;
use crate::git::moment::Flush;
use crate::git::{GitError, Repository};

/// How a path differs from its entry in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum Finding {
    /// Nothing is there that git could store, or a folder is.
    Gone,
    /// The content or the executable bit differs, or a submodule is at another commit.
    Modified,
    /// A file became a link, a repository, or the reverse.
    Retyped,
    /// It has no merged entry.
    Unmerged,
    /// It has no entry: a file or symbolic link.
    New,
    /// It has no entry: a repository of its own.
    NewRepository,
    /// It has no entry, and git cannot store it: a pipe, socket or device.
    Unstorable,
}

/// What one walk found.
#[derive(Debug, Default)]
pub(in crate::git) struct Scan {
    /// Every path that differs.
    pub(in crate::git) found: BTreeMap<BString, Finding>,
    /// Entries whose content is as known, by position, with what the file looks like now.
    fresh: Vec<(usize, Stat)>,
    /// Entries whose content git would store otherwise than it is known, by position.
    rewritten: Vec<usize>,
    /// Files that are converted by other rules than before.
    pub(in crate::git) renormalised: BTreeSet<BString>,
}

impl Scan {
    /// Returns what somebody else has found.
    pub(in crate::git) fn of(found: BTreeMap<BString, Finding>) -> Self {
        Self { found, ..Self::default() }
    }

    /// Compares every tracked file with HEAD, and looks for others.
    ///
    /// Ignored files are not reported, nor changes inside submodules. Entries whose files were read and are as HEAD has
    /// them are marked so, in memory alone.
    pub(in crate::git) fn run(
        repo: &gix::Repository,
        paths: &Repository,
        tracked: &mut Tracked<'_>,
    ) -> Result<Self, GitError> {
        let mut scan = Self::default();
        let state = &mut tracked.state;
        let Preload { strangers, mut doubts } = Preload::run(repo, paths, state);
        let failed = || GitError::library("comparing the index with the work tree", paths.work_dir());
        let flush = if doubts.is_empty() { None } else { paths.flush_before_reading(doubts.len())? };
        let own_files = paths.own_positions(state);
        doubts.retain(|position| !own_files.contains(position));
        if !doubts.is_empty() {
            for position in &doubts {
                state.entries_mut()[*position].stat = UNREAD;
            }
            let passed_over = pass_over(state, own_files.iter().copied());
            if let Err(error) = scan.compare(repo, paths, state) {
                let refused = paths.refused_among(repo, state, &doubts)?;
                if refused.is_empty() {
                    return Err(failed()(error));
                }
                scan = Self::default();
                scan.compare_others(repo, paths, (state, &refused)).map_err(failed())?;
            }
            look_again(state, &passed_over);
            scan.take_as_committed(repo, paths, state);
        }
        let own = Own::look(repo, paths, (state, strangers.as_deref()))?;
        scan.fresh.extend(own.fresh);
        scan.refresh(state, flush);
        scan.add_names(paths, &tracked.names);
        // A submodule that became a file is seen from both sides; what is known about it says more.
        let untracked = untracked(repo, paths, &tracked.state, strangers.as_deref()).map_err(failed())?;
        let others = untracked.into_iter().filter(|(path, _)| !paths.owns(path));
        for (path, finding) in own.found.into_iter().chain(others) {
            scan.found.entry(path).or_insert(finding);
        }
        scan.renormalise(repo, paths, tracked)?;
        Ok(scan)
    }

    /// Adds files that git would store otherwise since files of attributes have changed.
    fn renormalise(
        &mut self,
        repo: &gix::Repository,
        paths: &Repository,
        tracked: &Tracked<'_>,
    ) -> Result<(), GitError> {
        let changed: Vec<&BString> =
            self.found.keys().chain(tracked.removed()).filter(|path| renormalise::governed(path).is_some()).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let concerned = renormalise::concerned((repo, paths), &tracked.all_of_head(), changed.into_iter());
        let failed = GitError::library("comparing attributes", paths.work_dir());
        self.renormalised = concerned.map_err(failed)?;
        let mut contents = Contents::new(repo, paths, &cachetree::empty(repo.object_hash()))?;
        for path in &self.renormalised {
            let Some(entry) = tracked.state.entry_by_path(path.as_ref()) else { continue };
            if self.found.contains_key(path) {
                continue;
            }
            let is_other = match contents.renormalised(path.as_ref(), entry.mode) {
                Ok(stored) => stored.id != entry.id,
                Err(Refused::Fault(error)) => return Err(error),
                // It stays as it was stored.
                Err(Refused::Gone | Refused::Unstorable) => false,
            };
            if is_other {
                self.found.insert(path.clone(), Finding::Modified);
            }
        }
        Ok(())
    }

    /// Adds what the index alone knows: what was added to it, whether or not it is ignored, and conflicts.
    fn add_names(&mut self, paths: &Repository, names: &Names) {
        for path in &names.added {
            let finding = match paths.file(path).symlink_metadata().map(|found| found.file_type()) {
                Ok(kind) if kind.is_file() || kind.is_symlink() => Finding::New,
                Ok(kind) if kind.is_dir() => match paths.file(path).join(".git").symlink_metadata() {
                    Ok(_) => Finding::NewRepository,
                    Err(_) => Finding::Gone,
                },
                Ok(_) => Finding::Unstorable,
                Err(_) => Finding::Gone,
            };
            let finding = if leads_through_a_link(paths, path.as_ref()) { Finding::Gone } else { finding };
            self.found.insert(path.clone(), finding);
        }
        for path in &names.unmerged {
            self.found.insert(path.clone(), Finding::Unmerged);
        }
    }

    /// Says how the files at some paths differ, without a look at others; none where that takes more than a look at each.
    ///
    /// A file that is as its entry says counts as modified: to store it again changes nothing.
    pub(in crate::git) fn within(paths: &Repository, index: &State, some: &[Vec<u8>]) -> Option<Self> {
        let mut scan = Self::default();
        for path in some.iter().map(|path| path.as_bstr()) {
            if renormalise::governed(path).is_some() || leads_through_a_link(paths, path) {
                return None;
            }
            let kind = paths.file(path).symlink_metadata().ok().map(|found| found.file_type());
            let is_stored = kind.is_some_and(|kind| kind.is_file() || kind.is_symlink());
            let is_plain_folder =
                kind.is_some_and(|kind| kind.is_dir()) && paths.file(path).join(".git").symlink_metadata().is_err();
            let entries = index.entry_range(path).map_or(&[][..], |range| &index.entries()[range]);
            let finding = match entries {
                [] if kind.is_none() => continue,
                [] if is_stored => Finding::New,
                [entry] if entry.mode == Mode::COMMIT => return None,
                [_] if is_stored => Finding::Modified,
                [_] if kind.is_none() || is_plain_folder => Finding::Gone,
                _ => return None,
            };
            scan.found.insert(path.to_owned(), finding);
        }
        Some(scan)
    }

    fn compare(&mut self, repo: &gix::Repository, paths: &Repository, index: &State) -> gix::Result<()> {
        repo.index_worktree_status(
            index,
            None::<&BStr>,
            self,
            HashEq,
            Commits { paths: paths.clone() },
            &mut gix::progress::Discard,
            &AtomicBool::new(false),
            // The library dies where the system refuses it a thread of several; it reports one that it needs.
            Options { thread_limit: Some(1), ..Options::default() },
        )
        .map(drop)
    }

    /// Compares all files but those that cannot be converted: these have changed, unless their bytes are the commit's.
    fn compare_others(
        &mut self,
        repo: &gix::Repository,
        paths: &Repository,
        (state, refused): (&mut State, &[usize]),
    ) -> gix::Result<()> {
        let passed_over = pass_over(state, refused.iter().copied());
        let compared = self.compare(repo, paths, state);
        look_again(state, &passed_over);
        for position in refused {
            self.found.insert(state.entries()[*position].path(state).to_owned(), Finding::Modified);
        }
        self.rewritten.extend(refused);
        compared
    }

    /// Takes a file for unchanged whose bytes are those of the commit, although git would store them otherwise today: by
    /// rules for line ends that are younger than the file, or by a filter.
    fn take_as_committed(&mut self, repo: &gix::Repository, paths: &Repository, state: &State) {
        for position in std::mem::take(&mut self.rewritten) {
            let entry = &state.entries()[position];
            let path = entry.path(state);
            if let Some(stat) = stands_as(repo, &paths.file(path), entry) {
                self.found.remove(path);
                self.fresh.push((position, stat));
            }
        }
    }

    /// Takes over what the walk learned about files that did not change, so that nobody has to read them again.
    fn refresh(&mut self, state: &mut State, flush: Option<Flush>) {
        let entries = state.entries_mut();
        for (position, stat) in self.fresh.drain(..) {
            entries[position].stat = stat;
            entries[position].flags.set(Flags::UPTODATE, flush.is_some_and(|flush| flush.settles(&stat)));
        }
    }

    fn tracked(&mut self, position: usize, path: &BStr, status: &EntryStatus<ObjectId, ()>) {
        let finding = match status {
            EntryStatus::NeedsUpdate(stat) => return self.fresh.push((position, *stat)),
            EntryStatus::Conflict { .. } => Finding::Unmerged,
            EntryStatus::IntentToAdd => Finding::Modified,
            EntryStatus::Change(Change::Removed) => Finding::Gone,
            EntryStatus::Change(Change::Type { .. }) => Finding::Retyped,
            EntryStatus::Change(Change::SubmoduleModification(())) => Finding::Modified,
            EntryStatus::Change(Change::Modification { executable_bit_changed, .. }) => {
                if !executable_bit_changed {
                    self.rewritten.push(position);
                }
                Finding::Modified
            }
        };
        self.found.insert(path.to_owned(), finding);
    }
}

/// Has the library look at none of these entries, until [`look_again`] has those that it would have looked at.
fn pass_over(state: &mut State, positions: impl Iterator<Item = usize>) -> Vec<usize> {
    let entries = state.entries_mut();
    let passed_over: Vec<usize> = positions.filter(|at| !entries[*at].flags.contains(Flags::UPTODATE)).collect();
    for at in &passed_over {
        entries[*at].flags.insert(Flags::UPTODATE);
    }
    passed_over
}

fn look_again(state: &mut State, passed_over: &[usize]) {
    for at in passed_over {
        state.entries_mut()[*at].flags.remove(Flags::UPTODATE);
    }
}

/// Tells whether a folder on the way to a path is a link: what is found there is another file.
pub(super) fn leads_through_a_link(paths: &Repository, path: &BStr) -> bool {
    let is_link = |folder: &[u8]| paths.file(folder).symlink_metadata().is_ok_and(|found| found.is_symlink());
    path.find_iter(b"/").any(|slash| is_link(&path[..slash]))
}

/// Returns what a file looks like whose bytes are those of an entry.
pub(in crate::git) fn stands_as(repo: &gix::Repository, file: &Path, entry: &gix::index::Entry) -> Option<Stat> {
    if !matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE) {
        return None;
    }
    let opened = open_plain(file).ok()?;
    let found = gix::index::fs::Metadata::from_file(&opened).ok()?;
    let stat = Stat::from_fs(&found).ok()?;
    if repo.find_header(entry.id).ok()?.size() != found.len() {
        return None;
    }
    let (progress, stop) = (&mut gix::progress::Discard, &AtomicBool::new(false));
    let kind = (gix::objs::Kind::Blob, entry.id.kind());
    let id = gix::objs::compute_stream_hash(kind.1, kind.0, &mut &opened, found.len(), progress, stop).ok()?;
    (id == entry.id).then_some(stat)
}

/// Returns what is neither tracked nor ignored. git itself is silent about pipes and the like; this names them.
///
/// Where `strangers` are all that can be, only what is a folder among them is walked.
fn untracked(
    repo: &gix::Repository,
    paths: &Repository,
    index: &State,
    strangers: Option<&[BString]>,
) -> gix::Result<Vec<(BString, Finding)>> {
    let Some(strangers) = strangers else { return walked(repo, index, &[]) };
    let (mut found, mut folders) = (Vec::new(), Vec::new());
    let mut rules = repo.excludes(index, None, Source::WorktreeThenIdMappingIfNotSkipped)?;
    for path in strangers.iter().filter(|path| !paths.owns(path)) {
        let Ok(kind) = paths.file(path).symlink_metadata().map(|found| found.file_type()) else { continue };
        let mode = if kind.is_dir() { Mode::DIR } else { Mode::FILE };
        if rules.at_entry(path.as_bstr(), Some(mode)).map_err(gix::Error::from_error)?.is_excluded() {
            continue;
        }
        if kind.is_dir() {
            folders.push([b":(top,literal)", path.as_slice()].concat().into());
        } else {
            let is_stored = kind.is_file() || kind.is_symlink();
            found.push((path.clone(), if is_stored { Finding::New } else { Finding::Unstorable }));
        }
    }
    if !folders.is_empty() {
        found.extend(walked(repo, index, &folders)?);
    }
    Ok(found)
}

/// Returns the pipes, sockets and devices, of which git says nothing, where the library's walk can tell.
pub(in crate::git) fn unstorable_files(repo: &gix::Repository, index: &State) -> Vec<BString> {
    let found = walked(repo, index, &[]).unwrap_or_default();
    found.into_iter().filter(|(_, finding)| *finding == Finding::Unstorable).map(|(path, _)| path).collect()
}

/// Returns what the library's walk finds that is neither tracked nor ignored, everywhere or where patterns say.
fn walked(repo: &gix::Repository, index: &State, patterns: &[BString]) -> gix::Result<Vec<(BString, Finding)>> {
    let options = repo.dirwalk_options()?.emit_untracked(EmissionMode::Matching);
    let mut untracked = Untracked(Vec::new());
    repo.dirwalk(index, patterns, &AtomicBool::new(false), options, &mut untracked)?;
    Ok(untracked.0)
}

struct Untracked(Vec<(BString, Finding)>);

impl Delegate for Untracked {
    fn emit(&mut self, entry: EntryRef<'_>, _: Option<Status>) -> Action {
        let finding = match (entry.status, entry.disk_kind) {
            (Status::Untracked, Some(Kind::File | Kind::Symlink)) => Some(Finding::New),
            (Status::Untracked, Some(Kind::Repository)) => Some(Finding::NewRepository),
            (Status::Untracked, Some(Kind::Untrackable)) => Some(Finding::Unstorable),
            _ => None,
        };
        self.0.extend(finding.map(|finding| (entry.rela_path.into_owned(), finding)));
        Action::Continue(())
    }
}

impl<'index> VisitEntry<'index> for Scan {
    type ContentChange = ObjectId;
    type SubmoduleStatus = ();

    fn visit_entry(&mut self, entry: Entry<'index, ObjectId, ()>) {
        if let Entry::Modification { entry_index, rela_path, status, .. } = entry {
            self.tracked(entry_index, rela_path, &status);
        }
    }
}

/// Compares a submodule's HEAD with its entry, whether or not `.gitmodules` knows it.
#[derive(Clone)]
struct Commits {
    paths: Repository,
}

impl SubmoduleStatus for Commits {
    type Output = ();

    fn status(&mut self, entry: &gix::index::Entry, path: &BStr) -> gix::Result<Option<()>> {
        let head = head_of(&self.paths.file(path));
        Ok(head.filter(|head| *head != entry.id).map(drop))
    }
}
