//! Reads the commits of a branch, oldest first, while those already read are being judged.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use protocol::verify::AuditReport;
use runner_core::audit::{
    AuditPlan, BranchAudit, BranchEnd, CommitDiff, CommitHeader, PathChange, PathEntry, UnreadableObject, WatchPoint,
    is_content_read, parse_changes,
};
use runner_core::committed_state::StateFiles;
use runner_core::guard::watched_files::{CheckDigests, WatchedFiles, is_compared_by_content};
use runner_git::{ChainChange, ChainCommit, ChainFile, CommitChain, GitError, Id, Repository};
use runner_process::SpawnError;
use tokio_util::sync::CancellationToken;

use super::VerifyTarget;
use crate::repo::layout::Layout;
use crate::worker::{self, LoadError, MAX_REVIEWED_BYTES};
use crate::workspace::WorkspaceError;

/// Maximum number of commits in one branch.
const MAX_COMMITS: usize = 1_000_000;
/// Maximum number of commits read ahead of judging: each may hold a tree of 20,000 nodes.
const READ_AHEAD: usize = 8;

/// Why a branch could not be read.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A commit that existed is missing.
    #[error("commit {0} is no longer here")]
    MissingCommit(Id),
    /// Text that should be a commit id is not one.
    #[error("`{0}` is not a commit id")]
    InvalidCommit(String),
    /// What is committed cannot be read.
    #[error(transparent)]
    State(#[from] Box<LoadError>),
    /// The folder for running a guard again could not be created or removed.
    #[error("making or removing {path}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A guard could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// Files that a workspace should have could not be copied.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The program that verifies signatures cannot be run.
    #[error("ssh-keygen cannot be run")]
    Keygen(#[source] std::io::Error),
    /// The audit was cancelled.
    #[error("it was ended before it was done")]
    Interrupted,
}

/// Audits the branch of a run until it is cancelled. With `is_live`, whatever follows the last receipt belongs to a
/// session and is not judged.
pub fn verify_branch(
    repository: &Repository,
    target: &VerifyTarget,
    is_live: bool,
    stop: &CancellationToken,
) -> Result<AuditReport, VerifyError> {
    let chain = repository.open_chain()?;
    let (commits, plan) = read_plan(&chain, repository, target, stop)?;
    check_rules(&plan)?;
    let branch = AuditedCommits { repository, first: commits.len() - plan.commits().len(), commits, chain };
    branch.run_audit(plan, is_live, stop)
}

/// Returns the commits of a run's branch with the owner of each, without judging them.
pub fn plan_audit(
    repository: &Repository,
    target: &VerifyTarget,
    stop: &CancellationToken,
) -> Result<AuditPlan, VerifyError> {
    Ok(read_plan(&repository.open_chain()?, repository, target, stop)?.1)
}

/// Fails if any of these commits follows other rules: the owners of the others are then unknown.
pub(super) fn check_rules(plan: &AuditPlan) -> Result<(), VerifyError> {
    let first = plan.all_commits().len() - plan.commits().len();
    let Some((at, source)) = plan.commits_of_other_rules().find(|(at, _)| *at >= first) else { return Ok(()) };
    let id = &plan.all_commits()[at].id;
    let commit = id.parse().map_err(|_| VerifyError::InvalidCommit(id.clone()))?;
    Err(Box::new(LoadError::Rules { commit, source: source.clone() }).into())
}

fn read_plan(
    chain: &CommitChain<'_>,
    repository: &Repository,
    target: &VerifyTarget,
    stop: &CancellationToken,
) -> Result<(Vec<ChainCommit>, AuditPlan), VerifyError> {
    let mut commits = read_branch(chain, target, stop)?;
    repository.recode_messages(&mut commits)?;
    let end = find_end(repository, &commits)?;
    let plan = AuditPlan::new(&target.run, commits.iter().map(to_commit_header).collect(), end);
    Ok((commits, plan))
}

/// Returns where these commits, oldest first, end.
fn find_end(repository: &Repository, commits: &[ChainCommit]) -> Result<BranchEnd, GitError> {
    let Some(oldest) = commits.first().filter(|oldest| !oldest.parents.is_empty()) else { return Ok(BranchEnd::Root) };
    if commits.len() >= MAX_COMMITS {
        return Ok(BranchEnd::TooLong);
    }
    if repository.is_shallow_at(&oldest.id)? {
        return Ok(BranchEnd::Shallow);
    }
    Ok(if repository.is_partial()? { BranchEnd::Partial } else { BranchEnd::Missing })
}

/// The commits of a branch.
struct AuditedCommits<'a> {
    repository: &'a Repository,
    chain: CommitChain<'a>,
    commits: Vec<ChainCommit>,
    /// Index of the first commit to judge.
    first: usize,
}

