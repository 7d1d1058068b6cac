//! Claiming a run at its remote, waiting where another driver has it, and releasing it.
//!
//! Who may take over is `runner_core::driver`'s to say.

use std::time::Duration;

use jiff::SignedDuration;
use runner_core::driver::{Claimed, TakeOver, Taking, take_over};
use runner_core::message::{Milestone, NameList, RunnerCommit};
use tokio::task::block_in_place;
use tokio::time::sleep;

use super::{Job, JobError, note};
use crate::clock;
use crate::git::{CommitInfo, Id, Identity, NewCommit, Repository};
use crate::upstream::{PUSH, Push, Pushed, Remote, UpstreamError};
use crate::worker;

/// Pauses between looks at a remote; the last is repeated.
const PAUSES: [u64; 5] = [1, 2, 5, 10, 30];
/// Commits that are looked through for a claim.
const MAX_COMMITS: usize = 100_000;
/// Tries of a release, which only people's commits can be in the way of.
const RELEASES: u32 = 5;
/// Longest push of a driver that was told to end.
const IN_A_HURRY: Duration = Duration::from_secs(8);

/// What has come of taking a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is claimed, by this commit.
    Claimed(Id),
    /// The remote does not have it: it begins here.
    New { branch: String, base: Id },
    /// It has reached its goal.
    Completed,
    /// Another driver goes on with it.
    Overtaken,
}

/// Takes the run, or tells why not.
pub(super) async fn take(job: &Job) -> Result<Taken, JobError> {
    let mut seen: Option<(Id, Duration)> = None;
    let mut has_lost = false;
    for turn in 0_usize.. {
        let Remote { tip, head } = look(job).await?;
        let Some(tip) = tip else { return begins(job, head) };
        block_in_place(|| job.gate.fetch(&job.branch))?;
        let repository = job.ground.repository()?;
        if is_completed(job, &repository, tip)? {
            return Ok(Taken::Completed);
        }
        let claimed = claimed(&repository, &tip)?;
        let others = matches!(&claimed, Claimed::By(_));
        let is_driven = match seen {
            Some((before, _)) if before != tip => is_driven_since(&repository, &tip, &before)?,
            _ => false,
        };
        if others && (has_lost || is_driven) {
            return Ok(Taken::Overtaken);
        }
        let since = seen.filter(|(before, _)| *before == tip).map_or_else(clock::since_boot, |(_, since)| since);
        seen = Some((tip, since));
        let taking = Taking {
            taker: &job.driver,
            unmoved: signed(clock::since_boot().saturating_sub(since)),
            iteration: signed(iteration(&repository, tip)),
            is_asked: job.options.take_over,
        };
        match take_over(&claimed, &taking) {
            TakeOver::Superseded => return Ok(Taken::Overtaken),
            TakeOver::After(left) => wait(job, (&claimed, left.unsigned_abs()), turn).await,
            TakeOver::Now => match block_in_place(|| claim(job, &repository, &tip))? {
                Some(claim) => return Ok(Taken::Claimed(claim)),
                None => has_lost = true,
            },
        }
    }
    Ok(Taken::Overtaken)
}

/// Looks at the remote, which may be away for a while.
async fn look(job: &Job) -> Result<Remote, JobError> {
    let begun = clock::since_boot();
    for turn in 0_usize.. {
        match block_in_place(|| job.gate.look(&job.branch)) {
            Ok(remote) => return Ok(remote),
            Err(error) if clock::since_boot().saturating_sub(begun) >= job.options.max_wait => return Err(error.into()),
            Err(error) => note(&format!("{error}; it is tried again")),
        }
        sleep(pause(turn)).await;
    }
    Err(JobError::Interrupted)
}

fn signed(span: Duration) -> SignedDuration {
    SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX)
}

fn pause(turn: usize) -> Duration {
    Duration::from_secs(PAUSES[turn.min(PAUSES.len() - 1)])
}

fn begins(job: &Job, head: Option<(String, Id)>) -> Result<Taken, JobError> {
    let remote = job.gate.shown();
    if job.goal.is_none() {
        return Err(JobError::Neither { remote, run: job.options.run.clone() });
    }
    let (branch, base) = head.ok_or(JobError::Empty { remote })?;
    block_in_place(|| job.gate.fetch(&branch))?;
    Ok(Taken::New { branch, base })
}

async fn wait(job: &Job, (claimed, left): (&Claimed, Duration), turn: usize) {
    if let Claimed::By(holder) = claimed
        && turn == 0
    {
        let minutes = left.as_secs().div_ceil(60);
        note(&format!(
            "{holder} has claimed run {}: waiting until its branch has not moved for {minutes} minutes; if you know that \
             it is gone, use --take-over",
            job.options.run
        ));
    }
    sleep(pause(turn).min(left)).await;
}

/// Makes a claim and pushes it; none where somebody else was quicker.
fn claim(job: &Job, repository: &Repository, tip: &Id) -> Result<Option<Id>, JobError> {
    let claim = write(job, repository, (tip, RunnerCommit::Claim(said(job))))?;
    let push = Push { branch: &job.branch, tip: &claim, known: Some(tip), extras: &[], limit: PUSH };
    match job.gate.push(&push)? {
        Pushed::Done(_) => Ok(Some(claim)),
        Pushed::Elsewhere(_) => Ok(None),
        Pushed::Refused(why) => Err(UpstreamError::Away { remote: job.gate.shown(), why }.into()),
    }
}

