//! The remote that a driven run is published to: one push after each commit, fast-forwards alone.
//!
//! That a push must be a fast-forward is what keeps two drivers from writing one branch. Who goes on where it is not one is
//! not decided here, but by whoever drives. Isolated runs have another way, `publish`, which needs no remote.

mod gate;
mod hurry;
mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use protocol::path::WirePath;
use protocol::view::{PublishedView, StopReason};
use runner_core::driver::Driver;

pub(crate) use self::gate::PUSH;
pub use self::gate::{Gate, Push, Pushed, Remote, url_of, without_password};
pub use self::hurry::Hurry;
use self::program::Git;
use crate::config::{Extras, PublishConfig};
use crate::git::{GitError, Id, Repository};

/// Commits that are counted of those that a branch is behind by.
const MAX_BEHIND: usize = 10_000;

/// What is wrong on the way to a remote.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// Git cannot be run.
    #[error("{doing} {path}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The remote does not answer, or refuses.
    #[error("{remote} does not answer, or refuses: {why}")]
    Away {
        /// Its address.
        remote: String,
        /// What git says.
        why: String,
    },
    /// A command of git's failed.
    #[error("git {command} in {path}: {why}")]
    Git {
        /// Its name.
        command: String,
        /// Where.
        path: PathBuf,
        /// What git says.
        why: String,
    },
    /// A repository has no such remote.
    #[error("{path} has no remote `{remote}`")]
    NoRemote {
        /// The repository.
        path: PathBuf,
        /// The name.
        remote: String,
    },
}

/// Why a run that is published to a remote cannot go on here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parted {
    /// The branch at the remote has what is not of this driver.
    Overtaken,
    /// The remote does not take what is committed.
    Away(String),
    /// It is begun, and another driver is to go on with it.
    Begun,
}

/// What came of publishing.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    /// What clients see; none before the run has a commit.
    pub view: Option<PublishedView>,
    /// Whether the run may not go on here: why, is in the view.
    pub is_held: bool,
}

/// Where the run of a job is published.
#[derive(Debug)]
pub struct Upstream {
    gate: Gate,
    run: String,
    driver: Driver,
    config: PublishConfig,
    starts_only: bool,
    standing: Mutex<Standing>,
    env: OnceLock<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Clone)]
struct Standing {
    /// What the branch names at the remote, as far as it is known.
    published: Option<Id>,
    /// What was sent beside it, or is not taken.
    sent: BTreeSet<(String, String)>,
    parted: Option<Parted>,
}

impl Upstream {
    /// Names the remote of a run, and what its branch names there.
    pub fn new(gate: Gate, (run, driver): (&str, Driver), config: PublishConfig) -> Self {
        let standing = Mutex::default();
        Self { gate, run: run.to_owned(), driver, config, starts_only: false, standing, env: OnceLock::new() }
    }

    /// Has the run be begun here, and no more.
    #[must_use]
    pub fn starting_only(self, starts_only: bool) -> Self {
        Self { starts_only, ..self }
    }

    /// Tells whether the run is only begun here.
    pub fn starts_only(&self) -> bool {
        self.starts_only
    }

    /// Leaves a run that is begun to another driver, where this one is to begin it alone; returns why it does not go on here.
    pub fn leave(&self) -> Option<StopReason> {
        self.starts_only.then(|| {
            self.standing().parted = Some(Parted::Begun);
            StopReason::new("the run is begun, and no more was asked for", "drive it where it is to run")
        })
    }

    /// Returns who drives the run.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Returns the way to the remote.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Remembers what the branch names at the remote.
    pub fn stands_at(&self, tip: Option<Id>) {
        self.standing().published = tip;
    }

    /// Returns what the branch names at the remote, as far as it is known.
    pub fn published(&self) -> Option<Id> {
        self.standing().published
    }

    /// Returns why the run cannot go on here.
    pub fn parted(&self) -> Option<Parted> {
        self.standing().parted.clone()
    }

    /// Gives the run its environment, which is kept in memory alone: what an engine injects is not written down.
    pub fn lend(&self, env: BTreeMap<String, String>) {
        let _ = self.env.set(env);
    }

    /// Returns the environment that it was given.
    pub fn env(&self) -> Option<&BTreeMap<String, String>> {
        self.env.get()
    }

    /// Sends what is committed.
    pub fn publish(&self, repository: &Repository, limit: Duration) -> Result<Sent, GitError> {
        let branch = format!("runner/{}", self.run);
        let Some(tip) = repository.branch(&branch)? else { return Ok(Sent::default()) };
        let mut standing = self.standing().clone();
        let extras = self.extras(repository, &standing)?;
        let is_overtaken = standing.parted == Some(Parted::Overtaken);
        if standing.published == Some(tip) && extras.is_empty() && !is_overtaken {
            return Ok(self.sent(&standing, 0, None));
        }
        let known = standing.published;
        let push = Push { branch: &branch, tip: &tip, known: known.as_ref(), extras: &extras, limit };
        // A push that came too late must not be tried again: what it was refused for may be gone by then.
        let why = if is_overtaken { Some(self.overtaken()) } else { self.push(repository, &push, &mut standing)? };
        let behind = if why.is_none() { 0 } else { behind(repository, &tip, standing.published)? };
        if let Some(why) = why.as_ref().filter(|_| standing.parted.is_none() && behind > self.config.unpublished_max) {
            standing.parted = Some(Parted::Away(why.message.clone()));
        }
        let sent = self.sent(&standing, behind, why);
        *self.standing() = standing;
        Ok(sent)
    }

