//! Merge queue: runs are merged in order, each onto the result of the previous one; a run that does not fit is skipped.
//! Moves no reference.

use protocol::error::{ErrorData, ErrorKind};
use protocol::landing::{LandForm, LandOutcome, LandParams, LandRefusal, LandedCommit, RunLanding};
use protocol::shell;
use runner_config::RepoConfig;
use runner_core::landing::merge_queue::{QueuedRun, merge_order};
use runner_core::landing::{LandPlan, LandingRefusal, MissingCommits, base_runs};
use runner_git::{Id, Identity, Repository};
use tokio::task::block_in_place;

use super::branch::{BranchGap, RunBranch};
use super::run_merge::{MergeOptions, RunMerge};
use super::{LandContext, LandError, guard_check};
use crate::verify::VerifyError;
use crate::worker::load_config;

/// The runs to land, and the options.
#[derive(Debug)]
pub struct MergeQueue<'a> {
    /// The request.
    pub params: &'a LandParams,
    /// Short name of the target branch.
    pub onto: &'a str,
    /// The work tree that has the branch checked out, if any.
    pub checkout: Option<&'a Repository>,
    /// The run with a session in progress: its last commits have no receipt yet.
    pub active_run: Option<&'a str>,
    /// Digests of the commands that this user has confirmed.
    pub confirmed_commands: &'a [String],
}

/// A result that the branch can be moved to.
#[derive(Debug)]
pub struct PreparedLanding {
    /// The branch's tip; `None` if it is to be created.
    pub old_tip: Option<Id>,
    /// Commit to move the branch to.
    pub new_tip: Id,
    /// Result for each run, in landing order.
    pub runs: Vec<RunLanding>,
}

impl PreparedLanding {
    /// Whether there is anything to move to.
    pub fn is_move_needed(&self) -> bool {
        self.old_tip != Some(self.new_tip)
    }
}

/// Merges runs and runs their guards on the result.
///
/// A run that does not fit is an error if it is the only one; otherwise it is skipped.
pub async fn prepare_landing(site: &LandContext<'_>, queue: &MergeQueue<'_>) -> Result<PreparedLanding, LandError> {
    let (before, branches) =
        block_in_place(|| Ok::<_, LandError>((read_tip(site, queue)?, load_branches(site, queue)?)))?;
    let start = match before {
        Some(tip) => tip,
        None => block_in_place(|| resolve_start(site, queue))?,
    };
    let mut prepared = PreparedLanding { old_tip: before, new_tip: start, runs: Vec::new() };
    let is_alone = branches.len() == 1;
    for branch in &branches {
        let landed = land_run(site, queue, branch, &prepared).await;
        let landing = match landed {
            Ok(landing) => landing,
            Err(LandError::Refused(refusal)) if !is_alone => {
                let hint = refusal.hint(queue.onto);
                skipped_run(branch.run(), LandRefusal { message: refusal.to_string(), hint })
            }
            Err(error) => return Err(error),
        };
        if let (LandOutcome::Landed, Some(last)) = (landing.outcome, landing.commits.last()) {
            prepared.new_tip = last.commit.parse().map_err(|_| VerifyError::InvalidCommit(last.commit.clone()))?;
        }
        prepared.runs.push(landing);
    }
    Ok(prepared)
}

fn skipped_run(run: &str, refusal: LandRefusal) -> RunLanding {
    let commits = Vec::new();
    let notes = Vec::new();
    RunLanding { run: run.to_owned(), outcome: LandOutcome::LeftOut, commits, refusal: Some(refusal), notes }
}

/// Returns the branch's tip, or `None` if the branch does not exist and the request says where to create it.
fn read_tip(site: &LandContext<'_>, queue: &MergeQueue<'_>) -> Result<Option<Id>, LandError> {
    let onto = queue.onto;
    if onto.starts_with("runner/") {
        let message = format!("{onto} is the branch of a run: nothing lands on it");
        let hint = shell::join_args(["git", "branch", "--list"]);
        return Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint(hint).into());
    }
    let tip = site.repository.find_branch_tip(onto)?;
    if tip.is_none() && queue.params.from.is_none() {
        let message = format!("there is no branch {onto} in {}", site.repository.work_dir().display());
        let hint = shell::join_args(["git", "branch", "--list"]);
        return Err(ErrorData::new(ErrorKind::NotFound, message).hint(hint).into());
    }
    if tip.is_none() {
        site.repository.check_ref_conflict(&format!("refs/heads/{onto}"))?;
    }
    Ok(tip)
}

/// Returns the commit at which the branch is created.
fn resolve_start(site: &LandContext<'_>, queue: &MergeQueue<'_>) -> Result<Id, LandError> {
    let from = queue.params.from.as_deref().unwrap_or_default();
    let found = site.repository.resolve_revision(from)?;
    found.ok_or_else(|| {
        let message = format!("`{from}` names no commit");
        ErrorData::new(ErrorKind::NotFound, message).hint("git log --oneline").into()
    })
}

/// Reads the branches of the runs, each once, in landing order.
fn load_branches(site: &LandContext<'_>, queue: &MergeQueue<'_>) -> Result<Vec<RunBranch>, LandError> {
    let mut branches: Vec<RunBranch> = Vec::new();
    for run in &queue.params.runs {
        let branch = RunBranch::load(site, run)?;
        if branches.iter().all(|known| known.run() != branch.run()) {
            branches.push(branch);
        }
    }
    let queued: Vec<QueuedRun> = branches
        .iter()
        .map(|branch| QueuedRun { run: branch.run().to_owned(), base_runs: base_runs(&branch.plan) })
        .collect();
    let mut branches: Vec<Option<RunBranch>> = branches.into_iter().map(Some).collect();
    Ok(merge_order(&queued).into_iter().filter_map(|at| branches[at].take()).collect())
}

