//! Reads the commits of a branch, oldest first, and has each judged while the next are read.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use protocol::verify::AuditReport;
use runner_core::audit::{
    Audit, End, FileFault, Goal, Head, Link, PathChange, Plan, Readers, Reading, Settings, Stored, Unread, WatchAt,
    is_read,
};
use runner_core::watched::{Checks, Watched, is_told_by_content};
use tokio_util::sync::CancellationToken;

use super::Target;
use crate::causes::in_one_line;
use crate::config;
use crate::git::{Chain, ChainChange, ChainCommit, ChainFile, GitError, Id, Repository};
use crate::process::SpawnError;
use crate::repo::goal;
use crate::repo::layout::Layout;
use crate::worker::{self, LoadError, MAX_REVIEWED_BYTES, policy_of};
use crate::workspace::WorkspaceError;

/// Most commits of one branch.
const MAX_COMMITS: usize = 1_000_000;
/// Most commits that are read and not yet judged: each may hold a tree of 20,000 nodes.
const AHEAD: usize = 8;

/// Why a branch could not be read.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The repository.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A commit that was there is gone.
    #[error("commit {0} is no longer here")]
    Gone(Id),
    /// A commit that is no object id.
    #[error("`{0}` is not a commit id")]
    NoCommit(String),
    /// What is committed cannot be read.
    #[error(transparent)]
    State(#[from] Box<LoadError>),
    /// The folder in which a guard is run again.
    #[error("making or removing {path}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A guard could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// What a workspace is to have could not be brought.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// What holds signatures against keys cannot be run.
    #[error("ssh-keygen cannot be run")]
    Keygen(#[source] std::io::Error),
    /// It was told to end.
    #[error("it was ended before it was done")]
    Interrupted,
}

/// Audits the branch of a run, until it is told to stop. `is_live`: what follows the last receipt is a session's, and not
/// judged.
pub fn verify(
    repository: &Repository,
    target: &Target,
    is_live: bool,
    stop: &CancellationToken,
) -> Result<AuditReport, VerifyError> {
    let chain = repository.chain()?;
    let (commits, plan) = planned(&chain, (repository, target), stop)?;
    refuse_other_rules(&plan)?;
    let branch = Branch { repository, first: commits.len() - plan.heads().len(), commits, chain };
    branch.judged(plan, is_live, stop)
}

/// Returns the commits of the branch of a run, and whose each is, for who judges none of them.
pub fn plan(repository: &Repository, target: &Target, stop: &CancellationToken) -> Result<Plan, VerifyError> {
    Ok(planned(&repository.chain()?, (repository, target), stop)?.1)
}

/// Refuses a branch that has a commit of other rules among those that are looked at: whose the others are is not known.
pub(super) fn refuse_other_rules(plan: &Plan) -> Result<(), VerifyError> {
    let first = plan.all().len() - plan.heads().len();
    let Some((at, source)) = plan.of_other_rules().find(|(at, _)| *at >= first) else { return Ok(()) };
    let id = &plan.all()[at].id;
    let commit = id.parse().map_err(|_| VerifyError::NoCommit(id.clone()))?;
    Err(Box::new(LoadError::Rules { commit, source: source.clone() }).into())
}

fn planned(
    chain: &Chain<'_>,
    (repository, target): (&Repository, &Target),
    stop: &CancellationToken,
) -> Result<(Vec<ChainCommit>, Plan), VerifyError> {
    let mut commits = commits(chain, target, stop)?;
    repository.recode(&mut commits)?;
    let end = end_of(repository, &commits)?;
    let plan = Plan::new(&target.run, commits.iter().map(head).collect(), end);
    Ok((commits, plan))
}

/// Tells where these commits end, the oldest first.
fn end_of(repository: &Repository, commits: &[ChainCommit]) -> Result<End, GitError> {
    let Some(oldest) = commits.first().filter(|oldest| !oldest.parents.is_empty()) else { return Ok(End::Root) };
    if commits.len() >= MAX_COMMITS {
        return Ok(End::Long);
    }
    if repository.is_shallow_at(&oldest.id)? {
        return Ok(End::Shallow);
    }
    Ok(if repository.is_partial()? { End::Partial } else { End::Missing })
}

/// The commits of a branch.
struct Branch<'a> {
    repository: &'a Repository,
    chain: Chain<'a>,
    commits: Vec<ChainCommit>,
    /// The first that is judged.
    first: usize,
}

