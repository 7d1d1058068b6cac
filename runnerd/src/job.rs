//! `runnerd drive`: one run as a restartable job of a batch engine, in the foreground, by the daemon's own engine.
//!
//! The run's branch at a remote is its checkpoint: the job claims it, drives the run in a work tree of its own, publishes each
//! commit and releases it. Nothing here schedules, elects or beats a heart.

mod claim;
mod engine;
mod error;
mod follow;
mod ground;
mod options;
mod place;
mod records;
mod signals;

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use protocol::error::ExitStatus;
use protocol::paths::Paths;
use protocol::shell::quoted;
use protocol::words::RunStatus;
use runner_core::driver::Driver;
use runner_core::ids::check_id;
use tokio::task::block_in_place;
use tokio::time::sleep;

use self::claim::Taken;
pub use self::error::JobError;
use self::follow::Ended;
use self::ground::{CheckOut, Ground};
pub use self::options::Options;
use self::place::Place;
use self::records::Keeper;
use self::signals::Signals;
use crate::causes::in_one_line;
use crate::clock;
use crate::config::DaemonConfig;
use crate::daemon;
use crate::git::Id;
use crate::logging::{self, Destination};
use crate::upstream::{Gate, Hurry, PUSH, Parted, Sent, Upstream, UpstreamError, url_of, without_password};

/// Longest goal, in bytes.
const GOAL_LIMIT: u64 = 64 * 1024;
/// Pause after which a remote that was away is worth another try.
const REMOTE_PAUSE: Duration = Duration::from_mins(1);

/// One run, and where it is driven.
#[derive(Debug)]
struct Job {
    options: Options,
    goal: Option<String>,
    driver: Driver,
    branch: String,
    ground: Ground,
    gate: Gate,
    socket: PathBuf,
}

/// Drives a run until it is over, or until the job is; returns the exit code.
pub async fn drive(options: Options, users: &Paths, config: &DaemonConfig) -> Result<u8, JobError> {
    check_id(&options.run).map_err(|source| JobError::Id { id: options.run.clone(), source })?;
    let hurry = Hurry::default();
    let signals = Signals::listen(hurry.clone()).map_err(JobError::io("listening for signals in", Path::new(".")))?;
    let driver = engine::driver(|name| std::env::var(name).ok())?;
    let goal = goal(&options)?;
    let url = url(&options)?;
    if options.start_only && without_password(&url) != url {
        return Err(JobError::Password);
    }
    if options.dry_run {
        tell(&url);
        return Ok(ExitStatus::Fine.code());
    }
    if let Some(log) = &options.tip_log {
        OpenOptions::new().append(true).open(log).map_err(JobError::io("opening the tip log", log))?;
    }
    let place = Place::make(&driver)?;
    let paths = place.paths(users)?;
    let logging = logging::init(&paths.logs(), Destination::Auto, Some(config.log_level.as_str()))?;
    let work = options.work.clone().unwrap_or_else(|| place.work());
    let ground = block_in_place(|| Ground::make(&work, (&options.remote, &url), options.cache.as_deref()))?;
    let gate = block_in_place(|| Gate::make(&place.gate(), (&ground.objects(), &url), hurry))?;
    let gate = gate.telling(options.tip_log.clone()).knowing(ground.commit());
    let branch = format!("runner/{}", options.run);
    let job = Job { options, goal, driver, branch, ground, gate, socket: paths.socket.clone() };
    job.run(signals, (paths, config, &logging)).await
}

impl Job {
    async fn run(
        &self,
        mut signals: Signals,
        daemon: (Paths, &DaemonConfig, &logging::Logging),
    ) -> Result<u8, JobError> {
        let run = &self.options.run;
        let taken = tokio::select! {
            taken = claim::take(self) => taken,
            () = signals.next() => return Ok(self.options.again_code),
        };
        let taken = match taken {
            Err(JobError::Upstream(error @ UpstreamError::Away { .. })) => return Ok(self.away(&error, &signals)),
            taken => taken?,
        };
        let (at, branch, is_new) = match &taken {
            Taken::There => {
                note(&format!("run {run} is there already, and goes on from there"));
                tell(&self.gate.shown());
                return Ok(ExitStatus::Fine.code());
            }
            Taken::Completed if self.options.start_only => {
                return Err(JobError::Completed { remote: self.gate.shown(), run: run.clone() });
            }
            Taken::Completed => {
                note(&format!("run {run} is completed"));
                return Ok(ExitStatus::Fine.code());
            }
            Taken::Overtaken => {
                note(&format!("another driver goes on with run {run}"));
                return Ok(ExitStatus::Superseded.code());
            }
            Taken::Claimed(claim) => (claim, &self.branch, false),
            Taken::New { branch, base } => (base, branch, true),
        };
        let done = self.claimed((branch, *at, is_new), signals, daemon).await;
        if done.is_err()
            && let Err(error) = block_in_place(|| claim::release(self))
        {
            tracing::warn!(error = in_one_line(&error), "not released");
        }
        done
    }

