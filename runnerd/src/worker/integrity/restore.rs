//! Checks after every process what it must not have changed, and restores it.
//!
//! Git's own folder first, then history: HEAD, the branch, From among its ancestors. Then the runner's files under
//! `.runner/`. Findings are saved in `live/` before anything is restored, so that a crash in between does not lose
//! them; work that would be lost is kept under a rescue ref.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use protocol::words::PhaseName;
use runner_git::{
    CommitEntry, EntryKind, GitDirSnapshot, Head, HoldBackRule, Id, Repository, RestoreOptions, SnapshotRequest,
};
use serde::{Deserialize, Serialize};

use crate::repo::durable::{self, FileAccess};
use crate::repo::layout::{Layout, PathOwnership, path_ownership};
use crate::repo::sealed::{Sealable, SealedFile};
use crate::worker::cleanup::{clear_leftovers, clear_path_for_dir, remove_path};
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::git_dir;
use crate::worker::integrity::hold_back::hold_back_rule;
use crate::worker::integrity::path_content::{PathContent, is_absent, is_executable, put_file, read_content};
use crate::worker::integrity::quarantine::Quarantine;
use crate::worker::integrity::refusing_rules::RefusingRules;
use crate::worker::load::{CommittedState, LoadError};

/// Snapshot taken before a process whose changes are all discarded (the reviewer).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorktreeBaseline {
    /// The commit at the tip of the run's branch.
    pub tip: Id,
    /// A snapshot of all files.
    pub files: Id,
}

/// What was found and restored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RestoreReport {
    /// How history was rewritten.
    pub history: Option<String>,
    /// Where HEAD pointed, if the run's branch still contained From.
    pub elsewhere: Option<String>,
    /// Paths of the runner's files that were changed.
    pub reverted: Vec<String>,
    /// References of others that were moved; they are left where they are.
    pub moved_refs: Vec<String>,
    /// Paths written by a process whose changes are all discarded.
    pub wrote: Vec<String>,
}

impl Sealable for WorktreeBaseline {
    const KIND: &'static str = "scenery";
    const VERSION: u32 = 1;
}

/// The commit that preserves what a process left, until it has been restored.
#[derive(Debug, Serialize, Deserialize)]
struct RescueCommit(Id);

impl Sealable for RescueCommit {
    const KIND: &'static str = "rescue";
    const VERSION: u32 = 1;
}

impl Sealable for RestoreReport {
    const KIND: &'static str = "found";
    const VERSION: u32 = 1;
}

impl RestoreReport {
    fn add_reverted(&mut self, paths: impl IntoIterator<Item = String>) {
        self.reverted.extend(paths);
        self.reverted.sort();
        self.reverted.dedup();
    }
}

/// Which process of which iteration to check after.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RestoreRequest<'a> {
    /// The commit from which the session began.
    pub from: Id,
    /// Number of the iteration.
    pub iter: u32,
    /// The phase of the process.
    pub phase: PhaseName,
    /// The task tree to write; `None` leaves whatever the process left.
    pub tree: Option<&'a [u8]>,
    /// The state to return to, if nothing that the process wrote may stay.
    pub baseline: Option<WorktreeBaseline>,
}

/// Checks what a process must not have changed, and restores it. Idempotent: repeated, it reports the same.
///
/// The caller has cleared what nothing can read, with [`clear_unreadable`](super::unreadable::clear_unreadable).
pub(crate) fn restore_after_process(
    context: &RunContext,
    repository: &Repository,
    loaded: &CommittedState,
    request: RestoreRequest<'_>,
) -> Result<RestoreReport, EffectError> {
    Restorer { context, repository, loaded, request, before: git_dir::read_snapshot(context, request.iter)? }
        .restore_all()
}

/// Notes changes by a process of an iteration that are about to be restored before everything else.
pub(crate) fn note_restored(
    context: &RunContext,
    iter: u32,
    phase: PhaseName,
    names: impl IntoIterator<Item = String>,
) -> Result<(), EffectError> {
    let mut names = names.into_iter().peekable();
    if names.peek().is_none() {
        return Ok(());
    }
    let note = context.iteration_note::<RestoreReport>(iter, phase);
    let mut report = note.read()?.unwrap_or_default();
    report.add_reverted(names);
    Ok(note.write(&report)?)
}

