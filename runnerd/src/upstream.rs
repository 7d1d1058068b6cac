//! The remote that a driven run is published to: one push after each commit, fast-forwards alone.
//!
//! That a push must be a fast-forward is what keeps two drivers from writing one branch. Who goes on where it is not one is
//! not decided here, but by whoever drives. Isolated runs have another way, `publish`, which needs no remote.

mod remote_client;
mod deadline;
mod user_git;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use protocol::path::WirePath;
use protocol::view::{PublishedView, StopReason};
use runner_core::driver::Driver;

pub(crate) use self::remote_client::PUSH_TIMEOUT;
pub use self::remote_client::{RemoteClient, PushRequest, PushResult, RemoteRefs, remote_url, without_password};
pub use self::deadline::Deadline;
use self::user_git::UserGit;
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
    Unreachable {
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
    MissingRemote {
        /// The repository.
        path: PathBuf,
        /// The name.
        remote: String,
    },
}

/// Why a run that is published to a remote cannot go on here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupersededReason {
    /// The branch at the remote has what is not of this driver.
    RemoteAhead,
    /// The remote does not take what is committed.
    RemoteUnavailable(String),
    /// It is begun, and another driver is to go on with it.
    StartedOnly,
}

/// What came of publishing.
#[derive(Debug, Clone, Default)]
pub struct UpstreamOutcome {
    /// What clients see; none before the run has a commit.
    pub view: Option<PublishedView>,
    /// Whether the run may not go on here: why, is in the view.
    pub is_held: bool,
}

/// Where the run of a job is published.
#[derive(Debug)]
pub struct Upstream {
    client: RemoteClient,
    run: String,
    driver: Driver,
    config: PublishConfig,
    starts_only: bool,
    state: Mutex<UpstreamState>,
    env: OnceLock<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Clone)]
struct UpstreamState {
    /// What the branch names at the remote, as far as it is known.
    published: Option<Id>,
    /// What was sent beside it, or is not taken.
    sent_extras: BTreeSet<(String, String)>,
    superseded: Option<SupersededReason>,
}

impl Upstream {
    /// Names the remote of a run, and what its branch names there.
    pub fn new(client: RemoteClient, (run, driver): (&str, Driver), config: PublishConfig) -> Self {
        let state = Mutex::default();
        Self { client, run: run.to_owned(), driver, config, starts_only: false, state, env: OnceLock::new() }
    }

    /// Has the run be begun here, and no more.
    #[must_use]
    pub fn with_starts_only(self, starts_only: bool) -> Self {
        Self { starts_only, ..self }
    }

    /// Tells whether the run is only begun here.
    pub fn starts_only(&self) -> bool {
        self.starts_only
    }

    /// Leaves a run that is begun to another driver, where this one is to begin it alone; returns why it does not go on here.
    pub fn hand_over(&self) -> Option<StopReason> {
        self.starts_only.then(|| {
            self.lock_state().superseded = Some(SupersededReason::StartedOnly);
            StopReason::new("the run is begun, and no more was asked for", "drive it where it is to run")
        })
    }

    /// Returns who drives the run.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Returns the way to the remote.
    pub fn client(&self) -> &RemoteClient {
        &self.client
    }

    /// Remembers what the branch names at the remote.
    pub fn set_published(&self, tip: Option<Id>) {
        self.lock_state().published = tip;
    }

    /// Returns what the branch names at the remote, as far as it is known.
    pub fn published(&self) -> Option<Id> {
        self.lock_state().published
    }

    /// Returns why the run cannot go on here.
    pub fn superseded_reason(&self) -> Option<SupersededReason> {
        self.lock_state().superseded.clone()
    }

    /// Gives the run its environment, which is kept in memory alone: what an engine injects is not written down.
    pub fn set_env(&self, env: BTreeMap<String, String>) {
        let _ = self.env.set(env);
    }

    /// Returns the environment that it was given.
    pub fn env(&self) -> Option<&BTreeMap<String, String>> {
        self.env.get()
    }

    /// Sends what is committed.
    pub fn publish(&self, repository: &Repository, limit: Duration) -> Result<UpstreamOutcome, GitError> {
        let branch = format!("runner/{}", self.run);
        let Some(tip) = repository.find_branch_tip(&branch)? else { return Ok(UpstreamOutcome::default()) };
        let mut state = self.lock_state().clone();
        let extras = self.find_unsent_extras(repository, &state)?;
        let is_overtaken = state.superseded == Some(SupersededReason::RemoteAhead);
        if state.published == Some(tip) && extras.is_empty() && !is_overtaken {
            return Ok(self.to_outcome(&state, 0, None));
        }
        let known = state.published;
        let push = PushRequest { branch: &branch, tip: &tip, last_pushed: known.as_ref(), extras: &extras, limit };
        // A push that came too late must not be tried again: what it was refused for may be gone by then.
        let why = if is_overtaken { Some(self.overtaken_reason()) } else { self.push_branch(repository, &push, &mut state)? };
        let behind = if why.is_none() { 0 } else { count_behind(repository, &tip, state.published)? };
        if let Some(why) = why.as_ref().filter(|_| state.superseded.is_none() && behind > self.config.unpublished_max) {
            state.superseded = Some(SupersededReason::RemoteUnavailable(why.message.clone()));
        }
        let sent = self.to_outcome(&state, behind, why);
        *self.lock_state() = state;
        Ok(sent)
    }

