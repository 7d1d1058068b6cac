//! The committed state of a run at one commit: the source of all decisions and prompts.

use std::ops::Deref;
use std::sync::OnceLock;

use protocol::command::NextSteps;
use protocol::error::{ErrorData, ErrorKind};
use protocol::view::StopReason;
use runner_config::{ConfigError, RepoConfig};
use runner_core::committed_state::{self, FileFault, StateFault, StateFiles};
use runner_core::message::{MessageError, RulesError, RunnerCommit, claims_receipt};
use runner_core::prompt;
use runner_core::run::RunInputs;
use runner_core::run::RunScratch;
use runner_core::run::blocker::Transience;
use runner_core::tree;
use runner_git::{GitError, Id, Repository};
use runner_os::clock;
use runner_os::error_chain::display_chain;
use runner_os::retryable::Retryable;

use crate::repo::durable;
use crate::repo::layout::Layout;
use crate::worker::context::EffectError;
use crate::worker::integrity::definition::CommitDefinition;

/// Maximum number of commits searched for the runner's last one.
pub(crate) const MAX_PERSON_COMMITS: usize = 10_000;

/// A commit, its committed state, and what has been computed from them.
#[derive(Debug, Clone)]
pub struct CommittedState {
    /// Id of the commit.
    pub commit: Id,
    /// The state.
    pub state: committed_state::CommittedState,
    /// What is wrong with the repository's own templates.
    pub template_faults: Vec<String>,
    /// The guard's definition, once it has been read.
    pub(crate) definition: OnceLock<CommitDefinition>,
    /// The task tree in canonical form, once it has been computed.
    canonical_text: OnceLock<String>,
}

impl Deref for CommittedState {
    type Target = committed_state::CommittedState;

    fn deref(&self) -> &Self::Target {
        &self.state
    }
}

/// Why the committed state cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The repository cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The runner's last commit was made under other rules.
    #[error("commit {commit} of the runner cannot be read")]
    Rules {
        /// Id of the commit.
        commit: Id,
        /// Why it cannot be read.
        source: RulesError,
    },
    /// A commit says that it is the runner's, and is not as the runner writes its own.
    #[error("commit {commit} was tampered with: it claims to be the runner's, and is not as the runner has written it")]
    Tampered {
        /// Id of the commit.
        commit: Id,
        /// How it differs.
        source: MessageError,
    },
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file is missing or not valid.
    #[error("{}", describe_fault(fault, commit))]
    File {
        /// Id of the commit.
        commit: Id,
        /// What is wrong with which file.
        fault: StateFault,
    },
}

fn describe_fault(StateFault { path, fault }: &StateFault, commit: &Id) -> String {
    match fault {
        FileFault::Missing => format!("{path} is not in commit {commit}"),
        FileFault::NamedForm(text) => text.clone(),
        FileFault::NoFile | FileFault::Tree(_) | FileFault::Form(_) => format!("{path} is not valid: {fault}"),
    }
}

impl Retryable for LoadError {
    fn transience(&self) -> Transience {
        match self {
            Self::Git(error) => error.transience(),
            // A fault in a commit remains until the next commit.
            Self::Rules { .. } | Self::Tampered { .. } | Self::Config(_) | Self::File { .. } => Transience::Lasting,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Git(error) => error.remedy(),
            Self::Rules { source, .. } => Some(source.hint().to_owned()),
            Self::Tampered { commit, .. } => Some(format!(
                "look at it: git show {}; go back to the runner's own (git reflog), then: runnerctl resume; or begin a new \
                 run: runnerctl start --id NEW",
                commit.short(12)
            )),
            Self::Config(_) | Self::File { .. } => None,
        }
    }
}

impl LoadError {
    /// Returns the reason to stop a run that cannot continue from this commit.
    pub(crate) fn to_stop_reason(&self) -> StopReason {
        let message = match self {
            Self::Rules { .. } | Self::Tampered { .. } => display_chain(self),
            _ => format!("the committed state is not valid: {}", display_chain(self)),
        };
        let ways = self.remedy().unwrap_or_else(|| "fix the file, commit it, then: runnerctl resume".to_owned());
        StopReason::new(message, ways)
    }