    /// Drives a run that is this job's.
    async fn claimed(
        &self,
        (branch, at, is_new): (&str, Id, bool),
        mut signals: Signals,
        daemon: (Paths, &DaemonConfig, &logging::Logging),
    ) -> Result<u8, JobError> {
        let aside = format!("refs/runner/left/{}/{}", self.options.run, self.driver.nonce);
        let out = CheckOut { commit: at, branch, run: &self.branch, aside: &aside };
        block_in_place(|| self.ground.check_out(&out))?;
        if !self.options.start_only {
            note(&format!(
                "driving run {} at {} as {}; steer it with: runnerctl --socket {}",
                self.options.run,
                self.gate.shown(),
                self.driver,
                self.socket.display()
            ));
        }
        let config = block_in_place(|| claim::config(self, &self.ground.repository()?, at))?;
        let upstream = Upstream::new(self.gate.clone(), (&self.options.run, self.driver.clone()), config.publish);
        let upstream = Arc::new(upstream.starting_only(self.options.start_only));
        upstream.stands_at((!is_new).then_some(at));
        let mut keeper = self.keeper()?;
        let ended = daemon::run_for(daemon, Arc::clone(&upstream), async |registry| {
            follow::follow((self, &upstream, &mut signals), (registry, &mut keeper), is_new).await
        })
        .await;
        if let Some(keeper) = &mut keeper {
            block_in_place(|| keeper.keep(None));
        }
        let ended = ended??;
        let sent = self.publish_last(&upstream, &mut signals).await?;
        block_in_place(|| self.finish(&ended, (&upstream, &sent)))
    }

    /// Returns who keeps the records, where that is asked for.
    fn keeper(&self) -> Result<Option<Keeper>, JobError> {
        let Some(folder) = &self.options.records else { return Ok(None) };
        let keeper = Keeper::new(&self.ground.folder, &self.options.run, (folder, &self.driver));
        keeper.map(Some).map_err(JobError::io("making the folder of records in", folder))
    }

    /// Publishes what was committed last. A remote that is away is waited for, as long as a job may: what it does not get is
    /// lost with the folder of the job.
    async fn publish_last(&self, upstream: &Upstream, signals: &mut Signals) -> Result<Sent, JobError> {
        let begun = clock::since_boot();
        for turn in 0_usize.. {
            let sent = block_in_place(|| Ok::<_, JobError>(upstream.publish(&self.ground.repository()?, PUSH)?))?;
            let Some(why) = sent.view.as_ref().and_then(|view| view.why.as_ref()) else { return Ok(sent) };
            let left = self.options.max_wait.saturating_sub(clock::since_boot().saturating_sub(begun));
            if upstream.parted() == Some(Parted::Overtaken) || signals.is_told() || left.is_zero() {
                return Ok(sent);
            }
            note(&format!("{}; it is tried again", why.message));
            tokio::select! {
                () = sleep(claim::pause(turn).min(left)) => {}
                () = signals.next() => {}
            }
        }
        Ok(Sent::default())
    }

    /// Releases the run, and says what becomes of the job.
    fn finish(&self, ended: &Ended, (upstream, sent): (&Upstream, &Sent)) -> Result<u8, JobError> {
        if upstream.parted() == Some(Parted::Overtaken) {
            return self.overtaken();
        }
        if let Some(view) = &sent.view
            && let Some(why) = &view.why
        {
            note(&format!("{}; commits that are not published: {}", why.message, view.behind.unwrap_or_default()));
            return Ok(self.again(Some(later(self.options.max_wait.max(REMOTE_PAUSE)))));
        }
        if let Err(error) = claim::release(self) {
            note(&format!("not released: {error}"));
            return Ok(self.again(Some(later(REMOTE_PAUSE))));
        }
        Ok(match ended {
            Ended::Parted(Parted::Begun) => {
                note(&format!("run {} is begun at {}", self.options.run, self.gate.shown()));
                tell(&self.gate.shown());
                ExitStatus::Fine.code()
            }
            Ended::Told | Ended::Parted(_) => self.again(None),
            Ended::Waits(until, reason) => {
                if let Some(reason) = reason {
                    note(&reason.message);
                }
                self.again(Some(*until))
            }
            Ended::Stopped(state, reason) => {
                let why = reason.as_ref().map(|reason| format!(": {}", reason.message)).unwrap_or_default();
                note(&format!("run {} is {state}{why}", self.options.run));
                of_state(*state).code()
            }
        })
    }

