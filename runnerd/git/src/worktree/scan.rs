//! Compares the files of HEAD with the work tree: one walk that finds changed, removed and new files. Only reads and
//! reports paths; `status` and `stage` decide what to do about them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::dir::EntryRef;
use gix::dir::entry::{Kind, Status};
use gix::dir::walk::{Action, Delegate};
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stat};
use gix::status::plumbing::index_as_worktree::traits::SubmoduleStatus;
use gix::status::plumbing::index_as_worktree::{Change, EntryStatus};
use gix::status::plumbing::index_as_worktree_with_renames::{Entry, VisitEntry};

use super::content::{ContentStore, StoreFailure, open_regular_file, read_head_commit};
use super::preload::IndexPreload;
use super::renormalize;
use super::runner_dir::RunnerDirDiff;
use super::stat_cache::TrackedFiles;
use crate::fs_clock::FlushTime;
use crate::index::cachetree;
use crate::index::index_diff::IndexDiff;
use crate::index::index_flags::UNKNOWN_STAT;
use crate::{GitError, Repository};

/// How a path differs from its entry in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanFinding {
    /// Nothing that git could store is there, or a folder is.
    Removed,
    /// The content or the executable bit differs, or a submodule is at another commit.
    Modified,
    /// A file became a link, a repository, or the reverse.
    Retyped,
    /// It has no merged entry.
    Unmerged,
    /// A file or symbolic link without an entry.
    New,
    /// A nested repository without an entry.
    NewRepository,
    /// A path without an entry that git cannot store: a pipe, socket or device.
    Unstorable,
}

/// Result of one walk.
#[derive(Debug, Default)]
pub(crate) struct WorktreeScan {
    /// Every path that differs.
    pub(crate) findings: BTreeMap<BString, ScanFinding>,
    /// Entries with unchanged content, by position, with the file's current stat data.
    verified: Vec<(usize, Stat)>,
    /// Entries whose content git would store differently now, by position.
    rewritten: Vec<usize>,
    /// Files whose conversion rules have changed.
    pub(crate) renormalized: BTreeSet<BString>,
}

impl WorktreeScan {
    /// Wraps findings from elsewhere.
    pub(crate) fn from_findings(found: BTreeMap<BString, ScanFinding>) -> Self {
        Self { findings: found, ..Self::default() }
    }

    /// Compares every tracked file with HEAD, and looks for new ones.
    ///
    /// Reports neither ignored files nor changes inside submodules. Marks entries whose files were read and are as HEAD
    /// has them, only in memory.
    pub(crate) fn run(
        repo: &gix::Repository,
        repository: &Repository,
        tracked: &mut TrackedFiles<'_>,
    ) -> Result<Self, GitError> {
        let mut scan = Self::default();
        let state = &mut tracked.state;
        let IndexPreload { untracked: untracked_paths, mut unverified } = IndexPreload::run(repo, repository, state);
        let failed = || GitError::gix("comparing the index with the working tree", repository.work_dir());
        let flush = if unverified.is_empty() { None } else { repository.flush_before_reading(unverified.len())? };
        let own_files = repository.runner_file_positions(state);
        unverified.retain(|position| !own_files.contains(position));
        if !unverified.is_empty() {
            repository.open_files(unverified.iter().map(|position| state.entries()[*position].path(state)))?;
            for position in &unverified {
                state.entries_mut()[*position].stat = UNKNOWN_STAT;
            }
            let skipped = skip_entries(state, own_files.iter().copied());
            if let Err(error) = scan.compare_worktree(repo, repository, state) {
                let unconvertible = repository.find_unstorable_entries(repo, state, &unverified)?;
                if unconvertible.is_empty() {
                    return Err(failed()(error));
                }
                scan = Self::default();
                scan.compare_convertible(repo, repository, state, &unconvertible).map_err(failed())?;
            }
            unskip_entries(state, &skipped);
            scan.drop_unmodified(repo, repository, state);
        }
        let runner_diff = RunnerDirDiff::compare(repo, repository, state, untracked_paths.as_deref())?;
        scan.verified.extend(runner_diff.verified);
        scan.apply_stats(state, flush);
        scan.add_index_changes(repository, &tracked.index_diff);
        // A submodule that became a file is found from both sides; the finding for the known entry says more.
        let untracked =
            find_untracked(repo, repository, &tracked.state, untracked_paths.as_deref()).map_err(failed())?;
        let others = untracked.into_iter().filter(|(path, _)| !repository.is_runner_path(path));
        for (path, finding) in runner_diff.differences.into_iter().chain(others) {
            scan.findings.entry(path).or_insert(finding);
        }
        scan.add_renormalized(repo, repository, tracked)?;
        let is_new = |found: &(&BString, &ScanFinding)| *found.1 == ScanFinding::New;
        repository.open_files(scan.findings.iter().filter(is_new).map(|(path, _)| path.as_ref()))?;
        Ok(scan)
    }

