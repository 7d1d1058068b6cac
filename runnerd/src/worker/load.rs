//! The committed state of a run at one commit: the source of all decisions and prompts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use protocol::command::NextSteps;
use protocol::error::{ErrorData, ErrorKind};
use protocol::state::{Feedback, RunState};
use protocol::test_record::TestRecord;
use protocol::tree::TaskTree;
use protocol::view::StopReason;
use runner_core::blocker::Transience;
use runner_core::message::{MessageError, RulesError, RunnerCommit, claims_receipt};
use runner_core::policy::Policy;
use runner_core::prompt::{self, OVERRIDE_TEMPLATES};
use runner_core::run::RunInputs;
use runner_core::run::RunScratch;
use runner_core::tree;
use runner_core::validate::{self, TreeFault};
use serde::de::DeserializeOwned;

use crate::clock;
use crate::config::{self, ConfigError, RepoConfig};
use crate::error_chain::display_chain;
use crate::git::{GitError, Id, Repository};
use crate::repo::goal::{Goal, GoalError};
use crate::repo::layout::Layout;
use crate::retryable::Retryable;
use crate::worker::integrity::definition::CommitDefinition;

/// Maximum number of commits searched for the runner's last one.
pub(crate) const MAX_PERSON_COMMITS: usize = 10_000;

/// The committed state at one commit.
#[derive(Debug, Clone)]
pub struct CommittedState {
    /// Id of the commit.
    pub commit: Id,
    /// The configuration, with defaults filled in.
    pub config: RepoConfig,
    /// The part of the configuration that rules need.
    pub policy: Policy,
    /// The goal, from `GOAL.md`.
    pub goal: Goal,
    /// The task tree, as committed.
    pub tree: TaskTree,
    /// The bookkeeping, from `run_state.json`.
    pub run_state: RunState,
    /// The feedback that sessions are given.
    pub feedback: Feedback,
    /// The names of tests.
    pub tests: TestRecord,
    /// Text files by path: configuration, progress, notes, memory and overrides of prompts.
    pub texts: BTreeMap<&'static str, String>,
    /// What is wrong with the repository's own templates.
    pub template_faults: Vec<String>,
    /// The guard's definition, once it has been read.
    pub(crate) definition: OnceLock<CommitDefinition>,
    /// The task tree in canonical form, once it has been computed.
    canonical_text: OnceLock<String>,
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
    /// A file is missing.
    #[error("{path} is not in commit {commit}")]
    Missing {
        /// The file, relative to the work tree.
        path: &'static str,
        /// Id of the commit.
        commit: Id,
    },
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The goal is not valid.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// The task tree is not valid.
    #[error("{path} is not valid: {}", join_faults(faults))]
    Tree {
        /// The file, relative to the work tree.
        path: &'static str,
        /// What is wrong.
        faults: Vec<TreeFault>,
    },
    /// A JSON file of the runner is not valid.
    #[error("{path} is not valid")]
    Json {
        /// The file, relative to the work tree.
        path: &'static str,
        /// What is wrong.
        source: serde_json::Error,
    },
}

impl Retryable for LoadError {
    fn transience(&self) -> Transience {
        match self {
            Self::Git(error) => error.transience(),
            // A fault in a commit remains until the next commit.
            Self::Rules { .. }
            | Self::Tampered { .. }
            | Self::Missing { .. }
            | Self::Config(_)
            | Self::Goal(_)
            | Self::Tree { .. }
            | Self::Json { .. } => Transience::Lasting,
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
            Self::Missing { .. } | Self::Config(_) | Self::Goal(_) | Self::Tree { .. } | Self::Json { .. } => None,
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

fn join_faults(faults: &[TreeFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
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
    let optional = [Layout::CONFIG, Layout::PROGRESS, Layout::NOTES].into_iter().chain(Layout::MEMORY);
    let optional: Vec<&'static str> = optional.chain(OVERRIDE_TEMPLATES.map(|(_, path)| path)).collect();
    let required = [Layout::GOAL, Layout::TREE, Layout::RUN_STATE, Layout::FEEDBACK, Layout::TESTS];
    let files = repository.read_files(&commit, optional.iter().copied().chain(required))?;
    let reader = StateFiles { files: &files, commit };
    let run_state: RunState = reader.read_json(Layout::RUN_STATE)?;
    if run_state.run_id.is_some() {
        last_runner_commit(repository, commit)?;
    }
    let config = parse_config(repository, files.get(Layout::CONFIG).map_or(&[], Vec::as_slice))?;
    let text = |path| Some((path, String::from_utf8_lossy(files.get(path)?).into_owned()));
    Ok(CommittedState {
        commit,
        policy: config.policy(),
        config,
        goal: Goal::parse(reader.read_bytes(Layout::GOAL)?, &PathBuf::from(Layout::GOAL))?,
        tree: validate::load(reader.read_bytes(Layout::TREE)?)
            .map_err(|faults| LoadError::Tree { path: Layout::TREE, faults })?,
        run_state,
        feedback: reader.read_json(Layout::FEEDBACK)?,
        tests: reader.read_json(Layout::TESTS)?,
        texts: optional.into_iter().filter_map(text).collect(),
        template_faults: prompt::find_template_faults(|path| Ok::<_, GitError>(files.get(path).cloned())),
        definition: OnceLock::new(),
        canonical_text: OnceLock::new(),
    })
}

/// Reads the configuration at `commit`; defaults if there is none.
pub fn load_config(repository: &Repository, commit: Id) -> Result<RepoConfig, LoadError> {
    parse_config(repository, &repository.read_file(&commit, Layout::CONFIG)?.unwrap_or_default())
}

fn parse_config(repository: &Repository, bytes: &[u8]) -> Result<RepoConfig, LoadError> {
    let path = repository.work_dir().join(Layout::CONFIG);
    Ok(config::parse(config::decode_text(bytes, &path)?, &path)?)
}

impl CommittedState {
    /// Returns a text file; empty if it does not exist.
    pub fn text(&self, path: &str) -> &str {
        self.texts.get(path).map_or("", String::as_str)
    }

    /// Returns the task tree in canonical form, computed once.
    pub fn canonical_tree(&self) -> &str {
        self.canonical_text.get_or_init(|| tree::canonical(&self.tree))
    }

    /// Returns the inputs for deciding a run's next step.
    pub fn run_inputs<'a>(&'a self, uncommitted: &'a RunScratch) -> RunInputs<'a> {
        RunInputs {
            policy: &self.policy,
            tree: &self.tree,
            run_state: &self.run_state,
            feedback: &self.feedback,
            review_decision: uncommitted.word.as_ref(),
            outages: &uncommitted.outages,
            retry_usage: &uncommitted.tried,
            now: clock::now(),
        }
    }
}

struct StateFiles<'a> {
    files: &'a BTreeMap<&'static str, Vec<u8>>,
    commit: Id,
}

impl<'a> StateFiles<'a> {
    fn read_bytes(&self, path: &'static str) -> Result<&'a [u8], LoadError> {
        self.files.get(path).map(Vec::as_slice).ok_or(LoadError::Missing { path, commit: self.commit })
    }

    fn read_json<T: DeserializeOwned>(&self, path: &'static str) -> Result<T, LoadError> {
        serde_json::from_slice(self.read_bytes(path)?).map_err(|source| LoadError::Json { path, source })
    }
}