    /// Pushes; returns why the branch is behind, where it is.
    fn push_branch(
        &self,
        repository: &Repository,
        push: &PushRequest<'_>,
        state: &mut UpstreamState,
    ) -> Result<Option<StopReason>, GitError> {
        match self.client.push(push) {
            Ok(PushResult::Done(refused)) => {
                if let Some(why) = refused {
                    tracing::warn!(run = self.run, why, "the remote does not take what belongs to the branch");
                }
                state.published = Some(*push.tip);
                state.sent_extras.extend(push.extras.iter().cloned());
                state.superseded = None;
                Ok(None)
            }
            // An earlier push may have come through though nobody said so.
            Ok(PushResult::Diverged(Some(tip))) if is_on_first_parents(repository, push.tip, &tip)? => {
                state.published = Some(tip);
                Ok(Some(self.unavailable_reason("a push was refused")))
            }
            Ok(PushResult::Diverged(_)) => {
                state.superseded = Some(SupersededReason::RemoteAhead);
                Ok(Some(self.overtaken_reason()))
            }
            Ok(PushResult::Rejected(why)) => Ok(Some(self.unavailable_reason(&why))),
            Err(error) => Ok(Some(self.unavailable_reason(&error.to_string()))),
        }
    }

    fn to_outcome(&self, state: &UpstreamState, behind: u32, why: Option<StopReason>) -> UpstreamOutcome {
        let is_held = why.is_some() && state.superseded.is_some();
        let tip = state.published.map(|tip| tip.to_string());
        UpstreamOutcome {
            view: Some(PublishedView { to: WirePath(self.client.display_url().into()), tip, behind: Some(behind), why }),
            is_held,
        }
    }

    /// Returns what is kept of the run beside its branch and was not sent yet.
    fn find_unsent_extras(&self, repository: &Repository, state: &UpstreamState) -> Result<Vec<(String, String)>, GitError> {
        let extras = self.config.extras;
        let kinds: &[&str] = match extras {
            Extras::Refs => &["raw", "rescue", "review"],
            // A tree that was not taken is a file, and no commit that a branch could name.
            Extras::Branches => &["rescue", "review"],
            Extras::Off => return Ok(Vec::new()),
        };
        let folders: Vec<String> = kinds.iter().map(|kind| format!("refs/runner/{kind}/{}/", self.run)).collect();
        let refs = repository.list_refs()?.into_iter().filter(|(name, _)| folders.iter().any(|it| name.starts_with(it)));
        let remote_name = |name: String| match extras {
            Extras::Branches => to_branch_name(&name).unwrap_or(name),
            Extras::Refs | Extras::Off => name,
        };
        Ok(refs.map(|(name, id)| (id, remote_name(name))).filter(|extra| !state.sent_extras.contains(extra)).collect())
    }

    fn overtaken_reason(&self) -> StopReason {
        let message = format!("the branch of run {} at {} has commits that are not here", self.run, self.client.display_url());
        StopReason::new(message, "the driver of the run ends, and keeps there what it has")
    }

    fn unavailable_reason(&self, why: &str) -> StopReason {
        let message = format!("{} does not take what is committed: {why}", self.client.display_url());
        StopReason::new(message, "it is tried again after each commit")
    }

    fn lock_state(&self) -> MutexGuard<'_, UpstreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the branch that stands for a reference below `refs/runner/`, where a remote takes branches alone.
pub fn to_branch_name(name: &str) -> Option<String> {
    name.strip_prefix("refs/runner/").map(|rest| format!("refs/heads/runner-{rest}"))
}

/// Runs the user's own git in a work tree that is about to be driven.
pub fn run_user_git(folder: &Path, args: &[&str]) -> Result<(), UpstreamError> {
    let git = UserGit::new(folder, remote_client::FETCH_TIMEOUT).env("GIT_CEILING_DIRECTORIES", folder);
    let ran = git.args(args).run();
    let output = ran.map_err(|source| UpstreamError::Io { doing: "running git in", path: folder.to_owned(), source })?;
    if output.is_success {
        return Ok(());
    }
    let command = args.first().copied().unwrap_or_default().to_owned();
    Err(UpstreamError::Git { command, path: folder.to_owned(), why: output.failure_reason() })
}

/// Tells whether a commit is on the first parents of another.
fn is_on_first_parents(repository: &Repository, tip: &Id, searched: &Id) -> Result<bool, GitError> {
    let mut is_found = false;
    repository.visit_first_parents(tip, MAX_BEHIND, |commit| {
        is_found = commit.id == *searched;
        is_found
    })?;
    Ok(is_found)
}

/// Counts the commits of a branch that the remote does not have.
fn count_behind(repository: &Repository, tip: &Id, published: Option<Id>) -> Result<u32, GitError> {
    let mut count = 0;
    repository.visit_first_parents(tip, MAX_BEHIND, |commit| {
        let is_there = Some(commit.id) == published;
        count += u32::from(!is_there);
        is_there
    })?;
    Ok(count)
}
