//! Claims a run at its remote, waiting while another driver has it, and releases it.
//!
//! Who may take over is decided by `runner_core::driver`.

use std::time::Duration;

use jiff::SignedDuration;
use runner_config::{PublishExtras, RepoConfig};
use runner_core::driver::{ClaimState, TakeoverDecision, TakeoverRequest, decide_takeover};
use runner_core::message::{MarkerCommit, NameList, RunnerCommit, claims_receipt};
use runner_git::{CommitInfo, Id, Identity, NewCommit, Repository};
use runner_os::clock;
use tokio::task::block_in_place;
use tokio::time::sleep;

use super::{DriveJob, JobError, print_note};
use crate::upstream::{PUSH_TIMEOUT, PushRequest, PushResult, RemoteRefs, UpstreamError, to_branch_name};
use crate::worker::{self, LoadError};

/// Pauses between checks of a remote, in seconds; the last is repeated.
const RETRY_PAUSES: [u64; 5] = [1, 2, 5, 10, 30];
/// Maximum number of commits searched for a claim.
const MAX_COMMITS: usize = 100_000;
/// Attempts at a release, which may conflict with people's commits, or with a remote that refuses or loses some pushes.
const MAX_RELEASE_ATTEMPTS: u32 = 5;

/// The result of taking a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClaimResult {
    /// It is claimed by this commit.
    Claimed(Id),
    /// The remote does not have it: it begins here.
    New { branch: String, base: Id },
    /// It already exists, and only its start was requested.
    AlreadyStarted,
    /// It has reached its goal.
    Completed,
    /// Another driver continues it.
    Superseded,
}

/// What a driver has observed of a run that it waits for.
#[derive(Debug, Default)]
struct ClaimWatch {
    /// The tip, and since when it is that (time since boot).
    tip: Option<(Id, Duration)>,
    /// Whether a claim of this driver came too late.
    lost_race: bool,
    /// Since when the remote is unreachable, or refuses.
    away_since: Option<Duration>,
    /// Whether it has been printed what is waited for.
    has_reported: bool,
}

/// Takes the run, or returns why not. Waits for an unreachable or refusing remote as long as a job may.
pub(super) async fn acquire_run(job: &DriveJob) -> Result<ClaimResult, JobError> {
    let mut watch = ClaimWatch::default();
    for attempt in 0_usize.. {
        let remaining = match block_in_place(|| check_remote(job, &mut watch)) {
            Ok(RemoteCheck::Decided(taken)) => return Ok(taken),
            Ok(RemoteCheck::Retry(wait)) => {
                watch.away_since = None;
                wait
            }
            Err(JobError::Upstream(error @ UpstreamError::Unreachable { .. })) => {
                let since = *watch.away_since.get_or_insert_with(clock::since_boot);
                let waited = clock::since_boot().saturating_sub(since);
                if waited >= job.options.max_wait {
                    return Err(error.into());
                }
                print_note(&format!("{error}; it is tried again"));
                job.options.max_wait.saturating_sub(waited)
            }
            Err(error) => return Err(error),
        };
        sleep(retry_pause(attempt).min(remaining)).await;
    }
    Ok(ClaimResult::Superseded)
}

/// The result of one check of a run.
enum RemoteCheck {
    Decided(ClaimResult),
    /// It may be taken after this time, if nothing else happens.
    Retry(Duration),
}