    /// Adds files that git would store differently because attribute files have changed.
    fn add_renormalized(
        &mut self,
        repo: &gix::Repository,
        repository: &Repository,
        tracked: &TrackedFiles<'_>,
    ) -> Result<(), GitError> {
        let changed: Vec<&BString> = self
            .findings
            .keys()
            .chain(tracked.removed())
            .filter(|path| renormalize::governed_dir(path).is_some())
            .collect();
        if changed.is_empty() {
            return Ok(());
        }
        let affected = renormalize::find_affected(repo, repository, &tracked.head_state(), changed.into_iter());
        let failed = GitError::gix("comparing attributes", repository.work_dir());
        self.renormalized = affected.map_err(failed)?;
        let mut contents = ContentStore::new(repo, repository, &cachetree::empty_index(repo.object_hash()))?;
        for path in &self.renormalized {
            let Some(entry) = tracked.state.entry_by_path(path.as_ref()) else { continue };
            if self.findings.contains_key(path) {
                continue;
            }
            let is_other = match contents.store_renormalized(path.as_ref(), entry.mode) {
                Ok(stored) => stored.id != entry.id,
                Err(StoreFailure::Failed(error)) => return Err(error),
                // It keeps its stored content.
                Err(StoreFailure::Missing | StoreFailure::Unstorable) => false,
            };
            if is_other {
                self.findings.insert(path.clone(), ScanFinding::Modified);
            }
        }
        Ok(())
    }

    /// Adds what only the index knows: paths added to it, ignored or not, and conflicts.
    fn add_index_changes(&mut self, repository: &Repository, diff: &IndexDiff) {
        for path in &diff.added {
            let finding = match repository.absolute_path(path).symlink_metadata().map(|found| found.file_type()) {
                Ok(kind) if kind.is_file() || kind.is_symlink() => ScanFinding::New,
                Ok(kind) if kind.is_dir() => match repository.absolute_path(path).join(".git").symlink_metadata() {
                    Ok(_) => ScanFinding::NewRepository,
                    Err(_) => ScanFinding::Removed,
                },
                Ok(_) => ScanFinding::Unstorable,
                Err(_) => ScanFinding::Removed,
            };
            let finding = if has_symlink_parent(repository, path.as_ref()) { ScanFinding::Removed } else { finding };
            self.findings.insert(path.clone(), finding);
        }
        for path in &diff.unmerged {
            self.findings.insert(path.clone(), ScanFinding::Unmerged);
        }
    }

    /// Determines how the files at some paths differ, without looking at others; `None` if that takes more than a look
    /// at each.
    ///
    /// A file that matches its entry counts as modified: storing it again changes nothing.
    pub(crate) fn for_paths(repository: &Repository, index: &State, selected: &[Vec<u8>]) -> Option<Self> {
        let mut scan = Self::default();
        for path in selected.iter().map(|path| path.as_bstr()) {
            if renormalize::governed_dir(path).is_some() || has_symlink_parent(repository, path) {
                return None;
            }
            let kind = repository.absolute_path(path).symlink_metadata().ok().map(|found| found.file_type());
            let is_stored = kind.is_some_and(|kind| kind.is_file() || kind.is_symlink());
            let is_plain_folder = kind.is_some_and(|kind| kind.is_dir())
                && repository.absolute_path(path).join(".git").symlink_metadata().is_err();
            let entries = index.entry_range(path).map_or(&[][..], |range| &index.entries()[range]);
            let finding = match entries {
                [] if kind.is_none() => continue,
                [] if is_stored => ScanFinding::New,
                [entry] if entry.mode == Mode::COMMIT => return None,
                [_] if is_stored => ScanFinding::Modified,
                [_] if kind.is_none() || is_plain_folder => ScanFinding::Removed,
                _ => return None,
            };
            scan.findings.insert(path.to_owned(), finding);
        }
        Some(scan)
    }

