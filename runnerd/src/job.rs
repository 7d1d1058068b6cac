//! `runnerd drive`: one run as a restartable job of a batch engine, in the foreground, by the daemon's own engine.
//!
//! The run's branch at a remote is its checkpoint: the job claims it, drives the run in a work tree of its own, publishes each
//! commit and releases it. Nothing here schedules, elects or beats a heart.

mod claim;
mod engine;
mod follow;
mod ground;
mod options;
mod place;
mod signals;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use protocol::client::{CallError, ConnectError};
use protocol::error::ExitStatus;
use protocol::paths::{Paths, PathsError};
use protocol::private::FolderError;
use protocol::shell::quoted;
use protocol::words::RunStatus;
use runner_core::driver::Driver;
use runner_core::ids::{IdError, check_id};
use runner_core::message::MessageError;
use tokio::task::block_in_place;
use tokio::time::sleep;

use self::claim::Taken;
use self::follow::Ended;
use self::ground::{CheckOut, Ground};
pub use self::options::Options;
use self::place::Place;
use self::signals::Signals;
use crate::causes::in_one_line;
use crate::clock;
use crate::config::DaemonConfig;
use crate::daemon::{self, DaemonError};
use crate::git::{GitError, Id};
use crate::logging::{self, Destination, LoggingError};
use crate::upstream::{Gate, Hurry, PUSH, Parted, Sent, Upstream, UpstreamError, url_of};
use crate::worker::LoadError;

/// Commits that may be unpublished while the run goes on.
const UNPUBLISHED_MAX: u32 = 3;
/// Longest goal, in bytes.
const GOAL_LIMIT: u64 = 64 * 1024;
/// Pause after which a remote that was away is worth another try.
const REMOTE_PAUSE: Duration = Duration::from_mins(1);

