//! `runnerd drive`: drives one run as a restartable job of a batch system, in the foreground, with the daemon's own
//! engine.
//!
//! The run's branch at a remote is its checkpoint: the job claims it, drives the run in its own work tree, publishes
//! each commit and releases the run. There is no scheduling, election or heartbeat here.

mod batch_system;
mod checkout;
mod claim;
mod error;
mod follow;
mod job_dir;
mod options;
mod record_archive;
mod signals;

use std::fs::OpenOptions;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use protocol::error::ExitStatus;
use protocol::paths::Paths;
use protocol::shell::quote;
use protocol::text_file;
use protocol::words::RunStatus;
use runner_config::DaemonConfig;
use runner_core::driver::Driver;
use runner_core::tree::ids::check_id;
use runner_git::Id;
use runner_os::clock;
use runner_os::error_chain::display_chain;
use tokio::task::block_in_place;
use tokio::time::sleep;

use self::checkout::{CheckoutRequest, JobCheckout};
use self::claim::ClaimResult;
pub use self::error::JobError;
use self::follow::JobEnd;
use self::job_dir::JobDir;
pub use self::options::DriveOptions;
use self::record_archive::RecordArchive;
use self::signals::JobSignals;
use crate::daemon;
use crate::logging::{self, LogDestination};
use crate::upstream::{
    Deadline, PUSH_TIMEOUT, RemoteClient, SupersededReason, Upstream, UpstreamError, UpstreamOutcome, remote_url,
    without_password,
};

/// Size limit of a goal in bytes.
const MAX_GOAL_BYTES: u64 = 64 * 1024;
/// Pause after which an unreachable remote is worth another attempt.
const REMOTE_RETRY_INTERVAL: Duration = Duration::from_mins(1);

/// One run, and where it is driven.
#[derive(Debug)]
struct DriveJob {
    options: DriveOptions,
    goal: Option<String>,
    driver: Driver,
    branch: String,
    checkout: JobCheckout,
    remote: RemoteClient,
    socket: PathBuf,
}

/// Drives a run until it is over, or the job must end; returns the exit code.
pub async fn drive(options: DriveOptions, user_paths: &Paths, config: &DaemonConfig) -> Result<u8, JobError> {
    check_id(&options.run).map_err(|source| JobError::Id { id: options.run.clone(), source })?;
    let deadline = Deadline::new(print_note);
    let signals =
        JobSignals::listen(deadline.clone()).map_err(JobError::io("listening for signals in", Path::new(".")))?;
    let driver = batch_system::detect_driver(|name| std::env::var(name).ok())?;
    let goal = read_goal(&options)?;
    let url = drive_url(&options)?;
    if options.start_only && without_password(&url) != url {
        return Err(JobError::Password);
    }
    if options.dry_run {
        print_fact(&url);
        return Ok(ExitStatus::Success.code());
    }
    if let Some(log) = &options.tip_log {
        text_file::refuse_pipe(log)
            .and_then(|()| OpenOptions::new().append(true).open(log))
            .map_err(JobError::io("opening the tip log", log))?;
    }
    let job_dir = JobDir::create(&driver)?;
    let paths = job_dir.paths(user_paths)?;
    let logging = logging::init(&paths.log_dir(), LogDestination::Auto, Some(config.log_level.as_str()))?;
    let work = options.work.clone().unwrap_or_else(|| job_dir.work_tree_dir());
    let checkout = block_in_place(|| JobCheckout::open(&work, &options.remote, &url, options.cache.as_deref()))?;
    let remote =
        block_in_place(|| RemoteClient::create(&job_dir.remote_dir(), &checkout.objects_dir(), &url, deadline))?;
    let remote = remote.with_tip_log(options.tip_log.clone()).with_known_commit(checkout.checked_out_commit());
    let branch = format!("runner/{}", options.run);
    let job = DriveJob { options, goal, driver, branch, checkout, remote, socket: paths.socket.clone() };
    job.run(signals, (paths, config, &logging)).await
}

impl DriveJob {
    async fn run(
        &self,
        mut signals: JobSignals,
        daemon: (Paths, &DaemonConfig, &logging::Logging),
    ) -> Result<u8, JobError> {
        let run = &self.options.run;
        let claim_result = tokio::select! {
            taken = claim::acquire_run(self) => taken,
            () = signals.wait_next() => return Ok(self.options.again_code),
        };
        let claim_result = match claim_result {
            Err(JobError::Upstream(error @ UpstreamError::Unreachable { .. })) => {
                return Ok(self.finish_unreachable(&error, &signals));
            }
            taken => taken?,
        };
        let (at, branch, is_new) = match &claim_result {
            ClaimResult::AlreadyStarted => {
                print_note(&format!("run {run} already exists, and continues from there"));
                print_fact(&self.remote.display_url());
                return Ok(ExitStatus::Success.code());
            }
            ClaimResult::Completed if self.options.start_only => {
                return Err(JobError::Completed { remote: self.remote.display_url(), run: run.clone() });
            }
            ClaimResult::Completed => {
                print_note(&format!("run {run} is completed"));
                return Ok(ExitStatus::Success.code());
            }
            ClaimResult::Superseded => {
                print_note(&format!("another driver continues with run {run}"));
                return Ok(ExitStatus::Superseded.code());
            }
            ClaimResult::Claimed(claim) => (claim, &self.branch, false),
            ClaimResult::New { branch, base } => (base, branch, true),
        };
        let done = self.drive_claimed(branch, *at, is_new, signals, daemon).await;
        if done.is_err()
            && let Err(error) = block_in_place(|| claim::release_run(self))
        {
            tracing::warn!(error = display_chain(&error), "not released");
        }
        done
    }