impl Branch<'_> {
    /// Has the commits judged as far as they can be read.
    fn judged(&self, plan: Plan, is_live: bool, stop: &CancellationToken) -> Result<AuditReport, VerifyError> {
        let (before, unread) = match known(self.standing(&plan))? {
            Ok(before) => (before, None),
            Err(why) => (Vec::new(), Some((self.first.saturating_sub(1), why))),
        };
        let audit = Audit::new(plan, READERS, &before);
        let (mut audit, unread) = if unread.is_some() { (audit, unread) } else { self.read(audit, stop)? };
        if let Some((at, why)) = unread {
            let (commit, before) = (&self.commits[at], self.parent(at).map(|commit| &commit.tree));
            let trees = found(self.chain.added(before, &commit.tree))?.unwrap_or_default();
            audit.unread(&commit.id.to_string(), (&trees, &why), self.repository.is_partial()?);
        }
        Ok(audit.finish(is_live))
    }

    /// Reads commit after commit, while those that were read are judged; returns the place of one that cannot be read.
    fn read(&self, audit: Audit, stop: &CancellationToken) -> Result<(Audit, Option<(usize, Unread)>), VerifyError> {
        let wanted: Vec<Beside> = (0..audit.heads().len()).map(|at| Beside::of(&audit, at)).collect();
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(AHEAD);
            let judge = scope.spawn(move || judge(audit, receiver));
            let mut unread = None;
            for (at, beside) in (self.first..).zip(&wanted) {
                go_on(stop)?;
                let link = match known(self.link(at, beside))? {
                    Ok(link) => link,
                    Err(why) => {
                        unread = Some((at, why));
                        break;
                    }
                };
                let reading = Reading::of(&link.changes, &READERS);
                if sender.send((link, reading)).is_err() {
                    break;
                }
            }
            drop(sender);
            Ok((judge.join().unwrap_or_else(|panic| resume_unwind(panic)), unread))
        })
    }

    fn link(&self, at: usize, beside: &Beside) -> Result<Link, GitError> {
        let commit = &self.commits[at];
        let before = self.parent(at).map(|commit| &commit.tree);
        let changes = self.chain.changes(before, &commit.tree, is_read)?;
        let missing = self.missing(&changes);
        let changes: Vec<PathChange> = changes.into_iter().map(change).collect();
        // A receipt may name anything: what is no blob is not the text that was kept.
        let raw = beside.raw.map(|raw| match self.chain.blob(&raw) {
            Err(GitError::Broken { .. }) => Ok(None),
            read => read,
        });
        let raw = raw.transpose()?.flatten();
        let diff = |from| self.repository.diff_of((&from, &commit.id), is_code, MAX_REVIEWED_BYTES);
        // What came before a cut is not here, and what a reviewer saw since then cannot be told.
        let is_here = |from: &Id| self.commits[..at].iter().rev().any(|commit| commit.id == *from);
        let diff = beside.reviewed_from.filter(is_here).map(diff).transpose()?;
        let (watched, begun) = self.watched(at, beside.watch_at)?;
        let checks = self.checks(&changes)?;
        Ok(Link { changes, raw, diff, trees: self.chain.added(before, &commit.tree)?, watched, begun, checks, missing })
    }

    /// Returns the paths of the files among some changes that are not here.
    fn missing(&self, changes: &[ChainChange]) -> Vec<String> {
        let added = changes.iter().filter_map(|(path, _, new)| Some((path, new.as_ref()?)));
        let gone = added.filter(|(_, file)| !self.chain.has(file));
        gone.map(|(path, _)| String::from_utf8_lossy(path).into_owned()).collect()
    }

    /// Tells what is watched for the guard; nothing where bookkeeping or configuration cannot be read, which is told by who
    /// reads these.
    fn watched(&self, at: usize, asked: Option<WatchAt>) -> Result<(Option<Watched>, Option<Watched>), GitError> {
        let readable = |read: Result<Watched, LoadError>| match read {
            Ok(watched) => Ok(Some(watched)),
            Err(LoadError::Git(error)) => Err(error),
            Err(_) => Ok(None),
        };
        let commit = &self.commits[at].id;
        Ok(match (asked, self.parent(at)) {
            (None, _) | (Some(WatchAt::From), None) => (None, None),
            (Some(WatchAt::Start), _) => (None, readable(worker::watched_from_start(self.repository, *commit))?),
            (Some(WatchAt::From), Some(from)) => (readable(worker::watched_at(self.repository, from.id))?, None),
        })
    }

    /// Tells what the manifests among some changes say of checks.
    fn checks(&self, changes: &[PathChange]) -> Result<Checks, GitError> {
        let mut checks = Checks::default();
        for (path, stored) in changes.iter().filter_map(|change| Some((&change.path, change.new.as_ref()?))) {
            let Some(path) = str::from_utf8(path).ok().filter(|path| is_told_by_content(path)) else { continue };
            let id = stored.id.parse().ok();
            if let Some(bytes) = id.map(|id| self.chain.blob(&id)).transpose()?.flatten() {
                checks.add(path, &stored.id, &bytes);
            }
        }
        Ok(checks)
    }

    fn parent(&self, at: usize) -> Option<&ChainCommit> {
        at.checked_sub(1).and_then(|at| self.commits.get(at))
    }

    /// Every file under `.runner/` before the first commit, as if that had added it; of a fork's base every file.
    fn standing(&self, plan: &Plan) -> Result<Vec<PathChange>, GitError> {
        let Some(ChainCommit { tree, .. }) = self.parent(self.first) else { return Ok(Vec::new()) };
        if plan.begins_at_iteration() {
            return Ok(self.chain.changes(None, tree, is_read)?.into_iter().map(change).collect());
        }
        let files = self.chain.below(tree, Layout::FOLDER, is_read)?;
        Ok(files.into_iter().map(|(path, file)| PathChange { path, old: None, new: Some(stored(file)) }).collect())
    }
}

