//! The tip of a run's branch as a person's requests find it: what they change, and the commit of one.
//!
//! When a request is done, and that it is done once, is `changes`'.

use protocol::command::{Command, Ways};
use protocol::state::RunState;
use protocol::view::StopReason;
use runner_core::change::{Change, Changed, Documents};
use runner_core::definition::Guarded;
use runner_core::message::RunnerCommit;
use runner_core::run::RunRecord;
use runner_core::{json, message, tree};

use crate::git::{CommitInfo, GitError, Graft, Id, Repository};
use crate::repo::durable;
use crate::repo::layout::Layout;
use crate::store::{Queued, Store};
use crate::worker::clear::clear_leftovers;
use crate::worker::context::RunContext;
use crate::worker::integrity::definition;
use crate::worker::load::{LoadError, Loaded, load};
use crate::worker::trusted::Trusted;
use crate::worker::unready::Unready;

/// Commits upon the one that was kept that are looked through for one's own.
const MAX_UPON: usize = 1_000;

/// The tip of a run's branch.
pub(crate) struct BranchTip {
    repository: Repository,
    branch: String,
    /// The committed state.
    pub(crate) loaded: Loaded,
    /// The guard's definition.
    guarded: Guarded,
}

/// The commit of a request.
pub(crate) struct Made {
    /// The commit.
    pub(crate) commit: Id,
    /// The documents it was made upon.
    pub(crate) before: Documents,
    /// What it made of them.
    pub(crate) changed: Changed,
}

impl BranchTip {
    /// Reads the tip of a run's branch; none where the run has not begun.
    pub(crate) fn of(store: &Store, run: &RunRecord) -> Result<Option<Self>, Unready> {
        if run.beginning.is_some() {
            return Ok(None);
        }
        let repository = Trusted::of(store, run.path.as_path()).bound()?;
        let branch = format!("runner/{}", run.id);
        let Some(tip) = repository.branch(&branch)? else { return Ok(None) };
        let loaded = load(&repository, tip).map_err(unreadable)?;
        let guarded = definition::at(&repository, &loaded).map_err(unreadable)?;
        Ok(Some(Self { repository, branch, loaded, guarded }))
    }

    /// Returns the commit of the iteration with this number, where it is among the last ones; a fork goes on with another run's.
    pub(crate) fn commit_of(&self, iter: u32) -> Result<Option<Id>, GitError> {
        let is_it = |commit: &CommitInfo| {
            let said = RunnerCommit::parse(&commit.message);
            matches!(said, Ok(RunnerCommit::Iteration(receipt)) if receipt.iter == iter)
        };
        let commits = self.repository.first_parents(&self.loaded.commit, MAX_UPON)?;
        Ok(commits.into_iter().find(is_it).map(|commit| commit.id))
    }

    /// Brings the work tree to what was committed, where the branch is checked out.
    pub(crate) fn lay_out(&self, made: &Made) -> Result<(), Unready> {
        if !self.is_checked_out()? {
            return Ok(());
        }
        let files = files(&made.before, &made.changed);
        clear_leftovers(&self.repository)?;
        Ok(self.repository.lay_out(&files.iter().map(|(path, _)| *path).collect::<Vec<_>>())?)
    }

    /// Returns what requests change.
    pub(crate) fn documents(&self) -> Documents {
        documents(&self.loaded, self.guarded.clone())
    }

    fn is_checked_out(&self) -> Result<bool, GitError> {
        Ok(self.repository.head()?.branch() == Some(self.branch.as_str()))
    }

    /// Refuses to write over what somebody has changed by hand and not committed.
    pub(crate) fn refuse_uncommitted(&self, changed: &Changed) -> Result<(), Unready> {
        if !self.is_checked_out()? {
            return Ok(());
        }
        for (path, text) in files(&self.documents(), changed) {
            let there = durable::read(&self.repository.work_dir().join(path))?.unwrap_or_default();
            let committed = self.repository.read(&self.loaded.commit, path)?.unwrap_or_default();
            if there != committed && there != text.as_bytes() {
                let message = format!("{path} has changes that are not committed");
                let ways = Ways::from(format!("commit {path}")).join(", or ", Command::restore(path));
                return Err(Unready::Hold(StopReason::new(message, ways.join("; then: ", "runnerctl resume"))));
            }
        }
        Ok(())
    }

