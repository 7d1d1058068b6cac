//! Reads the commits of a branch, oldest first, and has each judged while the next are read.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use protocol::state::RunState;
use protocol::verify::AuditReport;
use runner_core::audit::{Audit, Goal, Head, Link, PathChange, Plan, Readers, Reading, Settings, Stored, is_read};
use tokio_util::sync::CancellationToken;

use super::Target;
use crate::causes::in_one_line;
use crate::config;
use crate::git::{Chain, ChainChange, ChainCommit, ChainFile, GitError, Id, Repository};
use crate::process::SpawnError;
use crate::repo::goal;
use crate::repo::layout::Layout;
use crate::worker::{self, LoadError, MAX_REVIEWED_BYTES, policy_of};

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
    #[error("commit {0} is not here any more")]
    Gone(Id),
    /// A commit that is no object id.
    #[error("`{0}` is no commit")]
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
    let base = base(repository, &target.tip)?;
    let commits = commits(&chain, target, base.as_deref(), stop)?;
    let plan = Plan::new(&target.run, base.as_deref(), commits.iter().map(head).collect());
    let unseen = unseen(&plan);
    let branch = Branch { repository, first: commits.len() - plan.heads().len(), commits, chain };
    let before = branch.standing(&plan)?;
    let audit = Audit::new(plan, READERS, &before);
    let mut report = branch.judged(audit, is_live, stop)?;
    report.unseen.extend(unseen);
    Ok(report)
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
    /// Reads commit after commit, while those that were read are judged.
    fn judged(&self, audit: Audit, is_live: bool, stop: &CancellationToken) -> Result<AuditReport, VerifyError> {
        let wanted: Vec<Beside> = (0..audit.heads().len()).map(|at| Beside::of(&audit, at)).collect();
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(AHEAD);
            let judge = scope.spawn(move || judge(audit, receiver, is_live));
            for (at, beside) in (self.first..).zip(&wanted) {
                go_on(stop)?;
                let link = self.link(at, beside)?;
                let reading = Reading::of(&link.changes, &READERS);
                if sender.send((link, reading)).is_err() {
                    break;
                }
            }
            drop(sender);
            Ok(judge.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })
    }

    fn link(&self, at: usize, beside: &Beside) -> Result<Link, GitError> {
        let commit = &self.commits[at];
        let before = self.parent(at).map(|commit| &commit.tree);
        let changes = self.chain.changes(before, &commit.tree, is_read)?.into_iter().map(change).collect();
        let raw = beside.raw.map(|raw| self.chain.blob(&raw)).transpose()?.flatten();
        let diff = |from| self.repository.diff_of((&from, &commit.id), is_code, MAX_REVIEWED_BYTES);
        Ok(Link { changes, raw, diff: beside.reviewed_from.map(diff).transpose()? })
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
fn judge(mut audit: Audit, read: Receiver<(Link, Reading)>, is_live: bool) -> AuditReport {
    for (link, reading) in read {
        audit.take(&link, &reading);
    }
    audit.finish(is_live)
}

/// What is read beside a commit, since its receipt names it.
struct Beside {
    raw: Option<Id>,
    reviewed_from: Option<Id>,
}

impl Beside {
    fn of(audit: &Audit, at: usize) -> Self {
        let id = |id: Option<&str>| id.and_then(|id| id.parse().ok());
        Self { raw: id(audit.raw(at)), reviewed_from: id(audit.reviewed_from(at)) }
    }
}

/// The commit that the run began from, by its own bookkeeping.
fn base(repository: &Repository, tip: &Id) -> Result<Option<String>, GitError> {
    let state = repository.read(tip, Layout::RUN_STATE)?.unwrap_or_default();
    Ok(serde_json::from_slice::<RunState>(&state).ok().and_then(|state| state.base))
}

/// Reads the commits down to the base, or as far as they are here, and returns them oldest first.
fn commits(
    chain: &Chain<'_>,
    target: &Target,
    base: Option<&str>,
    stop: &CancellationToken,
) -> Result<Vec<ChainCommit>, VerifyError> {
    let mut commits = Vec::new();
    let mut next = Some(target.tip);
    while let Some(id) = next.filter(|_| commits.len() < MAX_COMMITS) {
        go_on(stop)?;
        let Some(commit) = chain.commit(&id)? else { break };
        next = commit.parents.first().copied().filter(|_| base != Some(&id.to_string()));
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

/// Says what of the branch is not here.
fn unseen(plan: &Plan) -> Vec<String> {
    let before = plan.before().filter(|_| !plan.has_start());
    let sentence = |head: &Head| {
        let parents = if head.parents.is_empty() { "" } else { ", whose parents are not here" };
        format!("what came before commit {}{parents}: `git fetch --unshallow` brings it", head.id)
    };
    before.map(sentence).into_iter().collect()
}

fn is_code(path: &[u8]) -> bool {
    !path.starts_with(b".runner/")
}

fn head(commit: &ChainCommit) -> Head {
    Head {
        id: commit.id.to_string(),
        parents: commit.parents.iter().map(ToString::to_string).collect(),
        message: commit.message.clone(),
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
const READERS: Readers = Readers { config: read_config, goal: read_goal, is_definition: worker::is_of_definition };

fn read_config(text: &[u8]) -> Result<Settings, String> {
    let config = config::parse(&String::from_utf8_lossy(text), Path::new(Layout::CONFIG));
    let config = config.map_err(|error| in_one_line(&error))?;
    Ok(Settings {
        policy: policy_of(&config),
        guard_command: config.guard.command,
        definition: config.guard.definition.as_slice().to_vec(),
        criteria: config.review.criteria,
        baseline: config.guard.baseline,
        prompt_bytes: usize::try_from(config.prompt.budget_bytes).unwrap_or(usize::MAX),
    })
}

fn read_goal(text: &[u8]) -> Result<Goal, String> {
    let goal = goal::Goal::parse(text, Path::new(Layout::GOAL)).map_err(|error| in_one_line(&error))?;
    Ok(Goal { id: goal.id().map(str::to_owned), body: goal.body().to_owned() })
}