/// The expected content of a path that has something else: a file of From, a text, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ExpectedFile {
    Entry(CommitEntry),
    Text(Vec<u8>),
    Absent,
}

/// How HEAD or the run's branch deviates from the required state.
#[derive(Debug)]
enum BranchDeviation {
    /// The branch no longer contains From, or an operation of git's is in progress or garbled.
    Rewritten(String),
    /// HEAD is elsewhere, but the branch still contains From. A person may have done that: the reflogs, which a session
    /// can write, prove nothing.
    Elsewhere(String),
}

/// Checks and restores after one process.
struct Restorer<'a> {
    context: &'a RunContext,
    repository: &'a Repository,
    loaded: &'a CommittedState,
    request: RestoreRequest<'a>,
    /// Git's own folder as it was before the process.
    before: Option<GitDirSnapshot>,
}

impl Restorer<'_> {
    fn restore_all(&self) -> Result<RestoreReport, EffectError> {
        let report = self.find_and_restore();
        if report.as_ref().map_or(true, |found| *found != RestoreReport::default()) {
            self.context.last_scan.invalidate();
        }
        report
    }

    fn find_and_restore(&self) -> Result<RestoreReport, EffectError> {
        // Empty if nothing has been found yet: findings are written down before anything is restored.
        let mut report = self.report_note().read()?.unwrap_or_default();
        // Before any git command: git must work on the same repository as before.
        self.restore_git_dir(&mut report)?;
        clear_leftovers(self.repository)?;
        let is_elsewhere = if let Some(baseline) = self.request.baseline {
            self.compare_with_baseline(baseline, &mut report)?
        } else {
            if report.history.is_none() && report.elsewhere.is_none() {
                match self.check_branch(self.request.from)? {
                    Some(BranchDeviation::Rewritten(how)) => report.history = Some(how),
                    Some(BranchDeviation::Elsewhere(position)) => report.elsewhere = Some(position),
                    None => {}
                }
            }
            report.history.is_some() || report.elsewhere.is_some()
        };
        // Off From's line of history, files do not show what was done to them.
        if !is_elsewhere {
            self.reset_modes()?;
            report.add_reverted(self.find_wrong_files()?.into_keys().map(|path| path.display().to_string()));
        }
        self.save_report(&report)?;
        if report.history.is_some() || report.elsewhere.is_some() || !report.wrote.is_empty() {
            self.rescue_and_reset()?;
        }
        if let Some(before) = &self.before {
            let RestoreRequest { from, iter, .. } = self.request;
            let inside = git_dir::restore_refs_and_index(self.context, self.repository, before, from, iter)?;
            report.add_reverted(inside.restored);
            report.moved_refs = inside.moved_refs;
            self.save_report(&report)?;
        }
        if self.request.baseline.is_none() {
            let rules = RefusingRules::find(self.context, self.repository, self.request.from)?;
            report.add_reverted(rules.paths().iter().cloned());
            self.save_report(&report)?;
            rules.restore(self.context, self.request.iter)?;
        }
        // Rescued and restored paths may include files.
        if report != RestoreReport::default() {
            for (path, expected) in self.find_wrong_files()? {
                self.restore_file(&path, expected)?;
            }
        }
        Ok(report)
    }

    /// Restores what the process must not have changed in git's own folder.
    fn restore_git_dir(&self, report: &mut RestoreReport) -> Result<(), EffectError> {
        let Some(before) = &self.before else { return Ok(()) };
        git_dir::save_suspects(self.context, before)?;
        self.repository.check_git_dir(before)?;
        // Writing there would write to someone else's file.
        report.add_reverted(self.repository.replace_linked_files(before)?);
        let tampered = self.repository.find_changed_git_files(before)?;
        let is_intact = tampered.is_empty();
        report.add_reverted(tampered);
        self.save_report(report)?;
        if is_intact { Ok(()) } else { git_dir::restore_git_dir(self.repository, before, &self.quarantine()) }
    }

    /// Saves the findings, before anything is restored.
    fn save_report(&self, report: &RestoreReport) -> Result<(), EffectError> {
        if *report == RestoreReport::default() {
            return Ok(());
        }
        Ok(self.report_note().write(report)?)
    }

    fn quarantine(&self) -> Quarantine<'_> {
        Quarantine::for_iteration(self.context, self.request.iter)
    }

    fn report_note(&self) -> SealedFile<RestoreReport> {
        self.context.iteration_note(self.request.iter, self.request.phase)
    }

    fn hold_back_rule(&self) -> Result<HoldBackRule, LoadError> {
        hold_back_rule(self.context, self.repository, self.loaded)
    }

    /// Adds what is not as it was before the process; returns whether HEAD is elsewhere.
    fn compare_with_baseline(
        &self,
        baseline: WorktreeBaseline,
        report: &mut RestoreReport,
    ) -> Result<bool, EffectError> {
        let deviation = match self.check_branch(baseline.tip)? {
            Some(BranchDeviation::Rewritten(moved) | BranchDeviation::Elsewhere(moved)) => Some(moved),
            None if self.repository.find_branch_tip(&self.context.branch())? == Some(baseline.tip) => None,
            None => Some("commits were made".to_owned()),
        };
        let is_elsewhere = deviation.is_some();
        let written = match deviation {
            Some(moved) => vec![moved],
            None => self.repository.list_changed_since(&baseline.files, &self.hold_back_rule()?)?,
        };
        report.wrote.extend(written);
        report.wrote.sort();
        report.wrote.dedup();
        Ok(is_elsewhere)
    }

    /// Returns the deviation of HEAD and branch, if any: HEAD must be on the branch, and the branch must contain
    /// `from`.
    fn check_branch(&self, from: Id) -> Result<Option<BranchDeviation>, EffectError> {
        let branch = self.context.branch();
        self.repository.check_commit_exists(&from)?;
        if let Some(unreadable) = self.repository.find_unreadable_ref(&branch)? {
            return Ok(Some(BranchDeviation::Rewritten(unreadable)));
        }
        if let Some(operation) = self.repository.operation() {
            return Ok(Some(BranchDeviation::Rewritten(format!("a {operation} was left under way"))));
        }
        let elsewhere = match self.repository.head()? {
            Head::Branch { name, commit } if name == branch => {
                return Ok(self.describe_rewrite(from, commit)?.map(BranchDeviation::Rewritten));
            }
            Head::Branch { name, .. } => format!("HEAD was moved to branch {name}"),
            Head::Detached { .. } => "HEAD was detached".to_owned(),
        };
        let is_branch_intact = self.describe_rewrite(from, self.repository.find_branch_tip(&branch)?)?.is_none();
        Ok(Some(if is_branch_intact {
            BranchDeviation::Elsewhere(elsewhere)
        } else {
            BranchDeviation::Rewritten(elsewhere)
        }))
    }

    fn describe_rewrite(&self, from: Id, tip: Option<Id>) -> Result<Option<String>, EffectError> {
        git_dir::describe_rewrite(&self.context.branch(), self.repository, from, tip)
    }

    /// Preserves everything under a rescue ref, then resets HEAD, branch and work tree to From, or to the baseline.
    fn rescue_and_reset(&self) -> Result<(), EffectError> {
        let (context, RestoreRequest { from, iter, phase, baseline, .. }) = (self.context, self.request);
        let WorktreeBaseline { tip, files: to } = baseline.unwrap_or(WorktreeBaseline { tip: from, files: from });
        let branch = context.branch();
        let hold_back = self.hold_back_rule()?;
        let rescue_note = context.iteration_note::<RescueCommit>(iter, format_args!("{phase}-rescue"));
        let mut is_complete = true;
        let rescue = match rescue_note.read()? {
            // That attempt moved the references first: correct references say nothing about the files.
            Some(RescueCommit(commit)) => commit,
            None if self.is_intact()? => return Ok(()),
            None => {
                is_complete = git_dir::repair_branch(context, self.repository, self.before.as_ref(), tip, iter)?;
                let snapshot = self.repository.create_snapshot(&SnapshotRequest {
                    name: &self.rescue_ref()?,
                    message: &format!("rescue: run {} iteration {iter:04}, {phase}", context.run),
                    author: RunContext::identity(self.repository),
                    hold_back: &hold_back,
                    restore_target: Some(to),
                })?;
                rescue_note.write(&RescueCommit(snapshot.commit))?;
                snapshot.commit
            }
        };
        self.repository.restore(&RestoreOptions { branch: &branch, target: to, tip, rescue, hold_back: &hold_back })?;
        (!is_complete).then(|| self.repository.prune_reflogs(&branch)).transpose()?;
        rescue_note.remove()?;
        tracing::warn!(run = context.run, iter, %phase, %rescue, "saved and restored");
        Ok(())
    }

    /// Whether everything is already in the state that `rescue_and_reset` would restore.
    fn is_intact(&self) -> Result<bool, EffectError> {
        let Some(baseline) = self.request.baseline else { return Ok(self.check_branch(self.request.from)?.is_none()) };
        let mut report = RestoreReport::default();
        self.compare_with_baseline(baseline, &mut report)?;
        Ok(report.wrote.is_empty())
    }

    /// Names the ref that preserves what was found; a reviewer may need more than one.
    fn rescue_ref(&self) -> Result<String, EffectError> {
        let name = runner_core::publish::rescue_ref(&self.context.run, self.request.iter);
        if self.request.baseline.is_none() {
            return Ok(name);
        }
        let existing_refs = self.repository.list_refs()?;
        let candidates = (1..=u32::MAX).map(|number| format!("{name}-{}{number}", self.request.phase));
        Ok(candidates.into_iter().find(|name| !existing_refs.contains_key(name)).unwrap_or(name))
    }

    /// Compares `.runner/` with From; returned paths are relative to the work tree.
    fn find_wrong_files(&self) -> Result<BTreeMap<PathBuf, ExpectedFile>, EffectError> {
        let mut expected_files = BTreeMap::new();
        let entries = self.repository.list_entries(&self.request.from, Layout::FOLDER)?;
        let path_of = |entry: &CommitEntry| PathBuf::from(OsStr::from_bytes(&entry.path));
        let mut expected_entries: BTreeMap<PathBuf, CommitEntry> =
            entries.into_iter().map(|entry| (path_of(&entry), entry)).collect();
        for path in list_runner_files(self.context)? {
            let entry = expected_entries.remove(&path);
            expected_files.extend(self.expected_at(&path, entry)?.map(|right| (path, right)));
        }
        for (path, entry) in expected_entries {
            expected_files.extend(self.expected_if_missing(&path.to_string_lossy(), entry).map(|right| (path, right)));
        }
        Ok(expected_files)
    }

    /// Resets the executable bits of the runner's files to those in From: a `chmod -R` over the work tree does not
    /// count as a change to them, and their committed mode is checked.
    fn reset_modes(&self) -> Result<(), EffectError> {
        if !self.repository.has_executable_bit()? {
            return Ok(());
        }
        let entries = self.repository.list_entries(&self.request.from, Layout::FOLDER)?;
        let kinds: BTreeMap<Vec<u8>, EntryKind> = entries.into_iter().map(|entry| (entry.path, entry.kind)).collect();
        for path in list_runner_files(self.context)? {
            let ownership = path_ownership(strip_runner_dir(&path.to_string_lossy()));
            let is_checked = matches!(ownership, PathOwnership::Runner | PathOwnership::AppendOnly);
            let kind = match kinds.get(path.as_os_str().as_bytes()) {
                Some(kind @ EntryKind::Executable) => *kind,
                _ => EntryKind::File,
            };
            let file = self.context.layout.root().join(&path);
            if !(is_checked || path.as_os_str() == Layout::TREE)
                || is_executable(&file)?.is_none_or(|is| is == kind.is_executable())
            {
                continue;
            }
            // Replaces rather than edits: the file may be a hard link to someone else's.
            if let PathContent::File(bytes) = read_content(&file)? {
                put_file(&file, kind, &bytes)?;
            }
        }
        Ok(())
    }

    /// Returns what should be at a path of From that is gone; agents may remove their own files.
    fn expected_if_missing(&self, path: &str, entry: CommitEntry) -> Option<ExpectedFile> {
        if path == Layout::TREE {
            return self.expected_tree();
        }
        matches!(path_ownership(strip_runner_dir(path)), PathOwnership::Runner | PathOwnership::AppendOnly)
            .then_some(ExpectedFile::Entry(entry))
    }

    /// The expected task tree, if the request has one; the agent's own is judged in `inspect`.
    fn expected_tree(&self) -> Option<ExpectedFile> {
        self.request.tree.map(|text| ExpectedFile::Text(text.to_vec()))
    }

    /// Returns what should be at a path, if it has something else.
    fn expected_at(&self, path: &Path, entry: Option<CommitEntry>) -> Result<Option<ExpectedFile>, EffectError> {
        let file = self.context.layout.root().join(path);
        let name = &*path.to_string_lossy();
        if name == Layout::TREE {
            return Ok(self.expected_tree_at(read_content(&file)?, entry));
        }
        let ownership = path_ownership(strip_runner_dir(name));
        if matches!(ownership, PathOwnership::Agent | PathOwnership::Ignored) {
            return Ok(None);
        }
        let content = read_content(&file)?;
        let (Some(entry), PathContent::File(bytes)) = (&entry, &content) else {
            // An agent may create a memory file that From lacks.
            let is_new_memory =
                entry.is_none() && Layout::MEMORY.contains(&name) && matches!(content, PathContent::File(_));
            return Ok((!is_new_memory).then(|| entry.map_or(ExpectedFile::Absent, ExpectedFile::Entry)));
        };
        let is_valid = match ownership {
            PathOwnership::AppendOnly => bytes.starts_with(&self.repository.read_blob(&entry.id)?),
            _ => self.repository.hash_blob(bytes)? == entry.id && entry.kind != EntryKind::Symlink,
        };
        Ok((!is_valid).then(|| ExpectedFile::Entry(entry.clone())))
    }

    /// Returns what the task tree should be, if it has something else. A file too large to be a task tree is not left
    /// for git to read either.
    fn expected_tree_at(&self, content: PathContent, entry: Option<CommitEntry>) -> Option<ExpectedFile> {
        match (self.expected_tree(), content) {
            (Some(ExpectedFile::Text(text)), PathContent::File(now)) if text == now => None,
            (None, PathContent::TooLarge) => Some(entry.map_or(ExpectedFile::Absent, ExpectedFile::Entry)),
            (right, _) => right,
        }
    }

    fn restore_file(&self, path: &Path, expected: ExpectedFile) -> Result<(), EffectError> {
        let file = self.context.layout.root().join(path);
        self.quarantine_file(&path.to_string_lossy(), &file)?;
        remove_path(&file)?;
        let (kind, bytes) = match expected {
            ExpectedFile::Absent => return Ok(()),
            ExpectedFile::Text(text) => (EntryKind::File, text),
            ExpectedFile::Entry(entry) => (entry.kind, self.repository.read_blob(&entry.id)?),
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        clear_path_for_dir(self.context, folder)?;
        durable::create_dir_below_unsynced(self.context.layout.root(), folder, FileAccess::Repository)?;
        put_file(&file, kind, &bytes)
    }

    /// Saves the current content of a path in the iteration's record.
    fn quarantine_file(&self, path: &str, file: &Path) -> Result<(), EffectError> {
        match read_content(file)? {
            PathContent::Absent => Ok(()),
            PathContent::TooLarge => self.quarantine().move_file(strip_runner_dir(path), file),
            PathContent::File(bytes) => self.quarantine().save(strip_runner_dir(path), &bytes),
        }
    }
}