/// Judges commits as they are read, on a processor of its own.
fn judge(mut audit: Audit, read: Receiver<(Link, Reading)>) -> Audit {
    for (link, reading) in read {
        audit.take(&link, &reading);
    }
    audit
}

/// Tells what git has not, or has in a form that cannot be read; other failures stay failures.
fn known<T>(read: Result<T, GitError>) -> Result<Result<T, Unread>, GitError> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(GitError::Broken { .. }) => Ok(Err(Unread::Missing)),
        Err(GitError::FalseObject { id, .. }) => Ok(Err(Unread::False(id.to_string()))),
        Err(error) => Err(error),
    }
}

/// Takes nothing for what git has not, or has in a form that cannot be read; other failures stay failures.
pub(super) fn found<T>(read: Result<T, GitError>) -> Result<Option<T>, GitError> {
    Ok(known(read)?.ok())
}

/// What is read beside a commit, since its receipt names it.
struct Beside {
    raw: Option<Id>,
    reviewed_from: Option<Id>,
    watch_at: Option<WatchAt>,
}

impl Beside {
    fn of(audit: &Audit, at: usize) -> Self {
        let id = |id: Option<&str>| id.and_then(|id| id.parse().ok());
        Self { raw: id(audit.raw(at)), reviewed_from: id(audit.reviewed_from(at)), watch_at: audit.watch_at(at) }
    }
}

/// Reads all commits of a branch, as far as they are here, and returns them oldest first.
///
/// Where a run begins is not known before: its own bookkeeping says so, and whoever writes to the branch writes that.
fn commits(chain: &Chain<'_>, target: &Target, stop: &CancellationToken) -> Result<Vec<ChainCommit>, VerifyError> {
    let mut commits = Vec::new();
    let mut next = Some(target.tip);
    while let Some(id) = next.filter(|_| commits.len() < MAX_COMMITS) {
        go_on(stop)?;
        let commit = match chain.commit(&id) {
            Ok(Some(commit)) => commit,
            Ok(None) | Err(GitError::Broken { .. }) => break,
            Err(error) => return Err(error.into()),
        };
        next = commit.parents.first().copied();
        commits.push(commit);
    }
    if commits.is_empty() {
        return Err(VerifyError::Gone(target.tip));
    }
    commits.reverse();
    Ok(commits)
}

fn go_on(stop: &CancellationToken) -> Result<(), VerifyError> {
    if stop.is_cancelled() { Err(VerifyError::Interrupted) } else { Ok(()) }
}

fn is_code(path: &[u8]) -> bool {
    !path.starts_with(b".runner/")
}

fn head(commit: &ChainCommit) -> Head {
    Head {
        id: commit.id.to_string(),
        parents: commit.parents.iter().map(ToString::to_string).collect(),
        header: commit.header.clone(),
        message: commit.message.clone(),
        recoded: commit.recoded.clone(),
    }
}

fn change((path, old, new): ChainChange) -> PathChange {
    PathChange { path, old: old.map(stored), new: new.map(stored) }
}

fn stored(file: ChainFile) -> Stored {
    let is_file = file.mode & 0o170_000 == 0o100_000;
    Stored { mode: file.mode, id: file.id.to_string(), content: file.content.filter(|_| is_file) }
}

/// Reads what is not the rules' to read.
const READERS: Readers =
    Readers { config: read_config, goal: read_goal, renamed: rename_goal, is_definition: worker::is_of_definition };

fn read_config(text: &[u8]) -> Result<Settings, FileFault> {
    let path = Path::new(Layout::CONFIG);
    let config = config::text(text, path).and_then(|text| config::parse(text, path));
    let config = config.map_err(|error| FileFault::Form(in_one_line(&error)))?;
    Ok(Settings {
        policy: policy_of(&config),
        guard_command: config.guard.command,
        criteria: config.review.criteria,
        baseline: config.guard.baseline,
        prompt_bytes: usize::try_from(config.prompt.budget_bytes).unwrap_or(usize::MAX),
    })
}

fn read_goal(text: &[u8]) -> Result<Goal, FileFault> {
    let goal = goal::Goal::parse(text, Path::new(Layout::GOAL));
    let goal = goal.map_err(|error| FileFault::Form(in_one_line(&error)))?;
    Ok(Goal { id: goal.id().map(str::to_owned), body: goal.body().to_owned() })
}

fn rename_goal(text: &[u8], id: &str) -> Option<String> {
    goal::Goal::parse(text, Path::new(Layout::GOAL)).ok()?.with_id(id).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_that_is_no_text_is_invalid() {
        let told = read_config(b"# caf\xe9\n[guard]\n").expect_err("it is no text").to_string();
        assert!(told.ends_with("config.toml:1:6: invalid UTF-8"), "{told}");
        assert!(read_config("# café\n".as_bytes()).is_ok());
    }
}