/// Merges one run onto what is prepared, and runs its guard on the result unless the branch could not move there.
async fn land_run(
    site: &LandContext<'_>,
    queue: &MergeQueue<'_>,
    branch: &RunBranch,
    prepared: &PreparedLanding,
) -> Result<RunLanding, LandError> {
    let onto = prepared.new_tip;
    let (missing, config) = block_in_place(|| {
        branch.check_proven(site, queue.params.unproven, queue.active_run)?;
        let config = load_config(site.repository, branch.target.tip);
        let config = config.map_err(|error| VerifyError::State(Box::new(error)))?;
        Ok::<_, LandError>((branch.find_missing(site.repository, &onto)?, config))
    })?;
    let MissingCommits::Missing(landing) = &missing.commits else { return Ok(already_landed(branch, &missing)) };
    let commits = block_in_place(|| {
        if queue.params.form == LandForm::Merge {
            check_ancestry(site, branch, &missing, queue.onto, &onto)?;
        }
        merge_run(site, queue, branch, landing, &config, onto)
    })?;
    let Some(last) = commits.last() else { return Ok(already_landed(branch, &missing)) };
    let result = last.commit.parse().map_err(|_| VerifyError::InvalidCommit(last.commit.clone()))?;
    block_in_place(|| site.repository.check_advance(queue.onto, prepared.old_tip, &result, queue.checkout))?;
    if !queue.params.preview {
        check_confirmed(queue, &config)?;
        guard_check::check_guard(site, branch, &config, &result).await?;
    }
    let notes = list_notes(branch, landing, queue.params.form);
    Ok(RunLanding { run: branch.run().to_owned(), outcome: LandOutcome::Landed, commits, refusal: None, notes })
}

/// Refuses a merge that would bring in ancestors from before the run that the target branch lacks, without their files.
fn check_ancestry(
    site: &LandContext<'_>,
    branch: &RunBranch,
    missing: &BranchGap,
    onto: &str,
    tip: &Id,
) -> Result<(), LandError> {
    let Some(before) = &missing.base else { return Ok(()) };
    let commit: Id = before.parse().map_err(|_| VerifyError::InvalidCommit(before.clone()))?;
    if site.repository.is_ancestor(&commit, tip)? {
        return Ok(());
    }
    let run = branch.run().to_owned();
    let commit = commit.short(12);
    let onto = onto.to_owned();
    Err(LandingRefusal::MissingAncestors { run, commit, onto }.into())
}

fn merge_run(
    site: &LandContext<'_>,
    queue: &MergeQueue<'_>,
    branch: &RunBranch,
    landing: &LandPlan,
    config: &RepoConfig,
    onto: Id,
) -> Result<Vec<LandedCommit>, LandError> {
    let committer = site.repository.identity().unwrap_or_else(Identity::runner);
    let LandParams { form, with_runner, ref accepted, .. } = *queue.params;
    // A preview must not prompt for a key.
    let sign = config.git.sign && !queue.params.preview;
    let options = MergeOptions { form, with_runner, committer: &committer, sign, accepted };
    RunMerge::new(site, branch, landing, (queue.onto, onto), options)?.create_commits()
}

/// Reports a run that the branch has completely, with the commit that landed it if one claims to.
fn already_landed(branch: &RunBranch, missing: &BranchGap) -> RunLanding {
    let newest = missing.landed_commits.iter().find_map(|(commit, landed)| {
        let of = landed.iter().rev().find(|landed| branch.find_commit(&landed.commit).is_some())?;
        Some(LandedCommit {
            commit: commit.to_string(),
            subject: String::new(),
            node: of.node.clone(),
            of: of.commit.clone(),
        })
    });
    let commits = newest.into_iter().collect();
    let run = branch.run().to_owned();
    RunLanding { run, outcome: LandOutcome::AlreadyLanded, commits, refusal: None, notes: Vec::new() }
}

fn list_notes(branch: &RunBranch, landing: &LandPlan, form: LandForm) -> Vec<String> {
    let mut notes = Vec::new();
    if form == LandForm::Merge {
        let run = branch.run();
        notes.push(format!(
            ".runner/ is in the history of runner/{run}, which is merged, and so are the messages of its commits, as \
             sessions wrote them"
        ));
    }
    match landing.not_landed {
        0 => {}
        1 => notes.push("1 commit after the last passed task does not land".to_owned()),
        left => notes.push(format!("{left} commits after the last passed task do not land")),
    }
    notes
}

/// Fails if this user has not confirmed the guard's command and the setup before it.
fn check_confirmed(queue: &MergeQueue<'_>, config: &RepoConfig) -> Result<(), LandError> {
    if queue.params.confirmed || queue.confirmed_commands.contains(&config.commands_digest()) {
        return Ok(());
    }
    let setup = Some(&config.workspace.setup).filter(|argv| !argv.is_empty());
    let commands = setup.into_iter().chain([&config.guard.command]);
    let message = format!("the guard would be run on the result, as this user:{}", shell::list_commands(commands));
    Err(ErrorData::new(ErrorKind::Unconfirmed, message).hint("look at the command, then add --yes").into())
}