    fn compare_worktree(&mut self, repo: &gix::Repository, repository: &Repository, index: &State) -> gix::Result<()> {
        repository.compare_with_index(repo, index, self, SubmoduleHeads { repository: repository.clone() })
    }

    /// Compares all files except those that cannot be converted: these have changed, unless their bytes are the
    /// commit's.
    fn compare_convertible(
        &mut self,
        repo: &gix::Repository,
        repository: &Repository,
        state: &mut State,
        unconvertible: &[usize],
    ) -> gix::Result<()> {
        let skipped = skip_entries(state, unconvertible.iter().copied());
        let compared = self.compare_worktree(repo, repository, state);
        unskip_entries(state, &skipped);
        for position in unconvertible {
            self.findings.insert(state.entries()[*position].path(state).to_owned(), ScanFinding::Modified);
        }
        self.rewritten.extend(unconvertible);
        compared
    }

    /// Counts a file as unchanged if its bytes are the commit's, even if git would store it differently today because
    /// of newer line-ending rules or a filter.
    fn drop_unmodified(&mut self, repo: &gix::Repository, repository: &Repository, state: &State) {
        for position in std::mem::take(&mut self.rewritten) {
            let entry = &state.entries()[position];
            let path = entry.path(state);
            if let Some(stat) = stat_if_unchanged(repo, &repository.absolute_path(path), entry) {
                self.findings.remove(path);
                self.verified.push((position, stat));
            }
        }
    }

    /// Takes over what the walk learned about unchanged files, so that they need not be read again.
    fn apply_stats(&mut self, state: &mut State, flush: Option<FlushTime>) {
        let entries = state.entries_mut();
        for (position, stat) in self.verified.drain(..) {
            entries[position].stat = stat;
            entries[position].flags.set(Flags::UPTODATE, flush.is_some_and(|flush| flush.is_stat_reliable(&stat)));
        }
    }

    fn record_status(&mut self, position: usize, path: &BStr, status: &EntryStatus<ObjectId, ()>) {
        let finding = match status {
            EntryStatus::NeedsUpdate(stat) => return self.verified.push((position, *stat)),
            EntryStatus::Conflict { .. } => ScanFinding::Unmerged,
            EntryStatus::IntentToAdd => ScanFinding::Modified,
            EntryStatus::Change(Change::Removed) => ScanFinding::Removed,
            EntryStatus::Change(Change::Type { .. }) => ScanFinding::Retyped,
            EntryStatus::Change(Change::SubmoduleModification(())) => ScanFinding::Modified,
            EntryStatus::Change(Change::Modification { executable_bit_changed, .. }) => {
                if !executable_bit_changed {
                    self.rewritten.push(position);
                }
                ScanFinding::Modified
            }
        };
        self.findings.insert(path.to_owned(), finding);
    }
}

/// Makes the library skip these entries, until [`unskip_entries`] restores those it would have checked.
fn skip_entries(state: &mut State, positions: impl Iterator<Item = usize>) -> Vec<usize> {
    let entries = state.entries_mut();
    let skipped: Vec<usize> = positions.filter(|at| !entries[*at].flags.contains(Flags::UPTODATE)).collect();
    for at in &skipped {
        entries[*at].flags.insert(Flags::UPTODATE);
    }
    skipped
}

fn unskip_entries(state: &mut State, skipped: &[usize]) {
    for at in skipped {
        state.entries_mut()[*at].flags.remove(Flags::UPTODATE);
    }
}

/// Whether a folder on the way to a path is a link: what is found there is another file.
pub(super) fn has_symlink_parent(repository: &Repository, path: &BStr) -> bool {
    let is_link =
        |folder: &[u8]| repository.absolute_path(folder).symlink_metadata().is_ok_and(|found| found.is_symlink());
    path.find_iter(b"/").any(|slash| is_link(&path[..slash]))
}

/// Returns a file's stat data if its bytes are those of an entry.
pub(crate) fn stat_if_unchanged(repo: &gix::Repository, file: &Path, entry: &gix::index::Entry) -> Option<Stat> {
    if !matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE) {
        return None;
    }
    let opened = open_regular_file(file).ok()?;
    let found = gix::index::fs::Metadata::from_file(&opened).ok()?;
    let stat = Stat::from_fs(&found).ok()?;
    if repo.find_header(entry.id).ok()?.size() != found.len() {
        return None;
    }
    let progress = &mut gix::progress::Discard;
    let stop = &AtomicBool::new(false);
    let kind = (gix::objs::Kind::Blob, entry.id.kind());
    let id = gix::objs::compute_stream_hash(kind.1, kind.0, &mut &opened, found.len(), progress, stop).ok()?;
    (id == entry.id).then_some(stat)
}

