//! The remote that a driven run is published to: one push after each commit, only fast-forwards.
//!
//! Requiring fast-forwards prevents two drivers from writing to one branch. Which driver continues when a push is not
//! one is decided by the caller. Isolated runs use `publish` instead, which needs no remote.

mod deadline;
mod remote_client;
mod user_git;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use protocol::path::WirePath;
use protocol::view::{PublishedView, StopReason};
use runner_config::{PublishConfig, PublishExtras};
use runner_core::driver::Driver;
use runner_git::{GitError, Id, Repository};

pub use self::deadline::Deadline;
pub(crate) use self::remote_client::PUSH_TIMEOUT;
pub use self::remote_client::{PushRequest, PushResult, RemoteClient, RemoteRefs, remote_url, without_password};
use self::user_git::UserGit;

/// Limit for counting how many commits a branch is behind.
const MAX_BEHIND: usize = 10_000;

/// Why an operation on a remote failed.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// git cannot be run.
    #[error("{doing} {path}")]
    Io {
        /// The operation.
        doing: &'static str,
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The remote does not respond, or refuses.
    #[error("{remote} does not answer, or refuses: {why}")]
    Unreachable {
        /// Its address.
        remote: String,
        /// git's error message.
        why: String,
    },
    /// A git command failed.
    #[error("git {command} in {path}: {why}")]
    Git {
        /// The subcommand.
        command: String,
        /// The folder.
        path: PathBuf,
        /// git's error message.
        why: String,
    },
    /// A repository has no such remote.
    #[error("{path} has no remote `{remote}`")]
    MissingRemote {
        /// The repository.
        path: PathBuf,
        /// Name of the remote.
        remote: String,
    },
}

/// Why a run published to a remote cannot continue here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupersededReason {
    /// The remote's branch has commits that are not from this driver.
    RemoteAhead,
    /// The remote does not accept commits, with the reason.
    RemoteUnavailable(String),
    /// The run has been started, and another driver is to continue it.
    StartedOnly,
}

/// Result of publishing.
#[derive(Debug, Clone, Default)]
pub struct UpstreamOutcome {
    /// Status for clients; `None` before the run has a commit.
    pub view: Option<PublishedView>,
    /// Whether the run must not continue here; the reason is in the view.
    pub is_held: bool,
}

/// Publishes a job's run to its remote.
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
    /// Last known value of the branch at the remote.
    published: Option<Id>,
    /// What was sent in addition to the branch, or is not accepted.
    sent_extras: BTreeSet<(String, String)>,
    superseded: Option<SupersededReason>,
}

impl Upstream {
    /// Creates a publisher for a run, with the remote and the current value of its branch there.
    pub fn new(client: RemoteClient, run: &str, driver: Driver, config: PublishConfig) -> Self {
        let state = Mutex::default();
        Self { client, run: run.to_owned(), driver, config, starts_only: false, state, env: OnceLock::new() }
    }

    /// Makes this driver only start the run.
    #[must_use]
    pub fn with_starts_only(self, starts_only: bool) -> Self {
        Self { starts_only, ..self }
    }

    /// Whether this driver only starts the run.
    pub fn starts_only(&self) -> bool {
        self.starts_only
    }

    /// Hands a started run over to another driver, if this one only starts it; returns why it does not continue here.
    pub fn hand_over(&self) -> Option<StopReason> {
        self.starts_only.then(|| {
            self.lock_state().superseded = Some(SupersededReason::StartedOnly);
            StopReason::new("the run is begun, and no more was asked for", "drive it where it is to run")
        })
    }

    /// Returns the run's driver.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Returns the connection to the remote.
    pub fn client(&self) -> &RemoteClient {
        &self.client
    }

    /// Records the value of the branch at the remote.
    pub fn set_published(&self, tip: Option<Id>) {
        self.lock_state().published = tip;
    }

    /// Returns the last known value of the branch at the remote.
    pub fn published(&self) -> Option<Id> {
        self.lock_state().published
    }

    /// Returns why the run cannot continue here, if so.
    pub fn superseded_reason(&self) -> Option<SupersededReason> {
        self.lock_state().superseded.clone()
    }

    /// Sets the run's environment, which is held only in memory: what an engine injects is never written to disk.
    pub fn set_env(&self, env: BTreeMap<String, String>) {
        let _ = self.env.set(env);
    }

    /// Returns the run's environment, if set.
    pub fn env(&self) -> Option<&BTreeMap<String, String>> {
        self.env.get()
    }