    /// Pushes; returns why the branch is behind, where it is.
    fn push(
        &self,
        repository: &Repository,
        push: &Push<'_>,
        standing: &mut Standing,
    ) -> Result<Option<StopReason>, GitError> {
        match self.gate.push(push) {
            Ok(Pushed::Done(refused)) => {
                if let Some(why) = refused {
                    tracing::warn!(run = self.run, why, "the remote does not take what belongs to the branch");
                }
                standing.published = Some(*push.tip);
                standing.sent.extend(push.extras.iter().cloned());
                standing.parted = None;
                Ok(None)
            }
            // An earlier push may have come through though nobody said so.
            Ok(Pushed::Elsewhere(Some(tip))) if is_within(repository, push.tip, &tip)? => {
                standing.published = Some(tip);
                Ok(Some(self.away("a push was refused")))
            }
            Ok(Pushed::Elsewhere(_)) => {
                standing.parted = Some(Parted::Overtaken);
                Ok(Some(self.overtaken()))
            }
            Ok(Pushed::Refused(why)) => Ok(Some(self.away(&why))),
            Err(error) => Ok(Some(self.away(&error.to_string()))),
        }
    }

    fn sent(&self, standing: &Standing, behind: u32, why: Option<StopReason>) -> Sent {
        let is_held = why.is_some() && standing.parted.is_some();
        let tip = standing.published.map(|tip| tip.to_string());
        Sent {
            view: Some(PublishedView { to: WirePath(self.gate.shown().into()), tip, behind: Some(behind), why }),
            is_held,
        }
    }

    /// Returns what is kept of the run beside its branch and was not sent yet.
    fn extras(&self, repository: &Repository, standing: &Standing) -> Result<Vec<(String, String)>, GitError> {
        let extras = self.config.extras;
        let kinds: &[&str] = match extras {
            Extras::Refs => &["raw", "rescue", "review"],
            // A tree that was not taken is a file, and no commit that a branch could name.
            Extras::Branches => &["rescue", "review"],
            Extras::Off => return Ok(Vec::new()),
        };
        let folders: Vec<String> = kinds.iter().map(|kind| format!("refs/runner/{kind}/{}/", self.run)).collect();
        let kept = repository.refs()?.into_iter().filter(|(name, _)| folders.iter().any(|it| name.starts_with(it)));
        let there = |name: String| match extras {
            Extras::Branches => as_branch(&name).unwrap_or(name),
            Extras::Refs | Extras::Off => name,
        };
        Ok(kept.map(|(name, id)| (id, there(name))).filter(|extra| !standing.sent.contains(extra)).collect())
    }

    fn overtaken(&self) -> StopReason {
        let message = format!("the branch of run {} at {} has commits that are not here", self.run, self.gate.shown());
        StopReason::new(message, "the driver of the run ends, and keeps there what it has")
    }

    fn away(&self, why: &str) -> StopReason {
        let message = format!("{} does not take what is committed: {why}", self.gate.shown());
        StopReason::new(message, "it is tried again after each commit")
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the branch that stands for a reference below `refs/runner/`, where a remote takes branches alone.
pub fn as_branch(name: &str) -> Option<String> {
    name.strip_prefix("refs/runner/").map(|rest| format!("refs/heads/runner-{rest}"))
}

/// Runs the user's own git in a work tree that is about to be driven.
pub fn own(folder: &Path, args: &[&str]) -> Result<(), UpstreamError> {
    let git = Git::new(folder, gate::FETCH).env("GIT_CEILING_DIRECTORIES", folder);
    let ran = git.args(args).run();
    let said = ran.map_err(|source| UpstreamError::Io { doing: "running git in", path: folder.to_owned(), source })?;
    if said.is_done {
        return Ok(());
    }
    let command = args.first().copied().unwrap_or_default().to_owned();
    Err(UpstreamError::Git { command, path: folder.to_owned(), why: said.why() })
}

/// Tells whether a commit is on the first parents of another.
fn is_within(repository: &Repository, tip: &Id, wanted: &Id) -> Result<bool, GitError> {
    let mut is_found = false;
    repository.first_parents_until(tip, MAX_BEHIND, |commit| {
        is_found = commit.id == *wanted;
        is_found
    })?;
    Ok(is_found)
}

/// Counts the commits of a branch that the remote does not have.
fn behind(repository: &Repository, tip: &Id, published: Option<Id>) -> Result<u32, GitError> {
    let mut count = 0;
    repository.first_parents_until(tip, MAX_BEHIND, |commit| {
        let is_there = Some(commit.id) == published;
        count += u32::from(!is_there);
        is_there
    })?;
    Ok(count)
}
