//! Claiming a run at its remote, waiting where another driver has it, and releasing it.
//!
//! Who may take over is `runner_core::driver`'s to say.

use std::time::Duration;

use jiff::SignedDuration;
use runner_core::driver::{Claimed, TakeOver, Taking, take_over};
use runner_core::message::{MessageError, Milestone, NameList, RunnerCommit};
use tokio::task::block_in_place;
use tokio::time::sleep;

use super::{Job, JobError, note};
use crate::clock;
use crate::config::{Extras, RepoConfig};
use crate::git::{CommitInfo, Id, Identity, NewCommit, Repository};
use crate::upstream::{PUSH, Push, Pushed, Remote, UpstreamError, as_branch};
use crate::worker::{self, LoadError};

/// Pauses between looks at a remote; the last is repeated.
const PAUSES: [u64; 5] = [1, 2, 5, 10, 30];
/// Commits that are looked through for a claim.
const MAX_COMMITS: usize = 100_000;
/// Tries of a release, which people's commits can be in the way of, and a remote that refuses or loses some pushes.
const RELEASES: u32 = 5;

/// What has come of taking a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is claimed, by this commit.
    Claimed(Id),
    /// The remote does not have it: it begins here.
    New { branch: String, base: Id },
    /// It is there already, and only its beginning was asked for.
    There,
    /// It has reached its goal.
    Completed,
    /// Another driver goes on with it.
    Overtaken,
}

/// What a driver has seen of a run that it waits for.
#[derive(Debug, Default)]
struct Watched {
    /// The tip, and since when it is that.
    tip: Option<(Id, Duration)>,
    /// Whether a claim of this driver's came too late.
    has_lost: bool,
    /// Since when the remote does not answer, or refuses.
    away_since: Option<Duration>,
    /// Whether it was said for what it waits.
    has_told: bool,
}

/// Takes the run, or tells why not. A remote that is away or refuses is waited for, as long as a job may.
pub(super) async fn take(job: &Job) -> Result<Taken, JobError> {
    let mut watched = Watched::default();
    for turn in 0_usize.. {
        let left = match block_in_place(|| look(job, &mut watched)) {
            Ok(Looked::Taken(taken)) => return Ok(taken),
            Ok(Looked::After(left)) => {
                watched.away_since = None;
                left
            }
            Err(JobError::Upstream(error @ UpstreamError::Away { .. })) => {
                let since = *watched.away_since.get_or_insert_with(clock::since_boot);
                let waited = clock::since_boot().saturating_sub(since);
                if waited >= job.options.max_wait {
                    return Err(error.into());
                }
                note(&format!("{error}; it is tried again"));
                job.options.max_wait.saturating_sub(waited)
            }
            Err(error) => return Err(error),
        };
        sleep(pause(turn).min(left)).await;
    }
    Ok(Taken::Overtaken)
}

/// What has come of one look at a run.
enum Looked {
    Taken(Taken),
    /// It may be taken after so long, if nothing else happens.
    After(Duration),
}

fn look(job: &Job, watched: &mut Watched) -> Result<Looked, JobError> {
    let Remote { tip, head } = job.gate.look(&job.branch)?;
    let Some(tip) = tip else { return begins(job, head).map(Looked::Taken) };
    job.gate.fetch(&job.branch)?;
    let repository = job.ground.repository()?;
    if is_completed(job, &repository, tip)? {
        return Ok(Looked::Taken(Taken::Completed));
    }
    if job.options.start_only {
        return Ok(Looked::Taken(Taken::There));
    }
    let claimed = claimed(job, &repository, &tip)?;
    let is_driven = match watched.tip {
        Some((before, _)) if before != tip => is_driven_since(&repository, &tip, &before)?,
        _ => false,
    };
    if matches!(&claimed, Claimed::By(_)) && (watched.has_lost || is_driven) {
        return Ok(Looked::Taken(Taken::Overtaken));
    }
    let since = watched.tip.filter(|(before, _)| *before == tip).map_or_else(clock::since_boot, |(_, since)| since);
    watched.tip = Some((tip, since));
    let taking = Taking {
        taker: &job.driver,
        unmoved: signed(clock::since_boot().saturating_sub(since)),
        iteration: signed(iteration(job, &repository, (tip, &claimed))?),
        is_asked: job.options.take_over,
    };
    match take_over(&claimed, &taking) {
        TakeOver::Superseded => Ok(Looked::Taken(Taken::Overtaken)),
        TakeOver::After(left) => {
            tell(job, watched, (&claimed, left.unsigned_abs()));
            Ok(Looked::After(left.unsigned_abs()))
        }
        TakeOver::Now => {
            let claim = claim(job, &repository, &tip)?;
            watched.has_lost |= claim.is_none();
            Ok(claim.map_or(Looked::After(Duration::ZERO), |claim| Looked::Taken(Taken::Claimed(claim))))
        }
    }
}