fn check_remote(job: &DriveJob, watch: &mut ClaimWatch) -> Result<RemoteCheck, JobError> {
    let RemoteRefs { tip, head } = job.remote.read_refs(&job.branch)?;
    let Some(tip) = tip else { return begin_new(job, head).map(RemoteCheck::Decided) };
    job.remote.fetch(&job.branch)?;
    let repository = job.checkout.open_repository()?;
    if is_completed(job, &repository, tip)? {
        return Ok(RemoteCheck::Decided(ClaimResult::Completed));
    }
    if job.options.start_only {
        return Ok(RemoteCheck::Decided(ClaimResult::AlreadyStarted));
    }
    let claim_state = find_claim(job, &repository, &tip)?;
    let is_driven = match watch.tip {
        Some((before, _)) if before != tip => has_driver_commit_since(&repository, &tip, &before)?,
        _ => false,
    };
    if matches!(&claim_state, ClaimState::By(_)) && (watch.lost_race || is_driven) {
        return Ok(RemoteCheck::Decided(ClaimResult::Superseded));
    }
    let since = watch.tip.filter(|(before, _)| *before == tip).map_or_else(clock::since_boot, |(_, since)| since);
    watch.tip = Some((tip, since));
    let request = TakeoverRequest {
        taker: &job.driver,
        idle_for: signed_duration(clock::since_boot().saturating_sub(since)),
        longest_iteration: signed_duration(longest_iteration(job, &repository, tip, &claim_state)?),
        is_forced: job.options.take_over,
    };
    match decide_takeover(&claim_state, &request) {
        TakeoverDecision::Superseded => Ok(RemoteCheck::Decided(ClaimResult::Superseded)),
        TakeoverDecision::After(wait) => {
            report_wait(job, watch, &claim_state, wait.unsigned_abs());
            Ok(RemoteCheck::Retry(wait.unsigned_abs()))
        }
        TakeoverDecision::Now => {
            let claim = push_claim(job, &repository, &tip)?;
            watch.lost_race |= claim.is_none();
            Ok(claim
                .map_or(RemoteCheck::Retry(Duration::ZERO), |claim| RemoteCheck::Decided(ClaimResult::Claimed(claim))))
        }
    }
}

fn signed_duration(span: Duration) -> SignedDuration {
    SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX)
}

/// Returns the pause before the next attempt.
pub(super) fn retry_pause(attempt: usize) -> Duration {
    Duration::from_secs(RETRY_PAUSES[attempt.min(RETRY_PAUSES.len() - 1)])
}

fn begin_new(job: &DriveJob, head: Option<(String, Id)>) -> Result<ClaimResult, JobError> {
    let remote = job.remote.display_url();
    if job.goal.is_none() {
        return Err(JobError::MissingRun { remote, run: job.options.run.clone() });
    }
    let (branch, base) = head.ok_or(JobError::EmptyRemote { remote })?;
    job.remote.fetch(&branch)?;
    Ok(ClaimResult::New { branch, base })
}

/// Prints once which driver is waited for.
fn report_wait(job: &DriveJob, watch: &mut ClaimWatch, claimed: &ClaimState, remaining: Duration) {
    if let ClaimState::By(holder) = claimed
        && !watch.has_reported
    {
        let minutes = remaining.as_secs().div_ceil(60);
        print_note(&format!(
            "{holder} has claimed run {}: waiting until its branch has not moved for {minutes} minutes; if you know that \
             it is gone, use --take-over",
            job.options.run
        ));
        watch.has_reported = true;
    }
}

/// Makes a claim and pushes it; `None` if someone else was faster.
fn push_claim(job: &DriveJob, repository: &Repository, tip: &Id) -> Result<Option<Id>, JobError> {
    let claim = write_marker(job, repository, tip, &RunnerCommit::Claim(marker_commit(job)))?;
    let push =
        PushRequest { branch: &job.branch, tip: &claim, last_pushed: Some(tip), extras: &[], limit: PUSH_TIMEOUT };
    match job.remote.push(&push)? {
        PushResult::Done(_) => Ok(Some(claim)),
        PushResult::Diverged(_) => Ok(None),
        PushResult::Rejected(why) => Err(UpstreamError::Unreachable { remote: job.remote.display_url(), why }.into()),
    }
}