/// Returns what is neither tracked nor ignored, including pipes and the like, which git itself does not report.
///
/// If `untracked_paths` lists all candidates, only the folders among them are walked.
fn find_untracked(
    repo: &gix::Repository,
    repository: &Repository,
    index: &State,
    untracked_paths: Option<&[BString]>,
) -> gix::Result<Vec<(BString, ScanFinding)>> {
    let Some(untracked_paths) = untracked_paths else { return walk_untracked(repo, repository, index, &[]) };
    let mut found = Vec::new();
    let mut folders = Vec::new();
    let mut rules = repository.read_ignore_rules(repo, index)?;
    for path in untracked_paths.iter().filter(|path| !repository.is_runner_path(path)) {
        let Ok(kind) = repository.absolute_path(path).symlink_metadata().map(|found| found.file_type()) else {
            continue;
        };
        let mode = if kind.is_dir() { Mode::DIR } else { Mode::FILE };
        if rules.at_entry(path.as_bstr(), Some(mode)).map_err(gix::Error::from_error)?.is_excluded() {
            continue;
        }
        if kind.is_dir() {
            folders.push([b":(top,literal)", path.as_slice()].concat().into());
        } else {
            let is_stored = kind.is_file() || kind.is_symlink();
            found.push((path.clone(), if is_stored { ScanFinding::New } else { ScanFinding::Unstorable }));
        }
    }
    if !folders.is_empty() {
        found.extend(walk_untracked(repo, repository, index, &folders)?);
    }
    Ok(found)
}

/// Returns the pipes, sockets and devices, which git does not report, if the library's walk can recognize them.
pub(crate) fn find_unstorable_files(repo: &gix::Repository, repository: &Repository, index: &State) -> Vec<BString> {
    let found = walk_untracked(repo, repository, index, &[]).unwrap_or_default();
    found.into_iter().filter(|(_, finding)| *finding == ScanFinding::Unstorable).map(|(path, _)| path).collect()
}

/// Returns what the library's walk finds that is neither tracked nor ignored, everywhere or within the patterns.
fn walk_untracked(
    repo: &gix::Repository,
    repository: &Repository,
    index: &State,
    patterns: &[BString],
) -> gix::Result<Vec<(BString, ScanFinding)>> {
    let mut untracked = UntrackedCollector(Vec::new());
    repository.walk_untracked(repo, index, patterns, &mut untracked)?;
    Ok(untracked.0)
}

struct UntrackedCollector(Vec<(BString, ScanFinding)>);

impl Delegate for UntrackedCollector {
    fn emit(&mut self, entry: EntryRef<'_>, _: Option<Status>) -> Action {
        let finding = match (entry.status, entry.disk_kind) {
            (Status::Untracked, Some(Kind::File | Kind::Symlink)) => Some(ScanFinding::New),
            (Status::Untracked, Some(Kind::Repository)) => Some(ScanFinding::NewRepository),
            (Status::Untracked, Some(Kind::Untrackable)) => Some(ScanFinding::Unstorable),
            _ => None,
        };
        self.0.extend(finding.map(|finding| (entry.rela_path.into_owned(), finding)));
        Action::Continue(())
    }
}

impl<'index> VisitEntry<'index> for WorktreeScan {
    type ContentChange = ObjectId;
    type SubmoduleStatus = ();

    fn visit_entry(&mut self, entry: Entry<'index, ObjectId, ()>) {
        if let Entry::Modification { entry_index, rela_path, status, .. } = entry {
            self.record_status(entry_index, rela_path, &status);
        }
    }
}

/// Compares a submodule's HEAD with its entry, whether or not `.gitmodules` lists it.
#[derive(Clone)]
struct SubmoduleHeads {
    repository: Repository,
}

impl SubmoduleStatus for SubmoduleHeads {
    type Output = ();

    fn status(&mut self, entry: &gix::index::Entry, path: &BStr) -> gix::Result<Option<()>> {
        let head = read_head_commit(&self.repository.absolute_path(path));
        Ok(head.filter(|head| *head != entry.id).map(drop))
    }
}