fn signed(span: Duration) -> SignedDuration {
    SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX)
}

/// Returns how long to wait before the next try.
pub(super) fn pause(turn: usize) -> Duration {
    Duration::from_secs(PAUSES[turn.min(PAUSES.len() - 1)])
}

fn begins(job: &Job, head: Option<(String, Id)>) -> Result<Taken, JobError> {
    let remote = job.gate.shown();
    if job.goal.is_none() {
        return Err(JobError::Neither { remote, run: job.options.run.clone() });
    }
    let (branch, base) = head.ok_or(JobError::Empty { remote })?;
    job.gate.fetch(&branch)?;
    Ok(Taken::New { branch, base })
}

/// Says once for whom a run is waited for.
fn tell(job: &Job, watched: &mut Watched, (claimed, left): (&Claimed, Duration)) {
    if let Claimed::By(holder) = claimed
        && !watched.has_told
    {
        let minutes = left.as_secs().div_ceil(60);
        note(&format!(
            "{holder} has claimed run {}: waiting until its branch has not moved for {minutes} minutes; if you know that \
             it is gone, use --take-over",
            job.options.run
        ));
        watched.has_told = true;
    }
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

/// Releases the run where this driver still has it: upon what is committed here, or upon what people have committed since.
///
/// The remote is looked at afterwards: what it has taken and lost is pushed again.
pub(super) fn release(job: &Job) -> Result<(), JobError> {
    let (mut released, mut why) = (None::<Id>, "what it takes does not stay".to_owned());
    for _ in 0..RELEASES {
        let Some(there) = job.gate.look(&job.branch)?.tip else { return Ok(()) };
        job.gate.fetch(&job.branch)?;
        let repository = job.ground.repository()?;
        if let Some(release) = &released
            && repository.is_ancestor(release, &there)?
        {
            return Ok(());
        }
        let upon = match repository.branch(&job.branch)? {
            Some(own) if repository.is_ancestor(&there, &own)? => own,
            _ => there,
        };
        if claimed(job, &repository, &upon)? != Claimed::By(job.driver.clone()) {
            return Ok(());
        }
        let release = write(job, &repository, (&upon, RunnerCommit::Release(said(job))))?;
        let push = Push { branch: &job.branch, tip: &release, known: Some(&there), extras: &[], limit: PUSH };
        match job.gate.push(&push)? {
            Pushed::Done(_) => released = Some(release),
            Pushed::Elsewhere(_) => {}
            Pushed::Refused(said) => why = said,
        }
    }
    Err(UpstreamError::Away { remote: job.gate.shown(), why }.into())
}

/// Keeps at the remote the work that is committed here and is not on its branch; returns the name that it has there.
pub(super) fn rescue(job: &Job) -> Result<Option<String>, JobError> {
    let repository = job.ground.repository()?;
    let Some(own) = repository.branch(&job.branch)? else { return Ok(None) };
    let there = job.gate.look(&job.branch)?.tip;
    if let Some(there) = there {
        job.gate.fetch(&job.branch)?;
        if repository.is_ancestor(&newest_work(&repository, &own)?, &there)? {
            return Ok(None);
        }
    }
    let name = format!("refs/runner/rescue/{}/{}", job.options.run, job.driver.name());
    let name = match config(job, &repository, own)?.publish.extras {
        Extras::Branches => as_branch(&name).unwrap_or(name),
        Extras::Refs | Extras::Off => name,
    };
    job.gate.keep(&own, &name, PUSH)?;
    Ok(Some(name))
}

/// Returns the newest commit that does more than to say who drives.
fn newest_work(repository: &Repository, own: &Id) -> Result<Id, JobError> {
    let mut newest = *own;
    repository.first_parents_until(own, MAX_COMMITS, |commit| {
        newest = commit.id;
        !RunnerCommit::parse(&commit.message).is_ok_and(|read| read.tells_who_drives())
    })?;
    Ok(newest)
}

/// Tells whether another driver has begun on the branch since this one's last commit there; none where the branch is gone.
pub(super) fn belongs_to_another(job: &Job) -> Result<Option<bool>, JobError> {
    let Some(tip) = job.gate.look(&job.branch)?.tip else { return Ok(None) };
    job.gate.fetch(&job.branch)?;
    let claimed = claimed(job, &job.ground.repository()?, &tip)?;
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

/// Makes a commit that changes no file, signed where the run's commits are.
fn write(job: &Job, repository: &Repository, (upon, commit): (&Id, RunnerCommit)) -> Result<Id, JobError> {
    let sign = config(job, repository, *upon)?.git.sign;
    let who = repository.identity().unwrap_or_else(Identity::runner);
    tracing::info!(run = job.options.run, upon = %upon, "{}", commit.compose().lines().next().unwrap_or_default());
    Ok(repository.write(&NewCommit {
        tree: repository.tree_id(upon)?,
        parents: &[*upon],
        author: &who.stamp(),
        committer: &who,
        message: &commit.compose(),
        sign,
    })?)
}

/// Returns who has claimed a run, by its branch. What another build of the runner's may have said is not passed over.
fn claimed(job: &Job, repository: &Repository, tip: &Id) -> Result<Claimed, JobError> {
    let mut told = None;
    repository.first_parents_until(tip, MAX_COMMITS, |commit| {
        told = match RunnerCommit::parse(&commit.message) {
            Err(MessageError::NotRunner | MessageError::Encoding) => None,
            Ok(read) => read.tells_who_drives().then_some(Ok(commit.message)),
            Err(why) => Some(Err((commit.id, why))),
        };
        told.is_some()
    })?;
    match told.transpose() {
        Ok(message) => Ok(Claimed::of(message.as_ref().map(String::as_bytes))),
        Err((commit, why)) => Err(JobError::Unread { branch: job.branch.clone(), commit, why }),
    }
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
    let settled = worker::last_settled(repository, tip).map_err(|error| match error {
        LoadError::Rules { commit, source } => {
            JobError::Unread { branch: job.branch.clone(), commit, why: source.into() }
        }
        LoadError::Git(error) => error.into(),
        error => unknown(job, tip, error),
    })?;
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
    Ok(settled.and_then(|at| worker::load(repository, at).ok()).is_some_and(|settled| settled.tree.root.passes))
}

/// Returns the longest iteration of a run, where it is to be waited for: one that cannot be read is no shorter one.
fn iteration(job: &Job, repository: &Repository, (tip, claimed): (Id, &Claimed)) -> Result<Duration, JobError> {
    if *claimed == Claimed::Free || job.options.take_over {
        return Ok(Duration::ZERO);
    }
    config(job, repository, tip).map(|config| config.iteration_timeout)
}

/// Reads the configuration at a commit of the run.
pub(super) fn config(job: &Job, repository: &Repository, commit: Id) -> Result<RepoConfig, JobError> {
    worker::load_config(repository, commit).map_err(|source| unknown(job, commit, source))
}

fn unknown(job: &Job, commit: Id, source: LoadError) -> JobError {
    JobError::Config { run: job.options.run.clone(), commit, source: Box::new(source) }
}