    /// Drives a run that this job has claimed.
    async fn drive_claimed(
        &self,
        branch: &str,
        at: Id,
        is_new: bool,
        mut signals: JobSignals,
        daemon: (Paths, &DaemonConfig, &logging::Logging),
    ) -> Result<u8, JobError> {
        let (paths, config, logging) = daemon;
        let ref_prefix = format!("refs/runner/left/{}/{}", self.options.run, self.driver.nonce);
        let request = CheckoutRequest { commit: at, branch, run_branch: &self.branch, ref_prefix: &ref_prefix };
        block_in_place(|| self.checkout.check_out(&request))?;
        if !self.options.start_only {
            print_note(&format!(
                "driving run {} at {} as {}; steer it with: runnerctl --socket {}",
                self.options.run,
                self.remote.display_url(),
                self.driver,
                self.socket.display()
            ));
        }
        let run_config = block_in_place(|| claim::load_run_config(self, &self.checkout.open_repository()?, at))?;
        let upstream = Upstream::new(self.remote.clone(), &self.options.run, self.driver.clone(), run_config.publish);
        let upstream = Arc::new(upstream.with_starts_only(self.options.start_only));
        upstream.set_published((!is_new).then_some(at));
        let mut archive = self.open_archive()?;
        let run_end = daemon::run_job_daemon(paths, config, logging, Arc::clone(&upstream), async |registry| {
            follow::follow_run(self, &upstream, &mut signals, registry, &mut archive, is_new).await
        })
        .await;
        if let Some(archive) = &mut archive {
            block_in_place(|| archive.archive_finished(None));
        }
        let run_end = run_end??;
        let outcome = self.publish_last(&upstream, &mut signals).await?;
        block_in_place(|| self.finish(&run_end, &upstream, &outcome))
    }

    /// Returns the keeper of the records, if requested.
    fn open_archive(&self) -> Result<Option<RecordArchive>, JobError> {
        let Some(folder) = &self.options.records else { return Ok(None) };
        let archive = RecordArchive::new(&self.checkout.folder, &self.options.run, folder, &self.driver);
        archive.map(Some).map_err(JobError::io("making the directory of records in", folder))
    }

    /// Publishes the last commits. Waits for an unreachable remote as long as a job may: what it does not receive is
    /// lost with the job's folder.
    async fn publish_last(&self, upstream: &Upstream, signals: &mut JobSignals) -> Result<UpstreamOutcome, JobError> {
        let started = clock::since_boot();
        for attempt in 0_usize.. {
            let outcome = block_in_place(|| {
                Ok::<_, JobError>(upstream.publish(&self.checkout.open_repository()?, PUSH_TIMEOUT)?)
            })?;
            let Some(why) = outcome.view.as_ref().and_then(|view| view.why.as_ref()) else { return Ok(outcome) };
            let remaining = self.options.max_wait.saturating_sub(clock::since_boot().saturating_sub(started));
            if upstream.superseded_reason() == Some(SupersededReason::RemoteAhead)
                || signals.was_signaled()
                || remaining.is_zero()
            {
                return Ok(outcome);
            }
            print_note(&format!("{}; it is tried again", why.message));
            tokio::select! {
                () = sleep(claim::retry_pause(attempt).min(remaining)) => {}
                () = signals.wait_next() => {}
            }
        }
        Ok(UpstreamOutcome::default())
    }