/// Releases the run if this driver still has it: on top of what is committed here, or of what people have committed
/// since.
///
/// The remote is checked afterwards: if it has accepted and lost the push, it is pushed again.
pub(super) fn release_run(job: &DriveJob) -> Result<(), JobError> {
    let mut released = None::<Id>;
    let mut why = "what it takes does not stay".to_owned();
    for _ in 0..MAX_RELEASE_ATTEMPTS {
        let Some(remote_tip) = job.remote.read_refs(&job.branch)?.tip else { return Ok(()) };
        job.remote.fetch(&job.branch)?;
        let repository = job.checkout.open_repository()?;
        if let Some(release) = &released
            && repository.is_ancestor(release, &remote_tip)?
        {
            return Ok(());
        }
        let parent = match repository.find_branch_tip(&job.branch)? {
            Some(own) if repository.is_ancestor(&remote_tip, &own)? => own,
            _ => remote_tip,
        };
        if find_claim(job, &repository, &parent)? != ClaimState::By(job.driver.clone()) {
            return Ok(());
        }
        let release = write_marker(job, &repository, &parent, &RunnerCommit::Release(marker_commit(job)))?;
        let push = PushRequest {
            branch: &job.branch,
            tip: &release,
            last_pushed: Some(&remote_tip),
            extras: &[],
            limit: PUSH_TIMEOUT,
        };
        match job.remote.push(&push)? {
            PushResult::Done(_) => released = Some(release),
            PushResult::Diverged(_) => {}
            PushResult::Rejected(reason) => why = reason,
        }
    }
    Err(UpstreamError::Unreachable { remote: job.remote.display_url(), why }.into())
}

/// Saves at the remote the work that is committed here and is not on its branch; returns the name of the reference.
pub(super) fn rescue_commits(job: &DriveJob) -> Result<Option<String>, JobError> {
    let repository = job.checkout.open_repository()?;
    let Some(own_tip) = repository.find_branch_tip(&job.branch)? else { return Ok(None) };
    let remote_tip = job.remote.read_refs(&job.branch)?.tip;
    if let Some(remote_tip) = remote_tip {
        job.remote.fetch(&job.branch)?;
        if repository.is_ancestor(&find_newest_work(&repository, &own_tip)?, &remote_tip)? {
            return Ok(None);
        }
    }
    let name = format!("refs/runner/rescue/{}/{}", job.options.run, job.driver.name());
    let name = match load_run_config(job, &repository, own_tip)?.publish.extras {
        PublishExtras::Branches => to_branch_name(&name).unwrap_or(name),
        PublishExtras::Refs | PublishExtras::Off => name,
    };
    job.remote.push_ref(&own_tip, &name, PUSH_TIMEOUT)?;
    Ok(Some(name))
}

/// Returns the newest commit that does more than record who drives.
fn find_newest_work(repository: &Repository, own_tip: &Id) -> Result<Id, JobError> {
    let mut newest = *own_tip;
    repository.visit_first_parents(own_tip, MAX_COMMITS, |commit| {
        newest = commit.id;
        !RunnerCommit::parse(&commit.message).is_ok_and(|read| read.names_driver())
    })?;
    Ok(newest)
}

/// Whether another driver has taken over the branch; `None` if the branch is gone.
pub(super) fn has_other_driver(job: &DriveJob) -> Result<Option<bool>, JobError> {
    let Some(tip) = job.remote.read_refs(&job.branch)?.tip else { return Ok(None) };
    job.remote.fetch(&job.branch)?;
    let claim_state = find_claim(job, &job.checkout.open_repository()?, &tip)?;
    Ok(Some(claim_state != ClaimState::By(job.driver.clone())))
}

fn marker_commit(job: &DriveJob) -> MarkerCommit {
    MarkerCommit {
        run: job.options.run.clone(),
        summary: String::new(),
        version: worker::runner_version(),
        from: None,
        guard_run: None,
        reverted: NameList::default(),
        guard_wrote: NameList::default(),
        driver: Some(job.driver.clone()),
    }
}