/// Releases the run where this driver still has it, upon what people have committed since.
pub(super) fn release(job: &Job) -> Result<(), JobError> {
    for _ in 0..RELEASES {
        let Some(tip) = job.gate.look(&job.branch)?.tip else { return Ok(()) };
        job.gate.fetch(&job.branch)?;
        let repository = job.ground.repository()?;
        if claimed(&repository, &tip)? != Claimed::By(job.driver.clone()) {
            return Ok(());
        }
        let release = write(job, &repository, (&tip, RunnerCommit::Release(said(job))))?;
        let push = Push { branch: &job.branch, tip: &release, known: Some(&tip), extras: &[], limit: IN_A_HURRY };
        match job.gate.push(&push)? {
            Pushed::Done(_) => return Ok(()),
            Pushed::Elsewhere(_) => {}
            Pushed::Refused(why) => return Err(UpstreamError::Away { remote: job.gate.shown(), why }.into()),
        }
    }
    Ok(())
}

/// Keeps at the remote what is committed here and is not on its branch; returns the name that it has there.
pub(super) fn rescue(job: &Job) -> Result<Option<String>, JobError> {
    let repository = job.ground.repository()?;
    let Some(own) = repository.branch(&job.branch)? else { return Ok(None) };
    let there = job.gate.look(&job.branch)?.tip;
    if let Some(there) = there {
        job.gate.fetch(&job.branch)?;
        if repository.is_ancestor(&own, &there)? {
            return Ok(None);
        }
    }
    let name = format!("refs/runner/rescue/{}/{}", job.options.run, job.driver.name());
    job.gate.keep(&own, &name, IN_A_HURRY)?;
    Ok(Some(name))
}

/// Tells whether another driver has begun on the branch since this one's last commit there; none where the branch is gone.
pub(super) fn is_anothers(job: &Job) -> Result<Option<bool>, JobError> {
    let Some(tip) = job.gate.look(&job.branch)?.tip else { return Ok(None) };
    job.gate.fetch(&job.branch)?;
    let claimed = claimed(&job.ground.repository()?, &tip)?;
    Ok(Some(claimed != Claimed::By(job.driver.clone())))
}

fn said(job: &Job) -> Milestone {
    Milestone {
        run: job.options.run.clone(),
        summary: String::new(),
        version: worker::version(),
        from: None,
        guard_run: None,
        reverted: NameList::default(),
        driver: Some(job.driver.clone()),
    }
}

/// Makes a commit that changes no file.
fn write(job: &Job, repository: &Repository, (upon, commit): (&Id, RunnerCommit)) -> Result<Id, JobError> {
    let who = repository.identity().unwrap_or_else(Identity::runner);
    tracing::info!(run = job.options.run, upon = %upon, "{}", commit.compose().lines().next().unwrap_or_default());
    Ok(repository.write(&NewCommit {
        tree: repository.tree_id(upon)?,
        parents: &[*upon],
        author: &who.stamp(),
        committer: &who,
        message: &commit.compose(),
        sign: false,
    })?)
}

/// Returns who has claimed a run, by its branch.
fn claimed(repository: &Repository, tip: &Id) -> Result<Claimed, JobError> {
    let mut told = None;
    repository.first_parents_until(tip, MAX_COMMITS, |commit| {
        let read = RunnerCommit::parse(&commit.message);
        let tells = |commit: &RunnerCommit| {
            matches!(commit, RunnerCommit::Claim(_) | RunnerCommit::Release(_) | RunnerCommit::Start(_))
        };
        told = read.is_ok_and(|read| tells(&read)).then_some(commit.message);
        told.is_some()
    })?;
    Ok(Claimed::of(told.as_ref().map(String::as_bytes)))
}

/// Tells whether a driver has committed since, and not people alone.
fn is_driven_since(repository: &Repository, tip: &Id, since: &Id) -> Result<bool, JobError> {
    let mut is_driven = false;
    repository.first_parents_until(tip, MAX_COMMITS, |CommitInfo { id, message, .. }| {
        is_driven |= id != *since && RunnerCommit::parse(&message).is_ok();
        id == *since
    })?;
    Ok(is_driven)
}

fn is_completed(job: &Job, repository: &Repository, tip: Id) -> Result<bool, JobError> {
    // What cannot be read is for the engine to hold.
    let Ok(loaded) = worker::load(repository, tip) else { return Ok(false) };
    let run = Some(job.options.run.as_str());
    if loaded.run_state.run_id.as_deref() != run {
        return Err(JobError::NotOfRun { remote: job.gate.shown(), branch: job.branch.clone() });
    }
    if !loaded.tree.root.passes {
        return Ok(false);
    }
    // That a person has written it does not make it so: the engine looks at what they have done, and holds the run.
    let mut settled = None;
    repository.first_parents_until(&tip, MAX_COMMITS, |commit| {
        settled = RunnerCommit::settles(&commit.message).then_some(commit.id);
        settled.is_some()
    })?;
    Ok(settled.and_then(|at| worker::load(repository, at).ok()).is_some_and(|settled| settled.tree.root.passes))
}

/// Returns the longest iteration of a run; that of the defaults where its configuration cannot be read.
fn iteration(repository: &Repository, tip: Id) -> Duration {
    worker::load_config(repository, tip).unwrap_or_default().iteration_timeout
}