    /// Pushes the commits.
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
        // A push that came too late must not be repeated: the reason it was refused for may no longer exist.
        let why =
            if is_overtaken { Some(self.overtaken_reason()) } else { self.push_branch(repository, &push, &mut state)? };
        let behind = if why.is_none() { 0 } else { count_behind(repository, &tip, state.published)? };
        if let Some(why) = why.as_ref().filter(|_| state.superseded.is_none() && behind > self.config.unpublished_max) {
            state.superseded = Some(SupersededReason::RemoteUnavailable(why.message.clone()));
        }
        let sent = self.to_outcome(&state, behind, why);
        *self.lock_state() = state;
        Ok(sent)
    }

    /// Pushes; returns why the branch is behind, if it is.
    fn push_branch(
        &self,
        repository: &Repository,
        push: &PushRequest<'_>,
        state: &mut UpstreamState,
    ) -> Result<Option<StopReason>, GitError> {
        match self.client.push(push) {
            Ok(PushResult::Done(refused)) => {
                if let Some(why) = refused {
                    tracing::warn!(run = self.run, why, "the remote rejected objects of the branch");
                }
                state.published = Some(*push.tip);
                state.sent_extras.extend(push.extras.iter().cloned());
                state.superseded = None;
                Ok(None)
            }
            // An earlier push may have succeeded without an answer.
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
            view: Some(PublishedView {
                to: WirePath(self.client.display_url().into()),
                tip,
                behind: Some(behind),
                why,
            }),
            is_held,
        }
    }

    /// Returns what the run keeps in addition to its branch and has not sent yet.
    fn find_unsent_extras(
        &self,
        repository: &Repository,
        state: &UpstreamState,
    ) -> Result<Vec<(String, String)>, GitError> {
        let extras = self.config.extras;
        let kinds: &[&str] = match extras {
            PublishExtras::Refs => &["raw", "rescue", "review"],
            // A rejected tree is a file, and not a commit that a branch could point to.
            PublishExtras::Branches => &["rescue", "review"],
            PublishExtras::Off => return Ok(Vec::new()),
        };
        let folders: Vec<String> = kinds.iter().map(|kind| format!("refs/runner/{kind}/{}/", self.run)).collect();
        let refs = repository
            .list_refs()?
            .into_iter()
            .filter(|(name, _)| folders.iter().any(|folder| name.starts_with(folder)));
        let remote_name = |name: String| match extras {
            PublishExtras::Branches => to_branch_name(&name).unwrap_or(name),
            PublishExtras::Refs | PublishExtras::Off => name,
        };
        Ok(refs.map(|(name, id)| (id, remote_name(name))).filter(|extra| !state.sent_extras.contains(extra)).collect())
    }

    fn overtaken_reason(&self) -> StopReason {
        let message =
            format!("the branch of run {} at {} has commits that are not here", self.run, self.client.display_url());
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

/// Returns the branch that represents a reference below `refs/runner/`, for remotes that accept only branches.
pub fn to_branch_name(name: &str) -> Option<String> {
    name.strip_prefix("refs/runner/").map(|rest| format!("refs/heads/runner-{rest}"))
}

/// Runs the user's own git in a work tree that is about to be driven.
pub fn run_user_git(folder: &Path, args: &[&str]) -> Result<(), UpstreamError> {
    let git = UserGit::new(folder, remote_client::FETCH_TIMEOUT).env("GIT_CEILING_DIRECTORIES", folder);
    let ran = git.args(args).run();
    let output =
        ran.map_err(|source| UpstreamError::Io { doing: "running git in", path: folder.to_owned(), source })?;
    if output.is_success {
        return Ok(());
    }
    let command = args.first().copied().unwrap_or_default().to_owned();
    Err(UpstreamError::Git { command, path: folder.to_owned(), why: output.failure_reason() })
}

/// Whether a commit is on the first-parent chain of another.
fn is_on_first_parents(repository: &Repository, tip: &Id, searched: &Id) -> Result<bool, GitError> {
    let mut is_found = false;
    repository.visit_first_parents(tip, MAX_BEHIND, |commit| {
        is_found = commit.id == *searched;
        is_found
    })?;
    Ok(is_found)
}

/// Counts the commits of a branch that the remote lacks.
fn count_behind(repository: &Repository, tip: &Id, published: Option<Id>) -> Result<u32, GitError> {
    let mut count = 0;
    repository.visit_first_parents(tip, MAX_BEHIND, |commit| {
        let is_published = Some(commit.id) == published;
        count += u32::from(!is_published);
        is_published
    })?;
    Ok(count)
}
