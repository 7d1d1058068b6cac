//! Where a run takes place: the work tree, the daemon's folder for it, and what effects work with.
//!
//! A plain value: what it refers to may be gone by the time it is used.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use runner_config::Patterns;
use runner_core::driver::Driver;
use runner_core::fsck::is_like_runner_path;
use runner_core::message::RunnerCommit;
use runner_core::run::RunScratch;
use runner_core::run::blocker::Transience;
use runner_core::text::redact::Secrets;
use runner_git::{GitError, Id, Identity, Repository, WorktreeChange};
use runner_os::retryable::{Retryable, path_remedy};
use runner_process::{Launcher, SpawnError};

use crate::events::EventStream;
use crate::publish::PublishError;
use crate::repo::durable::DurableError;
use crate::repo::layout::Layout;
use crate::repo::sealed::{Sealable, SealedFile, SealedFileError};
use crate::store::RepoStore;
use crate::worker::caches::LastLoad;
use crate::worker::caches::LastScan;
use crate::worker::cleanup::clear_leftovers;
use crate::worker::goal_files::GoalFiles;
use crate::worker::load::LoadError;
use crate::worker::pinned_repo::PinnedRepo;

/// Maximum number of commits searched for one that was made before a crash.
const MAX_SCANNED_COMMITS: usize = 10_000;

/// Where a run takes place.
#[derive(Debug, Clone)]
pub(crate) struct RunContext {
    /// Id of the run.
    pub run: String,
    /// Layout of the work tree.
    pub layout: Layout,
    /// The daemon's folder for the repository.
    pub store: RepoStore,
    /// Starts processes.
    pub launcher: Launcher,
    /// The daemon's stream of events.
    pub(crate) events: EventStream,
    /// The caller's environment variables.
    pub env: BTreeMap<String, String>,
    /// Secrets found in that environment, which must not get into a record or a commit.
    pub secrets: Secrets,
    /// Cached result of the last comparison with HEAD.
    pub(crate) last_scan: LastScan,
    /// The open repository, and the committed state that was read last.
    pub(crate) last_load: LastLoad,
    /// The files that goals were read from.
    pub(crate) goal_files: GoalFiles,
    /// What was known of the run's sessions when the iteration began and is in no commit.
    pub uncommitted: RunScratch,
    /// Who drives the run, if it is the run of a job.
    pub(crate) driver: Option<Driver>,
}