    /// Converts to the error of a request; `ways` says what to do about an invalid file.
    pub fn to_error_data(&self, ways: impl Into<NextSteps>) -> ErrorData {
        let error_data = |kind| ErrorData::new(kind, display_chain(self));
        match self {
            Self::Rules { .. } | Self::Tampered { .. } => {
                error_data(ErrorKind::WrongState).hint(self.remedy().unwrap_or_default())
            }
            Self::Git(_) => error_data(ErrorKind::Fault).hint(ways),
            _ => error_data(ErrorKind::InvalidFile).hint(ways),
        }
    }
}

/// Returns the runner's last commit, searching back from this one; a commit that only records who drives the run
/// settles nothing and does not count. Fails at a commit that only claims to be the runner's.
pub fn last_runner_commit(repository: &Repository, from: Id) -> Result<Option<Id>, LoadError> {
    let mut last = None;
    repository.visit_first_parents(&from, MAX_PERSON_COMMITS, |commit| {
        last = match RunnerCommit::parse(&commit.message) {
            Ok(read) => (!read.is_transparent()).then_some(Ok(commit.id)),
            Err(MessageError::Rules(source)) => Some(Err(LoadError::Rules { commit: commit.id, source })),
            Err(source) if claims_receipt(commit.message.as_bytes()) => {
                Some(Err(LoadError::Tampered { commit: commit.id, source }))
            }
            Err(_) => None,
        };
        last.is_some()
    })?;
    last.transpose()
}

/// Reads the committed state at `commit`; fails if the last commit of the run was made under other rules.
pub fn load_state(repository: &Repository, commit: Id) -> Result<CommittedState, LoadError> {
    let files = repository.read_files(&commit, committed_state::state_paths())?;
    let read = |path: &str| files.get(path).map(Vec::as_slice);
    let parsed = StateFiles::read(repository.work_dir(), read);
    if parsed.run_state().is_some_and(|state| state.run_id.is_some()) {
        last_runner_commit(repository, commit)?;
    }
    Ok(CommittedState {
        commit,
        state: parsed.committed_state().map_err(|fault| LoadError::File { commit, fault })?,
        template_faults: prompt::find_template_faults(|path| Ok::<_, GitError>(files.get(path).cloned())),
        definition: OnceLock::new(),
        canonical_text: OnceLock::new(),
    })
}

/// Reads a file of the work tree; HEAD's if it is not there, because the checkout is sparse or the file was removed.
/// `None` if both lack it.
pub(crate) fn read_file_or_committed(repository: &Repository, path: &str) -> Result<Option<Vec<u8>>, EffectError> {
    let file = repository.work_dir().join(path);
    let found = durable::read(&file)?;
    if found.is_some() {
        return Ok(found);
    }
    if file.symlink_metadata().is_ok() {
        let source = std::io::ErrorKind::NotFound.into();
        return Err(EffectError::System { doing: "following the link", path: file, source });
    }
    match repository.head()?.commit() {
        Some(head) => Ok(repository.read_file(&head, path)?),
        None => Ok(None),
    }
}

/// Reads the configuration at `commit`; defaults if there is none.
pub fn load_config(repository: &Repository, commit: Id) -> Result<RepoConfig, LoadError> {
    parse_config(repository, &repository.read_file(&commit, Layout::CONFIG)?.unwrap_or_default())
}

fn parse_config(repository: &Repository, bytes: &[u8]) -> Result<RepoConfig, LoadError> {
    let path = repository.work_dir().join(Layout::CONFIG);
    Ok(runner_config::parse(runner_config::decode_text(bytes, &path)?, &path)?)
}

impl CommittedState {
    /// Returns the task tree in canonical form, computed once.
    pub fn canonical_tree(&self) -> &str {
        self.canonical_text.get_or_init(|| tree::canonical(&self.tree))
    }

    /// Returns the inputs for deciding a run's next step.
    pub fn run_inputs<'a>(&'a self, uncommitted: &'a RunScratch) -> RunInputs<'a> {
        self.state.run_inputs(uncommitted, clock::now())
    }
}