    /// Releases the run, and returns the exit code of the job.
    fn finish(&self, run_end: &JobEnd, upstream: &Upstream, outcome: &UpstreamOutcome) -> Result<u8, JobError> {
        if upstream.superseded_reason() == Some(SupersededReason::RemoteAhead) {
            return self.finish_superseded();
        }
        if let Some(view) = &outcome.view
            && let Some(why) = &view.why
        {
            print_note(&format!(
                "{}; commits that are not published: {}",
                why.message,
                view.behind.unwrap_or_default()
            ));
            return Ok(self.request_restart(Some(time_after(self.options.max_wait.max(REMOTE_RETRY_INTERVAL)))));
        }
        if let Err(error) = claim::release_run(self) {
            print_note(&format!("not released: {error}"));
            return Ok(self.request_restart(Some(time_after(REMOTE_RETRY_INTERVAL))));
        }
        Ok(match run_end {
            JobEnd::Superseded(SupersededReason::StartedOnly) => {
                print_note(&format!("run {} is begun at {}", self.options.run, self.remote.display_url()));
                print_fact(&self.remote.display_url());
                ExitStatus::Success.code()
            }
            JobEnd::Terminated | JobEnd::Superseded(_) => self.request_restart(None),
            JobEnd::WaitsTooLong(until, reason) => {
                if let Some(reason) = reason {
                    print_note(&reason.message);
                }
                self.request_restart(Some(*until))
            }
            JobEnd::Stopped(state, reason) => {
                let why = reason.as_ref().map(|reason| format!(": {}", reason.message)).unwrap_or_default();
                print_note(&format!("run {} {}{why}", self.options.run, state.predicate()));
                exit_status_for(*state).code()
            }
        })
    }

    /// Saves at the remote what its branch does not have. Only another driver supersedes this one; people's commits do
    /// not.
    fn finish_superseded(&self) -> Result<u8, JobError> {
        if let Some(name) = claim::rescue_commits(self)? {
            print_note(&format!("what was not published is kept at the remote as {name}"));
        }
        match claim::has_other_driver(self)? {
            Some(true) => {
                print_note(&format!("another driver continues with run {}", self.options.run));
                Ok(ExitStatus::Superseded.code())
            }
            Some(false) => {
                print_note(&format!("someone has committed to {}: the next driver starts from there", self.branch));
                claim::release_run(self)?;
                Ok(self.request_restart(None))
            }
            None => {
                print_note(&format!("branch {} is gone at {}", self.branch, self.remote.display_url()));
                Ok(ExitStatus::Refused.code())
            }
        }
    }

    /// Reports that the remote is unreachable, and gives the job back.
    fn finish_unreachable(&self, error: &UpstreamError, signals: &JobSignals) -> u8 {
        if signals.was_signaled() {
            return self.request_restart(None);
        }
        print_note(&error.to_string());
        print_note(&format!("see for yourself: git ls-remote {}", quote(&self.remote.display_url())));
        self.request_restart(Some(time_after(self.options.max_wait.max(REMOTE_RETRY_INTERVAL))))
    }

    /// Returns the exit code that makes the engine run the job again, and prints when that is useful.
    fn request_restart(&self, not_before: Option<Timestamp>) -> u8 {
        if let Some(when) = not_before {
            print_fact(&format!("not before {}", when.round(jiff::Unit::Second).unwrap_or(when)));
        }
        self.options.again_code
    }
}

fn time_after(span: Duration) -> Timestamp {
    let now = clock::now();
    now.checked_add(span).unwrap_or(now)
}

fn exit_status_for(state: RunStatus) -> ExitStatus {
    match state {
        RunStatus::Completed => ExitStatus::Success,
        RunStatus::Stuck => ExitStatus::Stuck,
        RunStatus::Limit | RunStatus::TimedOut => ExitStatus::Limit,
        RunStatus::Failed | RunStatus::Cancelled => ExitStatus::RunEnded,
        RunStatus::Queued | RunStatus::Running | RunStatus::Paused | RunStatus::Waiting | RunStatus::Held => {
            ExitStatus::Refused
        }
    }
}

fn read_goal(options: &DriveOptions) -> Result<Option<String>, JobError> {
    let Some(path) = &options.goal else { return Ok(options.message.clone()) };
    let goal_error = |what| JobError::Goal { path: path.clone(), what };
    let mut text = String::new();
    let read = text_file::open_file(path).and_then(|file| file.take(MAX_GOAL_BYTES + 1).read_to_string(&mut text));
    read.map_err(JobError::io("reading", path))?;
    if text.len() as u64 > MAX_GOAL_BYTES {
        return Err(goal_error("is longer than 64 KiB"));
    }
    if text.trim().is_empty() { Err(goal_error("is empty")) } else { Ok(Some(text)) }
}

/// Returns the address of the remote: of a local repository's remote, or as given. A bare repository is itself the
/// remote, wherever it was cloned from.
fn drive_url(options: &DriveOptions) -> Result<String, JobError> {
    let path = Path::new(&options.place);
    if !path.is_dir() {
        return Ok(options.place.clone());
    }
    let path = path.canonicalize().map_err(JobError::io("looking at", path))?;
    if path.join("objects").is_dir() && path.join("HEAD").is_file() {
        return Ok(path.display().to_string());
    }
    Ok(remote_url(&path, &options.remote)?)
}

/// Prints a message to the job's log.
#[expect(clippy::print_stderr, reason = "the output of a job is what its engine keeps")]
fn print_note(line: &str) {
    eprintln!("runnerd: {line}");
}

/// Prints a fact to standard output.
#[expect(clippy::print_stdout, reason = "the answer of a command that ends")]
fn print_fact(line: &str) {
    println!("{line}");
}