/// Returns a path relative to `.runner/`.
fn strip_runner_dir(path: &str) -> &str {
    path.strip_prefix(".runner/").unwrap_or(path)
}

/// Lists every file and link under `.runner/`, except what git ignores there. Never follows links.
fn list_runner_files(context: &RunContext) -> Result<Vec<PathBuf>, EffectError> {
    let mut paths = Vec::new();
    let mut folders = vec![PathBuf::from(Layout::FOLDER)];
    while let Some(folder) = folders.pop() {
        let absolute = context.layout.root().join(&folder);
        match std::fs::symlink_metadata(&absolute) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                paths.push(folder);
                continue;
            }
            Err(error) if is_absent(&error) => continue,
            Err(error) => return Err(EffectError::io_error("looking at", &absolute)(error)),
        }
        for entry in std::fs::read_dir(&absolute).map_err(EffectError::io_error("listing", &absolute))? {
            let entry = entry.map_err(EffectError::io_error("listing", &absolute))?;
            let path = folder.join(entry.file_name());
            // Git ignores these only as folders; a link or a file in their place would be committed.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder || ![Layout::CONTEXT, Layout::ITERATIONS].iter().any(|ignored| path == Path::new(ignored)) {
                folders.push(path);
            }
        }
    }
    Ok(paths)
}
