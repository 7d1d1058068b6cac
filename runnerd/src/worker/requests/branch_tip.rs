//! The tip of a run's branch as requests of people see it: what they change, and the commit of each.
//!
//! When a request is carried out, and that it happens only once, is up to `changes`.

use protocol::command::{Command, NextSteps};
use protocol::state::RunState;
use protocol::view::StopReason;
use runner_core::files::change::{ChangeRequest, ChangeResult, RunDocuments};
use runner_core::guard::definition::DefinitionState;
use runner_core::message;
use runner_core::message::RunnerCommit;
use runner_core::run::RunRecord;
use runner_core::text::json;
use runner_core::tree;
use runner_git::{CommitInfo, GitError, Id, PathsCommit, Repository};

use crate::repo::durable;
use crate::repo::layout::Layout;
use crate::store::{QueuedChange, RepoStore};
use crate::worker::cleanup::clear_leftovers;
use crate::worker::context::RunContext;
use crate::worker::integrity::definition;
use crate::worker::load::{CommittedState, LoadError, load_state};
use crate::worker::pinned_repo::PinnedRepo;
use crate::worker::prepare_error::PrepareError;

/// Maximum number of commits searched for a request's own, back to the one saved before.
const MAX_SCANNED_COMMITS: usize = 1_000;

/// The tip of a run's branch.
pub(crate) struct BranchTip {
    repository: Repository,
    branch: String,
    /// The committed state.
    pub(crate) loaded: CommittedState,
    /// The guard's definition.
    definition: DefinitionState,
}

/// The commit of a request, possibly made by an earlier attempt.
pub(crate) struct CommittedRequest {
    /// Id of the commit.
    pub(crate) commit: Id,
    /// The documents that the request was applied to.
    pub(crate) before: RunDocuments,
    /// The result of applying it.
    pub(crate) changed: ChangeResult,
}

impl BranchTip {
    /// Reads the tip of a run's branch; `None` if the run has not begun.
    pub(crate) fn read_tip(store: &RepoStore, run: &RunRecord) -> Result<Option<Self>, PrepareError> {
        if run.beginning.is_some() {
            return Ok(None);
        }
        let repository = PinnedRepo::for_work_tree(store, run.path.as_path()).open()?;
        let branch = format!("runner/{}", run.id);
        let Some(tip) = repository.find_branch_tip(&branch)? else { return Ok(None) };
        let loaded = load_state(&repository, tip).map_err(load_error)?;
        let definition = definition::definition_at(&repository, &loaded).map_err(load_error)?;
        Ok(Some(Self { repository, branch, loaded, definition }))
    }

    /// Returns the commit of the iteration with this number, if it is among the last ones; a fork continues the
    /// iterations of another run.
    pub(crate) fn iteration_commit(&self, iter: u32) -> Result<Option<Id>, GitError> {
        let is_iteration = |commit: &CommitInfo| {
            let parsed = RunnerCommit::parse(&commit.message);
            matches!(parsed, Ok(RunnerCommit::Iteration(receipt)) if receipt.iter == iter)
        };
        let commits = self.repository.first_parents(&self.loaded.commit, MAX_SCANNED_COMMITS)?;
        Ok(commits.into_iter().find(is_iteration).map(|commit| commit.id))
    }

    /// Updates the work tree to what was committed, if the branch is checked out.
    pub(crate) fn update_work_tree(&self, committed: &CommittedRequest) -> Result<(), PrepareError> {
        if !self.is_checked_out()? {
            return Ok(());
        }
        let files = changed_files(&committed.before, &committed.changed);
        clear_leftovers(&self.repository)?;
        Ok(self.repository.check_out_paths(&files.iter().map(|(path, _)| *path).collect::<Vec<_>>())?)
    }

    /// Returns the documents that requests change.
    pub(crate) fn documents(&self) -> RunDocuments {
        self.loaded.documents(self.definition.clone())
    }

    fn is_checked_out(&self) -> Result<bool, GitError> {
        Ok(self.repository.head()?.branch() == Some(self.branch.as_str()))
    }

