//! Reads the commits of a branch, oldest first, and has each judged as it comes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::state::RunState;
use protocol::verify::AuditReport;
use runner_core::audit::{Audit, Beside, Goal, Head, PathChange, Plan, Readers, Settings, Stored, is_read};
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

/// Who waits for a reading.
pub struct Watch<'a> {
    /// Ends it.
    pub stop: &'a CancellationToken,
    /// Is told how many commits are done, of how many.
    pub progress: &'a mut (dyn FnMut(usize, usize) + Send),
}

impl Watch<'_> {
    fn go_on(&self) -> Result<(), VerifyError> {
        if self.stop.is_cancelled() { Err(VerifyError::Interrupted) } else { Ok(()) }
    }
}

/// Audits the branch of a run. `is_live`: what follows the last receipt is a session's, and not judged.
pub fn verify(
    repository: &Repository,
    target: &Target,
    is_live: bool,
    watch: &mut Watch<'_>,
) -> Result<AuditReport, VerifyError> {
    let chain = repository.chain()?;
    let base = base(repository, &target.tip)?;
    let commits = commits(&chain, target, base.as_deref(), watch)?;
    let plan = Plan::new(&target.run, base.as_deref(), commits.iter().map(head).collect());
    let unseen = unseen(&plan);
    let first = commits.len() - plan.heads().len();
    let parent = |at: usize| at.checked_sub(1).and_then(|at| commits.get(at));
    let before = parent(first).map_or(Ok(Vec::new()), |commit| standing(&chain, &commit.tree, &plan))?;
    let mut audit = Audit::new(plan, READERS, &before);
    for at in first..commits.len() {
        watch.go_on()?;
        (watch.progress)(at - first, commits.len() - first);
        let changes = chain.changes(parent(at).map(|commit| &commit.tree), &commits[at].tree, is_read)?;
        let changes: Vec<PathChange> = changes.into_iter().map(change).collect();
        let raw = audit.raw(at - first).and_then(|raw| raw.parse::<Id>().ok());
        let raw = raw.map(|raw| chain.blob(&raw)).transpose()?.flatten();
        let from = audit.reviewed_from(at - first).and_then(|from| from.parse::<Id>().ok());
        let diff =
            from.map(|from| repository.diff_of((&from, &commits[at].id), is_code, MAX_REVIEWED_BYTES)).transpose()?;
        audit.take(&changes, Beside { raw: raw.as_deref(), diff: diff.as_deref() });
    }
    let mut report = audit.finish(is_live);
    report.unseen.extend(unseen);
    Ok(report)
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
    watch: &Watch<'_>,
) -> Result<Vec<ChainCommit>, VerifyError> {
    let mut commits = Vec::new();
    let mut next = Some(target.tip);
    while let Some(id) = next.filter(|_| commits.len() < MAX_COMMITS) {
        watch.go_on()?;
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

/// Says what of the branch is not here.
fn unseen(plan: &Plan) -> Vec<String> {
    let before = plan.before().filter(|_| !plan.has_start());
    let sentence = |head: &Head| {
        let parents = if head.parents.is_empty() { "" } else { ", whose parents are not here" };
        format!("what came before commit {}{parents}: `git fetch --unshallow` brings it", head.id)
    };
    before.map(sentence).into_iter().collect()
}

/// Every file under `.runner/`, as if the commit had added it; of a fork's base every file.
fn standing(chain: &Chain<'_>, tree: &Id, plan: &Plan) -> Result<Vec<PathChange>, GitError> {
    if plan.begins_at_iteration() {
        return Ok(chain.changes(None, tree, is_read)?.into_iter().map(change).collect());
    }
    let files = chain.below(tree, Layout::FOLDER, is_read)?;
    Ok(files.into_iter().map(|(path, file)| PathChange { path, old: None, new: Some(stored(file)) }).collect())
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
    Stored { mode: file.mode, id: file.id.to_string(), content: file.content.filter(|_| is_file).map(Arc::from) }
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