/// Why a job does not drive its run.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The id of the run.
    #[error("`{id}` is no id of a run")]
    Id {
        /// What was given.
        id: String,
        /// What is wrong with it.
        source: IdError,
    },
    /// The goal.
    #[error("the goal {path} {what}")]
    Goal {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A folder or file of the job's.
    #[error("{doing} {path}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The work tree's folder has something else.
    #[error("{path} is not empty, and no driver has made it")]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
    /// The work tree is used by another driver.
    #[error("another driver works in {path}")]
    Occupied {
        /// The work tree.
        path: PathBuf,
    },
    /// The cache is no repository.
    #[error("{path} has no git objects")]
    NoStore {
        /// The folder.
        path: PathBuf,
    },
    /// There is nothing to go on with, and nothing to begin.
    #[error("{remote} has no run {run}, and no goal for a new one was given")]
    Neither {
        /// The remote.
        remote: String,
        /// The run.
        run: String,
    },
    /// A run cannot begin at a remote without a commit.
    #[error("{remote} has no branch that a run could begin from")]
    Empty {
        /// The remote.
        remote: String,
    },
    /// The branch is of another run.
    #[error("branch {branch} at {remote} is of another run")]
    NotOfRun {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
    },
    /// A commit on the branch is of a runner that is not understood.
    #[error("commit {commit} on branch {branch} is the runner's, and is not understood: {why}")]
    Unread {
        /// The branch.
        branch: String,
        /// The commit.
        commit: Id,
        /// What is wrong with it.
        why: MessageError,
    },
    /// How long to wait for another driver cannot be told.
    #[error("the configuration of run {run} at commit {commit}, which another driver has, cannot be read")]
    Config {
        /// The run.
        run: String,
        /// The commit.
        commit: Id,
        /// What is wrong with it.
        source: Box<LoadError>,
    },
    /// The daemon of the job was gone before the run was over.
    #[error("the engine has ended before the run")]
    Interrupted,
    /// The remote.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// Git.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The folder of the job.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The socket of the job.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// The log of the job.
    #[error(transparent)]
    Logging(#[from] LoggingError),
    /// The daemon of the job.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The daemon of the job does not answer.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The daemon of the job refuses the run.
    #[error(transparent)]
    Call(CallError),
    /// No random number can be had.
    #[error("making a nonce")]
    Nonce(#[from] getrandom::Error),
}

impl JobError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// Returns the exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Id { .. } => ExitStatus::Usage.code(),
            Self::NotOurs { .. }
            | Self::Occupied { .. }
            | Self::Neither { .. }
            | Self::Empty { .. }
            | Self::NotOfRun { .. }
            | Self::Unread { .. }
            | Self::Config { .. } => ExitStatus::Refused.code(),
            Self::Call(error) => error.exit_status().code(),
            Self::Daemon(error) => error.exit_code(),
            Self::Connect(error) => error.exit_status().code(),
            Self::Goal { .. }
            | Self::Io { .. }
            | Self::NoStore { .. }
            | Self::Interrupted
            | Self::Upstream(_)
            | Self::Git(_)
            | Self::Folder(_)
            | Self::Paths(_)
            | Self::Logging(_)
            | Self::Nonce(_) => ExitStatus::Error.code(),
        }
    }

    /// Returns what can be done about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Neither { .. } => Some("give --goal FILE or -m TEXT, or the id of a run that is there".to_owned()),
            Self::NotOurs { .. } => Some("name another folder with --work".to_owned()),
            Self::Occupied { .. } => Some("wait for it, or name another folder with --work".to_owned()),
            Self::NoStore { .. } => Some("name a bare clone with --cache".to_owned()),
            Self::Upstream(UpstreamError::NoRemote { .. }) => {
                Some("name a remote with --remote, or the address of one in the place of the path".to_owned())
            }
            Self::Unread { .. } => {
                Some("drive it with the build of runnerd that has written it, or a newer one".to_owned())
            }
            Self::Config { .. } => {
                Some("correct .runner/state/config.toml on the run's branch, once its driver has ended".to_owned())
            }
            Self::Call(CallError::Refused(refusal)) => refusal.hint.clone(),
            _ => None,
        }
    }
}

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
    let place = Place::make(&driver)?;
    let paths = place.paths(users)?;
    let logging = logging::init(&paths.logs(), Destination::Auto, Some(config.log_level.as_str()))?;
    let work = options.work.clone().unwrap_or_else(|| place.work());
    let ground = block_in_place(|| Ground::make(&work, (&options.remote, &url), options.cache.as_deref()))?;
    let gate = block_in_place(|| Gate::make(&place.gate(), (&ground.objects(), &url), hurry))?;
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
        note(&format!(
            "driving run {} at {} as {}; steer it with: runnerctl --socket {}",
            self.options.run,
            self.gate.shown(),
            self.driver,
            self.socket.display()
        ));
        let upstream =
            Arc::new(Upstream::new(self.gate.clone(), (&self.options.run, self.driver.clone()), UNPUBLISHED_MAX));
        upstream.stands_at((!is_new).then_some(at));
        let ended = daemon::run_for(daemon, Arc::clone(&upstream), async |registry| {
            follow::follow((self, &upstream, &mut signals), registry, is_new).await
        })
        .await??;
        let sent = self.publish_last(&upstream, &mut signals).await?;
        block_in_place(|| self.finish(&ended, (&upstream, &sent)))
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
            note(&format!("{}; commits that are not published: {}", why.message, view.behind));
            return Ok(self.again(Some(later(self.options.max_wait.max(REMOTE_PAUSE)))));
        }
        if let Err(error) = claim::release(self) {
            note(&format!("not released: {error}"));
            return Ok(self.again(Some(later(REMOTE_PAUSE))));
        }
        Ok(match ended {
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
    let url = url_of(&path, &options.remote)?;
    let beside = path.join(&url);
    Ok(if Path::new(&url).is_relative() && beside.is_dir() { beside.display().to_string() } else { url })
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