    /// Makes the commit of a request.
    pub(crate) fn commit(&self, run: &str, change: &Change, changed: &Changed) -> Result<Id, Unready> {
        clear_leftovers(&self.repository)?;
        let files = files(&self.documents(), changed);
        let files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
        Ok(self.repository.graft(&Graft {
            branch: &self.branch,
            parent: self.loaded.commit,
            files: &files,
            message: &message::compose_human(run, change.command(), &changed.summary),
            author: RunContext::identity(&self.repository),
            sign: self.loaded.config.git.sign,
        })?)
    }

    /// Returns the commit of a request that an earlier try has made, and what it made.
    pub(crate) fn made(&self, waiting: &Queued) -> Result<Option<Made>, Unready> {
        let Some(from) = waiting.from.as_deref().and_then(|from| from.parse::<Id>().ok()) else { return Ok(None) };
        if from == self.loaded.commit {
            return Ok(None);
        }
        let loaded = load(&self.repository, from).map_err(unreadable)?;
        let before = documents(&loaded, definition::at(&self.repository, &loaded).map_err(unreadable)?);
        let Ok(changed) = waiting.change.apply(&before) else { return Ok(None) };
        let message = message::compose_human(&waiting.run, waiting.change.command(), &changed.summary);
        let is_own = |commit: &CommitInfo| commit.message.trim_end() == message.trim_end();
        let commits = self.repository.first_parents(&self.loaded.commit, MAX_UPON)?;
        let own = commits.into_iter().take_while(|commit| commit.id != from).find(is_own);
        Ok(own.map(|commit| Made { commit: commit.id, before, changed }))
    }
}

/// Returns the files that a request changes, as paths and what they are to hold.
fn files(before: &Documents, changed: &Changed) -> Vec<(&'static str, String)> {
    let after = &changed.documents;
    let files = [
        (Layout::TREE, before.tree != after.tree, tree::canonical(&after.tree)),
        (Layout::NOTES, before.notes != after.notes, after.notes.clone()),
        (Layout::QUESTIONS, before.questions != after.questions, after.questions.clone()),
        (Layout::CONFIG, before.config != after.config, after.config.clone()),
        (Layout::RUN_STATE, before.run_state != after.run_state, json::canonical(&after.run_state)),
    ];
    files.into_iter().filter(|(_, is_changed, _)| *is_changed).map(|(path, _, text)| (path, text)).collect()
}

fn documents(loaded: &Loaded, guarded: Guarded) -> Documents {
    Documents {
        tree: loaded.tree.clone(),
        notes: loaded.text(Layout::NOTES).to_owned(),
        questions: loaded.text(Layout::QUESTIONS).to_owned(),
        config: loaded.text(Layout::CONFIG).to_owned(),
        run_state: loaded.run_state.clone(),
        guarded,
        max_attempts: loaded.policy.max_attempts_default,
    }
}

fn unreadable(error: LoadError) -> Unready {
    match error {
        LoadError::Git(error) => error.into(),
        error => Unready::Hold(error.hold()),
    }
}

/// Returns the documents that a run which has not begun will most likely begin with.
pub(crate) fn documents_of_head(run: &RunRecord) -> Documents {
    let read = || {
        let repository = Repository::discover(run.path.as_path()).ok()?;
        let loaded = load(&repository, repository.head().ok()?.commit()?).ok()?;
        Some(documents(&loaded, Guarded::default()))
    };
    let nothing = || Documents {
        tree: tree::fresh(1),
        notes: String::new(),
        questions: String::new(),
        config: String::new(),
        run_state: RunState::default(),
        guarded: Guarded::default(),
        max_attempts: 1,
    };
    read().unwrap_or_else(nothing)
}