impl AuditedCommits<'_> {
    /// Judges the commits as far as they can be read.
    fn run_audit(&self, plan: AuditPlan, is_live: bool, stop: &CancellationToken) -> Result<AuditReport, VerifyError> {
        let (before, unread) = match split_unreadable(self.initial_files(&plan))? {
            Ok(before) => (before, None),
            Err(why) => (Vec::new(), Some((self.first.saturating_sub(1), why))),
        };
        let audit = BranchAudit::new(plan, &before);
        let (mut audit, unread) = if unread.is_some() { (audit, unread) } else { self.read_commits(audit, stop)? };
        if let Some((at, why)) = unread {
            let commit = &self.commits[at];
            let before = self.parent(at).map(|commit| &commit.tree);
            let trees = skip_unreadable(self.chain.find_tree_faults(before, &commit.tree))?.unwrap_or_default();
            audit.push_unreadable(&commit.id.to_string(), &trees, &why, self.repository.is_partial()?);
        }
        Ok(audit.finish(is_live))
    }

    /// Reads commit after commit while earlier ones are being judged; returns the position of one that cannot be read.
    fn read_commits(
        &self,
        audit: BranchAudit,
        stop: &CancellationToken,
    ) -> Result<(BranchAudit, Option<(usize, UnreadableObject)>), VerifyError> {
        let lookups: Vec<ReceiptLookup> =
            (0..audit.commits().len()).map(|at| ReceiptLookup::for_commit(&audit, at)).collect();
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(READ_AHEAD);
            let judge = scope.spawn(move || judge_commits(audit, receiver));
            let mut unread = None;
            for (at, lookup) in (self.first..).zip(&lookups) {
                check_cancelled(stop)?;
                let link = match split_unreadable(self.read_diff(at, lookup))? {
                    Ok(link) => link,
                    Err(why) => {
                        unread = Some((at, why));
                        break;
                    }
                };
                let reading = parse_changes(&link.changes);
                if sender.send((link, reading)).is_err() {
                    break;
                }
            }
            drop(sender);
            Ok((judge.join().unwrap_or_else(|panic| resume_unwind(panic)), unread))
        })
    }

    fn read_diff(&self, at: usize, lookup: &ReceiptLookup) -> Result<CommitDiff, GitError> {
        let commit = &self.commits[at];
        let before = self.parent(at).map(|commit| &commit.tree);
        let changes = self.chain.diff_trees(before, &commit.tree, is_content_read)?;
        let missing = self.find_missing_files(&changes);
        let changes: Vec<PathChange> = changes.into_iter().map(to_path_change).collect();
        // A receipt may name anything: what is not a blob is not the stored text.
        let raw = lookup.raw.map(|raw| match self.chain.read_blob(&raw) {
            Err(GitError::Corrupt { .. }) => Ok(None),
            read => read,
        });
        let raw = raw.transpose()?.flatten();
        let diff = |from| self.repository.diff_paths(&from, &commit.id, is_code, MAX_REVIEWED_BYTES);
        // What precedes a cut is not here, so what a reviewer has seen since then is unknown.
        let is_here = |from: &Id| self.commits[..at].iter().rev().any(|commit| commit.id == *from);
        let diff = lookup.reviewed_from.filter(is_here).map(diff).transpose()?;
        let (watched, begun) = self.read_watched(at, lookup.watch_at)?;
        let checks = self.read_checks(&changes)?;
        Ok(CommitDiff {
            changes,
            raw,
            diff,
            trees: self.chain.find_tree_faults(before, &commit.tree)?,
            watched,
            start_watched: begun,
            checks,
            missing,
        })
    }

    /// Returns the paths of changed files whose content is missing.
    fn find_missing_files(&self, changes: &[ChainChange]) -> Vec<String> {
        let added = changes.iter().filter_map(|(path, _, new)| Some((path, new.as_ref()?)));
        let gone = added.filter(|(_, file)| !self.chain.has_file(file));
        gone.map(|(path, _)| String::from_utf8_lossy(path).into_owned()).collect()
    }

    /// Returns the files watched for the guard; `None` if bookkeeping or configuration cannot be read, which is
    /// reported when these are read.
    fn read_watched(
        &self,
        at: usize,
        point: Option<WatchPoint>,
    ) -> Result<(Option<WatchedFiles>, Option<WatchedFiles>), GitError> {
        let readable = |read: Result<WatchedFiles, LoadError>| match read {
            Ok(watched) => Ok(Some(watched)),
            Err(LoadError::Git(error)) => Err(error),
            Err(_) => Ok(None),
        };
        let commit = &self.commits[at].id;
        Ok(match (point, self.parent(at)) {
            (None, _) | (Some(WatchPoint::From), None) => (None, None),
            (Some(WatchPoint::Start), _) => (None, readable(worker::watched_from_start(self.repository, *commit))?),
            (Some(WatchPoint::From), Some(from)) => {
                (readable(worker::watched_at_commit(self.repository, from.id))?, None)
            }
        })
    }

    /// Returns what the changed manifests say about checks.
    fn read_checks(&self, changes: &[PathChange]) -> Result<CheckDigests, GitError> {
        let mut checks = CheckDigests::default();
        for (path, stored) in changes.iter().filter_map(|change| Some((&change.path, change.new.as_ref()?))) {
            let Some(path) = str::from_utf8(path).ok().filter(|path| is_compared_by_content(path)) else { continue };
            let id = stored.id.parse().ok();
            if let Some(bytes) = id.map(|id| self.chain.read_blob(&id)).transpose()?.flatten() {
                checks.add(path, &stored.id, &bytes);
            }
        }
        Ok(checks)
    }

    fn parent(&self, at: usize) -> Option<&ChainCommit> {
        at.checked_sub(1).and_then(|at| self.commits.get(at))
    }

    /// Returns every file under `.runner/` before the first commit as if that commit had added it; for a fork's base,
    /// every file.
    fn initial_files(&self, plan: &AuditPlan) -> Result<Vec<PathChange>, GitError> {
        let Some(ChainCommit { tree, .. }) = self.parent(self.first) else { return Ok(Vec::new()) };
        if plan.begins_at_iteration() {
            return Ok(self.chain.diff_trees(None, tree, is_content_read)?.into_iter().map(to_path_change).collect());
        }
        let files = self.chain.list_files(tree, Layout::FOLDER, is_content_read)?;
        let root_files = self.chain.list_root_files(tree, is_content_read)?;
        Ok(files
            .into_iter()
            .chain(root_files)
            .map(|(path, file)| PathChange { path, old: None, new: Some(to_path_entry(file)) })
            .collect())
    }
}