/// Makes a commit that changes no file, signed if the run's commits are.
fn write_marker(job: &DriveJob, repository: &Repository, parent: &Id, commit: &RunnerCommit) -> Result<Id, JobError> {
    let sign = load_run_config(job, repository, *parent)?.git.sign;
    let who = repository.identity().unwrap_or_else(Identity::runner);
    tracing::info!(run = job.options.run, %parent, "{}", commit.compose().lines().next().unwrap_or_default());
    Ok(repository.create_commit(&NewCommit {
        tree: repository.tree_id(parent)?,
        parents: &[*parent],
        author: None,
        committer: &who,
        message: &commit.compose(),
        sign,
    })?)
}

/// Returns who has claimed a run, from its branch. A commit by another build of the runner is an error, not skipped.
fn find_claim(job: &DriveJob, repository: &Repository, tip: &Id) -> Result<ClaimState, JobError> {
    let mut found = None;
    repository.visit_first_parents(tip, MAX_COMMITS, |commit| {
        found = match RunnerCommit::parse(&commit.message) {
            Ok(read) => read.names_driver().then_some(Ok(commit.message)),
            Err(why) => claims_receipt(commit.message.as_bytes()).then_some(Err((commit.id, why))),
        };
        found.is_some()
    })?;
    match found.transpose() {
        Ok(message) => Ok(ClaimState::from_messages(message.as_ref().map(String::as_bytes))),
        Err((commit, why)) => Err(JobError::UnreadableCommit { branch: job.branch.clone(), commit, why }),
    }
}

/// Whether a driver has committed since, and not only people.
fn has_driver_commit_since(repository: &Repository, tip: &Id, since: &Id) -> Result<bool, JobError> {
    let mut is_driven = false;
    repository.visit_first_parents(tip, MAX_COMMITS, |CommitInfo { id, message, .. }| {
        is_driven |= id != *since && RunnerCommit::parse(&message).is_ok();
        id == *since
    })?;
    Ok(is_driven)
}

fn is_completed(job: &DriveJob, repository: &Repository, tip: Id) -> Result<bool, JobError> {
    let settled = worker::last_runner_commit(repository, tip).map_err(|error| match error {
        LoadError::Rules { commit, source } => {
            JobError::UnreadableCommit { branch: job.branch.clone(), commit, why: source.into() }
        }
        LoadError::Tampered { commit, source: why } => {
            JobError::UnreadableCommit { branch: job.branch.clone(), commit, why }
        }
        LoadError::Git(error) => error.into(),
        error => config_error(job, tip, error),
    })?;
    // If it cannot be read, the engine holds the run.
    let Ok(loaded) = worker::load_state(repository, tip) else { return Ok(false) };
    let run = Some(job.options.run.as_str());
    if loaded.run_state.run_id.as_deref() != run {
        return Err(JobError::ForeignBranch { remote: job.remote.display_url(), branch: job.branch.clone() });
    }
    if !loaded.tree.root.passes {
        return Ok(false);
    }
    // A person's claim alone does not complete it: the engine checks what they have done, and holds the run.
    Ok(settled.and_then(|at| worker::load_state(repository, at).ok()).is_some_and(|settled| settled.tree.root.passes))
}

/// Returns the time limit of an iteration if it must be waited out; an unreadable configuration is an error, not a
/// shorter limit.
fn longest_iteration(
    job: &DriveJob,
    repository: &Repository,
    tip: Id,
    claimed: &ClaimState,
) -> Result<Duration, JobError> {
    if *claimed == ClaimState::Unclaimed || job.options.take_over {
        return Ok(Duration::ZERO);
    }
    load_run_config(job, repository, tip).map(|config| config.iteration_timeout)
}

/// Reads the configuration at a commit of the run.
pub(super) fn load_run_config(job: &DriveJob, repository: &Repository, commit: Id) -> Result<RepoConfig, JobError> {
    worker::load_config(repository, commit).map_err(|source| config_error(job, commit, source))
}

fn config_error(job: &DriveJob, commit: Id, source: LoadError) -> JobError {
    JobError::Config { run: job.options.run.clone(), commit, source: Box::new(source) }
}