    /// Keeps at the remote what the branch there does not have. Only another driver supersedes this one; people do not.
    fn overtaken(&self) -> Result<u8, JobError> {
        if let Some(name) = claim::rescue(self)? {
            note(&format!("what was not published is kept at the remote as {name}"));
        }
        match claim::belongs_to_another(self)? {
            Some(true) => {
                note(&format!("another driver goes on with run {}", self.options.run));
                Ok(ExitStatus::Superseded.code())
            }
            Some(false) => {
                note(&format!("somebody has committed on {}: the next driver begins from there", self.branch));
                claim::release(self)?;
                Ok(self.again(None))
            }
            None => {
                note(&format!("branch {} is gone at {}", self.branch, self.gate.shown()));
                Ok(ExitStatus::Refused.code())
            }
        }
    }

    /// Says that the remote is away, and gives the job back.
    fn away(&self, error: &UpstreamError, signals: &Signals) -> u8 {
        if signals.is_told() {
            return self.again(None);
        }
        note(&error.to_string());
        note(&format!("see for yourself: git ls-remote {}", quoted(&self.gate.shown())));
        self.again(Some(later(self.options.max_wait.max(REMOTE_PAUSE))))
    }

    /// Returns the code that has the engine run the job again, and says when that is of use.
    fn again(&self, not_before: Option<Timestamp>) -> u8 {
        if let Some(when) = not_before {
            tell(&format!("not before {}", when.round(jiff::Unit::Second).unwrap_or(when)));
        }
        self.options.again_code
    }
}

fn later(span: Duration) -> Timestamp {
    let now = clock::now();
    now.checked_add(span).unwrap_or(now)
}

fn of_state(state: RunStatus) -> ExitStatus {
    match state {
        RunStatus::Completed => ExitStatus::Fine,
        RunStatus::Stuck => ExitStatus::Stuck,
        RunStatus::Limit | RunStatus::TimedOut => ExitStatus::Limit,
        RunStatus::Failed | RunStatus::Cancelled => ExitStatus::RunEnded,
        RunStatus::Queued | RunStatus::Running | RunStatus::Paused | RunStatus::Waiting | RunStatus::Held => {
            ExitStatus::Refused
        }
    }
}

fn goal(options: &Options) -> Result<Option<String>, JobError> {
    let Some(path) = &options.goal else { return Ok(options.message.clone()) };
    let of = |what| JobError::Goal { path: path.clone(), what };
    let found = fs::metadata(path).map_err(JobError::io("looking at", path))?;
    if found.len() > GOAL_LIMIT {
        return Err(of("is longer than 64 KiB"));
    }
    let text = fs::read_to_string(path).map_err(JobError::io("reading", path))?;
    if text.trim().is_empty() { Err(of("is empty")) } else { Ok(Some(text)) }
}

/// Returns the address of the remote: that of a repository here, or what was given. A bare repository is a remote itself,
/// wherever it was cloned from.
fn url(options: &Options) -> Result<String, JobError> {
    let path = Path::new(&options.place);
    if !path.is_dir() {
        return Ok(options.place.clone());
    }
    let path = path.canonicalize().map_err(JobError::io("looking at", path))?;
    if path.join("objects").is_dir() && path.join("HEAD").is_file() {
        return Ok(path.display().to_string());
    }
    Ok(url_of(&path, &options.remote)?)
}

/// Says something to whoever reads the job's output.
#[expect(clippy::print_stderr, reason = "the output of a job is what its engine keeps")]
fn note(line: &str) {
    eprintln!("runnerd: {line}");
}

/// Prints a fact.
#[expect(clippy::print_stdout, reason = "the answer of a command that ends")]
fn tell(line: &str) {
    println!("{line}");
}