/// Judges commits as they are read, on its own thread.
fn judge_commits(mut audit: BranchAudit, read: Receiver<(CommitDiff, StateFiles)>) -> BranchAudit {
    for (link, reading) in read {
        audit.push_commit(&link, &reading);
    }
    audit
}

/// Separates objects that git lacks or cannot read from other failures, which remain errors.
fn split_unreadable<T>(read: Result<T, GitError>) -> Result<Result<T, UnreadableObject>, GitError> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(GitError::Corrupt { .. }) => Ok(Err(UnreadableObject::Missing)),
        Err(GitError::HashMismatch { id, .. }) => Ok(Err(UnreadableObject::Replaced(id.to_string()))),
        Err(error) => Err(error),
    }
}

/// Returns `None` for objects that git lacks or cannot read; other failures remain errors.
pub(super) fn skip_unreadable<T>(read: Result<T, GitError>) -> Result<Option<T>, GitError> {
    Ok(split_unreadable(read)?.ok())
}

/// What is read in addition to a commit, because its receipt names it.
struct ReceiptLookup {
    raw: Option<Id>,
    reviewed_from: Option<Id>,
    watch_at: Option<WatchPoint>,
}

impl ReceiptLookup {
    fn for_commit(audit: &BranchAudit, at: usize) -> Self {
        let id = |id: Option<&str>| id.and_then(|id| id.parse().ok());
        Self {
            raw: id(audit.raw_tree_id(at)),
            reviewed_from: id(audit.review_base(at)),
            watch_at: audit.watch_point(at),
        }
    }
}

/// Reads all commits of a branch, as far as they are here, and returns them oldest first.
///
/// The start of a run is not known in advance: its own bookkeeping defines it, and anyone who writes to the branch can
/// write that.
fn read_branch(
    chain: &CommitChain<'_>,
    target: &VerifyTarget,
    stop: &CancellationToken,
) -> Result<Vec<ChainCommit>, VerifyError> {
    let mut commits = Vec::new();
    let mut next = Some(target.tip);
    while let Some(id) = next.filter(|_| commits.len() < MAX_COMMITS) {
        check_cancelled(stop)?;
        let commit = match chain.read_commit(&id) {
            Ok(Some(commit)) => commit,
            Ok(None) | Err(GitError::Corrupt { .. }) => break,
            Err(error) => return Err(error.into()),
        };
        next = commit.parents.first().copied();
        commits.push(commit);
    }
    if commits.is_empty() {
        return Err(VerifyError::MissingCommit(target.tip));
    }
    commits.reverse();
    Ok(commits)
}

fn check_cancelled(stop: &CancellationToken) -> Result<(), VerifyError> {
    if stop.is_cancelled() { Err(VerifyError::Interrupted) } else { Ok(()) }
}

fn is_code(path: &[u8]) -> bool {
    !path.starts_with(b".runner/")
}

fn to_commit_header(commit: &ChainCommit) -> CommitHeader {
    CommitHeader {
        id: commit.id.to_string(),
        parents: commit.parents.iter().map(ToString::to_string).collect(),
        headers: commit.header.clone(),
        message: commit.message.clone(),
        recoded: commit.recoded_message.clone(),
    }
}

fn to_path_change((path, old, new): ChainChange) -> PathChange {
    PathChange { path, old: old.map(to_path_entry), new: new.map(to_path_entry) }
}

fn to_path_entry(file: ChainFile) -> PathEntry {
    let is_file = file.mode & 0o170_000 == 0o100_000;
    PathEntry { mode: file.mode, id: file.id.to_string(), content: file.content.filter(|_| is_file) }
}