    /// Refuses to overwrite uncommitted changes made by hand.
    pub(crate) fn refuse_uncommitted(&self, changed: &ChangeResult) -> Result<(), PrepareError> {
        if !self.is_checked_out()? {
            return Ok(());
        }
        for (path, text) in changed_files(&self.documents(), changed) {
            let present = durable::read(&self.repository.work_dir().join(path))?.unwrap_or_default();
            let committed = self.repository.read_file(&self.loaded.commit, path)?.unwrap_or_default();
            if present != committed && present != text.as_bytes() {
                let message = format!("{path} has changes that are not committed");
                let ways = NextSteps::from(format!("commit {path}")).join(", or ", Command::restore_file(path));
                return Err(PrepareError::Hold(StopReason::new(message, ways.join("; then: ", "runnerctl resume"))));
            }
        }
        Ok(())
    }

    /// Commits a request to the run's branch.
    pub(crate) fn commit_change(
        &self,
        run: &str,
        change: &ChangeRequest,
        changed: &ChangeResult,
    ) -> Result<Id, PrepareError> {
        clear_leftovers(&self.repository)?;
        let files = changed_files(&self.documents(), changed);
        let files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
        Ok(self.repository.commit_paths(&PathsCommit {
            branch: &self.branch,
            parent: self.loaded.commit,
            files: &files,
            message: &message::compose_human(run, change.command(), &changed.summary),
            author: RunContext::identity(&self.repository),
            sign: self.loaded.config.git.sign,
        })?)
    }

    /// Returns the commit of a request that an earlier attempt has made, and its result.
    pub(crate) fn find_request_commit(&self, waiting: &QueuedChange) -> Result<Option<CommittedRequest>, PrepareError> {
        let Some(from) = waiting.from.as_deref().and_then(|from| from.parse::<Id>().ok()) else { return Ok(None) };
        if from == self.loaded.commit {
            return Ok(None);
        }
        let loaded = load_state(&self.repository, from).map_err(load_error)?;
        let before = loaded.documents(definition::definition_at(&self.repository, &loaded).map_err(load_error)?);
        let Ok(changed) = waiting.change.apply(&before) else { return Ok(None) };
        let message = message::compose_human(&waiting.run, waiting.change.command(), &changed.summary);
        let is_own = |commit: &CommitInfo| commit.message.trim_end() == message.trim_end();
        let commits = self.repository.first_parents(&self.loaded.commit, MAX_SCANNED_COMMITS)?;
        let own_commit = commits.into_iter().take_while(|commit| commit.id != from).find(is_own);
        Ok(own_commit.map(|commit| CommittedRequest { commit: commit.id, before, changed }))
    }
}

/// Returns the paths and new contents of the files that a request changes.
fn changed_files(before: &RunDocuments, changed: &ChangeResult) -> Vec<(&'static str, String)> {
    let after = &changed.documents;
    let files = [
        (Layout::TREE, before.tree != after.tree, tree::canonical(&after.tree)),
        (Layout::NOTES, before.notes != after.notes, after.notes.clone()),
        (Layout::QUESTIONS, before.questions != after.questions, after.questions.clone()),
        (Layout::CONFIG, before.config != after.config, after.config.clone()),
        (Layout::RUN_STATE, before.run_state != after.run_state, json::to_canonical_json(&after.run_state)),
    ];
    files.into_iter().filter(|(_, is_changed, _)| *is_changed).map(|(path, _, text)| (path, text)).collect()
}

fn load_error(error: LoadError) -> PrepareError {
    match error {
        LoadError::Git(error) => error.into(),
        error => PrepareError::Hold(error.to_stop_reason()),
    }
}

/// Returns the documents with which a run that has not begun will most likely begin.
pub(crate) fn documents_at_head(run: &RunRecord) -> RunDocuments {
    let read = || {
        let repository = Repository::discover(run.path.as_path()).ok()?;
        let loaded = load_state(&repository, repository.head().ok()?.commit()?).ok()?;
        Some(loaded.documents(DefinitionState::default()))
    };
    let empty = || RunDocuments {
        tree: tree::new_tree(1),
        notes: String::new(),
        questions: String::new(),
        config: String::new(),
        run_state: RunState::default(),
        definition_state: DefinitionState::default(),
        max_attempts: 1,
    };
    read().unwrap_or_else(empty)
}