/// Why an effect cannot be performed now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EffectError {
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A durable write or read failed.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// A note of the daemon cannot be read or written: its content is unknown, so nothing continues without it.
    #[error(transparent)]
    SealedFile(#[from] SealedFileError),
    /// Another system call failed.
    #[error("{doing} {path}")]
    System {
        /// The operation, as a verb with its preposition.
        doing: &'static str,
        /// The path it was applied to.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The committed state that an effect starts from can no longer be read.
    #[error(transparent)]
    State(#[from] LoadError),
    /// A journaled commit is not an object id.
    #[error("`{0}` is not a commit id")]
    InvalidCommit(String),
    /// The run state gives a file of the guard's definition a form that is not an object id.
    #[error("`{0}` in guard_definition of run_state.json is no blob")]
    InvalidBlob(String),
    /// The runner cannot restore what a session or a guard changed outside of the scope of the run.
    #[error("{0}, which is outside of the scope of this run, cannot be restored")]
    OutsideScope(String),
    /// Committed work cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// Processes of an earlier daemon process do not exit.
    #[error(transparent)]
    StillAlive(#[from] runner_process::orphans::StillAlive),
    /// A process could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

impl Retryable for EffectError {
    fn transience(&self) -> Transience {
        match self {
            Self::Git(error) => error.transience(),
            Self::Disk(error) => error.transience(),
            Self::SealedFile(error) => error.transience(),
            Self::System { source, .. } => source.transience(),
            Self::State(error) => error.transience(),
            Self::Publish(error) => error.transience(),
            Self::StillAlive(error) => error.transience(),
            Self::Spawn(error) => error.transience(),
            Self::InvalidCommit(_) | Self::InvalidBlob(_) | Self::OutsideScope(_) => Transience::Lasting,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Git(error) => error.remedy(),
            Self::Disk(error) => error.remedy(),
            Self::SealedFile(error) => error.remedy(),
            Self::System { path, source, .. } => Some(path_remedy(path, source)),
            Self::State(error) => error.remedy(),
            Self::Publish(error) => error.remedy(),
            Self::StillAlive(error) => error.remedy(),
            Self::Spawn(error) => error.remedy(),
            Self::InvalidCommit(_) | Self::InvalidBlob(_) => None,
            Self::OutsideScope(path) => Some(format!("restore {path} as it was, then: runnerctl resume")),
        }
    }
}

impl EffectError {
    /// Attaches the operation and the path to an error of the system.
    pub(crate) fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::System { doing, path: path.to_owned(), source }
    }
}

impl RunContext {
    /// Lists what differs from HEAD.
    pub(crate) fn scan_changes(&self) -> Result<Vec<WorktreeChange>, GitError> {
        let changes = self.repository()?.list_changes()?;
        self.last_scan.set(&changes);
        Ok(changes)
    }

    /// Returns the cached list of what differs from HEAD, scanning again if something may have changed it.
    pub(crate) fn cached_changes(&self) -> Result<Vec<WorktreeChange>, GitError> {
        self.last_scan.get().map_or_else(|| self.scan_changes(), Ok)
    }

    /// Collects the secrets in the caller's environment.
    pub(crate) fn find_secrets(env: &BTreeMap<String, String>) -> Secrets {
        let variables = env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Secrets::from_variables(variables)
            .expect("BUG: an environment fits into a request, and so its secrets into an automaton")
    }

    /// Returns the repository, bound to the configuration that was captured when a person requested the run.
    pub(crate) fn repository(&self) -> Result<Repository, GitError> {
        let open = self.last_load.repository(self.layout.root());
        let repository = open.map_or_else(|| PinnedRepo::for_work_tree(&self.store, self.layout.root()).open(), Ok)?;
        repository.check_work_tree_not_moved()?;
        repository.set_opens_files();
        self.last_load.store_repository(&repository);
        Ok(repository)
    }

    /// Returns what differs from HEAD, ignoring an index that a killed process left behind HEAD, and what some file
    /// system takes for the runner's folder: the next commit takes that out.
    pub(crate) fn changes_after_cleanup(repository: &Repository) -> Result<Vec<WorktreeChange>, GitError> {
        let mut changes = repository.list_changes()?;
        if changes.is_empty() {
            return Ok(changes);
        }
        let is_cleared = clear_leftovers(repository)?;
        if repository.sync_index_with_head()? || is_cleared {
            changes = repository.list_changes()?;
        }
        changes.retain(|change| !is_like_runner_path(&change.path));
        Ok(changes)
    }

    /// Returns the oldest commit on top of `from` that satisfies `is_own`: a repeated effect recognizes its own commit
    /// by it. Commits that others have made on top hide nothing.
    pub(crate) fn find_own_commit(
        repository: &Repository,
        from: &str,
        is_own: impl Fn(&RunnerCommit) -> bool,
    ) -> Result<Option<Id>, GitError> {
        let Some(head) = repository.head()?.commit().filter(|head| head.to_string() != from) else { return Ok(None) };
        let commits = repository.first_parents(&head, MAX_SCANNED_COMMITS)?;
        let since = commits.iter().take_while(|commit| commit.id.to_string() != from);
        let own = since.filter(|commit| RunnerCommit::parse(&commit.message).is_ok_and(|commit| is_own(&commit)));
        Ok(own.last().map(|commit| commit.id))
    }

    /// Returns the handle of a note that effects of iteration `iter` write.
    pub(crate) fn iteration_note<T: Sealable>(&self, iter: u32, name: impl fmt::Display) -> SealedFile<T> {
        self.store.live_file(&format!("{}-{iter:04}-{name}.json", self.run))
    }

    /// Returns the handle of a note that survives the removal of an iteration's notes.
    pub(crate) fn run_note<T: Sealable>(&self, name: &str) -> SealedFile<T> {
        self.store.live_file(&format!("{}-{name}.json", self.run))
    }

    /// Removes the notes that an attempt at iteration `iter` has written for repeating its effects.
    pub(crate) fn remove_iteration_notes(&self, iter: u32) -> Result<(), EffectError> {
        let folder = self.store.live_dir();
        let start = format!("{}-{iter:04}-", self.run);
        for file in std::fs::read_dir(&folder).map_err(EffectError::io_error("listing", &folder))? {
            // A note that was skipped would be mistaken for one of the next attempt.
            let file = file.map_err(EffectError::io_error("listing", &folder))?;
            if file.file_name().to_string_lossy().starts_with(&start) {
                std::fs::remove_file(file.path()).map_err(EffectError::io_error("removing", &file.path()))?;
            }
        }
        Ok(())
    }

    /// Returns the name of the run's branch.
    pub(crate) fn branch(&self) -> String {
        format!("runner/{}", self.run)
    }

    /// Returns the committer: the user as configured, else the runner.
    pub(crate) fn identity(repository: &Repository) -> Identity {
        repository.identity().unwrap_or_else(Identity::runner)
    }

    /// Returns the environment of a guard: what every program needs, plus the variables that `names` matches.
    ///
    /// Everything else of the caller's and the daemon's environment is left out.
    pub(crate) fn guard_env(&self, names: &Patterns) -> Vec<(OsString, OsString)> {
        let passed = self.env.iter().filter(|(name, _)| names.passes_variable(name));
        passed.map(|(name, value)| (name.into(), value.into())).collect()
    }
}
