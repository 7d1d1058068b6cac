//! Publishing: the commits that an isolated run makes in its workspace are transferred to the repository it was started
//! from, to the branch that a run in place would have created there.
//!
//! No transport, hook or setting of that repository takes part. `runner_core::publish` decides the next step; this
//! module reads the state, and reads it again after each move of a reference, so a crash after any step leaves a state
//! that the next look recognises. It knows nothing about queues or run states.

mod error;
mod record;
mod snapshot;
mod steps;
#[cfg(test)]
pub(crate) mod tests;

use protocol::view::{PublishedView, StopReason};
use runner_core::publish::{self, HoldContext, ObjectCompleteness, PublishHold, PublishStep};
use runner_git::{BranchUseKind, GitError, Id, PinnedConfig, Repository};

pub use self::error::PublishError;
pub use self::record::PublishedMove;
use self::snapshot::PublishSnapshot;
pub use self::snapshot::find_preserved_tip;
use crate::repo::sealed::SealedFile;
use crate::store::{RepoStore, SourceRepo};

/// After this many steps, someone keeps moving the references.
const MAX_STEPS: u32 = 16;
/// How often git may refuse a step although nothing has moved: a concurrent garbage collection can explain the first.
const MAX_REFUSALS: u32 = 2;
/// Limit for counting how many commits a branch is behind.
const MAX_BEHIND: usize = 10_000;

/// Result of publishing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishOutcome {
    /// Status for clients; `None` before the run has a commit.
    pub view: Option<PublishedView>,
    /// Whether a person has to intervene before the run continues; the reason is in the view.
    pub is_held: bool,
}

/// Publishes a run to its source.
#[derive(Debug)]
pub struct Publisher<'a> {
    workspace: &'a Repository,
    target: Repository,
    source: &'a SourceRepo,
    record_file: SealedFile<PublishedMove>,
    progress: PublishProgress,
}

/// What this call has done so far.
#[derive(Debug)]
struct PublishProgress {
    completeness: ObjectCompleteness,
    /// Whether something was sent.
    has_sent: bool,
    /// Commits that everything sent is reachable from.
    sent: Vec<Id>,
    /// Whether everything was sent.
    has_sent_all: bool,
    /// An object that is missing.
    missing: String,
}

/// Publishes everything the workspace has to the source.
pub fn publish_run(
    store: &RepoStore,
    workspace: &Repository,
    source: &SourceRepo,
) -> Result<PublishOutcome, PublishError> {
    Publisher::new(store, workspace, source)?.run()
}

/// Reads how far the source is, without changing it; `None` before the run has a commit.
pub fn inspect_published(
    store: &RepoStore,
    workspace: &Repository,
    source: &SourceRepo,
) -> Result<Option<PublishedView>, PublishError> {
    let publisher = Publisher::new(store, workspace, source)?;
    let Some(snapshot) = publisher.read_snapshot()? else { return Ok(None) };
    publisher.build_view(publish::next_step(Some(&snapshot.input)), &snapshot)
}

impl<'a> Publisher<'a> {
    /// Opens the two repositories; changes nothing yet.
    pub fn new(store: &RepoStore, workspace: &'a Repository, source: &'a SourceRepo) -> Result<Self, PublishError> {
        let (_, folder) = store.git_config_file::<PinnedConfig>(source.common_dir.as_path());
        let target = workspace.pinned_target(source.common_dir.as_path(), &folder)?;
        let progress = PublishProgress {
            completeness: ObjectCompleteness::Unknown,
            has_sent: false,
            sent: Vec::new(),
            has_sent_all: false,
            missing: String::new(),
        };
        Ok(Self { workspace, target, source, record_file: store.published_file(), progress })
    }

    fn branch_name(&self) -> String {
        format!("runner/{}", self.source.run)
    }

    /// Runs step by step until there is nothing left to do.
    pub fn run(mut self) -> Result<PublishOutcome, PublishError> {
        let mut refusals = 0;
        for _ in 0..MAX_STEPS {
            let Some(mut snapshot) = self.read_snapshot()? else { return Ok(PublishOutcome::default()) };
            let result = match snapshot.unsettled_move() {
                Some(note) => self.verify_move(note).map(|()| None),
                None => self.run_steps(&mut snapshot),
            };
            match result {
                // What someone else has moved since is read again; an error without any change is final.
                Err(PublishError::Git(
                    error @ (GitError::CommandFailed { .. } | GitError::RefMoved { .. } | GitError::Corrupt { .. }),
                )) => {
                    refusals += 1;
                    if refusals >= MAX_REFUSALS && self.read_snapshot()?.as_ref() == Some(&snapshot) {
                        return Err(error.into());
                    }
                }
                done => {
                    if let Some(publication) = done? {
                        return Ok(publication);
                    }
                }
            }
        }
        Err(PublishError::RefsUnstable { path: self.source.path.0.clone() })
    }

    /// Runs steps until a reference was moved; returns the result if there is nothing left to do.
    fn run_steps(&mut self, snapshot: &mut PublishSnapshot) -> Result<Option<PublishOutcome>, PublishError> {
        loop {
            match publish::next_step(Some(&snapshot.input)) {
                PublishStep::Send => self.send_objects(snapshot, false)?,
                PublishStep::SendAll => self.send_objects(snapshot, true)?,
                PublishStep::CheckObjects => self.check_complete(snapshot)?,
                PublishStep::KeepRefs => return self.update_keep_refs(snapshot).map(|()| None),
                PublishStep::MoveBranch => return self.move_branch(snapshot).map(|()| None),
                done => return self.finish(done, snapshot).map(Some),
            }
            // Whether references have changed is checked when they are moved.
            snapshot.input.is_sent = self.progress.has_sent;
            snapshot.input.objects = self.progress.completeness;
        }
    }

    /// Returns the final result.
    fn finish(&self, step: PublishStep, snapshot: &PublishSnapshot) -> Result<PublishOutcome, PublishError> {
        if step == PublishStep::UpToDate {
            self.record_published(snapshot)?;
        }
        Ok(PublishOutcome { view: self.build_view(step, snapshot)?, is_held: matches!(step, PublishStep::Hold(_)) })
    }

    /// Returns how far the source is, and why it stays there if the next step does nothing.
    fn build_view(&self, step: PublishStep, snapshot: &PublishSnapshot) -> Result<Option<PublishedView>, PublishError> {
        let why = match step {
            PublishStep::Skip => Some(self.in_use_reason(snapshot)),
            PublishStep::Hold(hold) => Some(self.hold_reason(hold, snapshot)),
            PublishStep::NotBegun => return Ok(None),
            _ => None,
        };
        let tip = snapshot.branch.clone();
        let behind = Some(self.count_behind(snapshot)?);
        Ok(Some(PublishedView { to: self.source.path.clone(), tip, behind, why }))
    }

    /// Returns how many commits of the run the branch lacks.
    fn count_behind(&self, snapshot: &PublishSnapshot) -> Result<u32, PublishError> {
        let until = snapshot.branch.as_deref().and_then(|id| id.parse::<Id>().ok()).or(snapshot.base);
        if until == Some(snapshot.tip) {
            return Ok(0);
        }
        let mut count = 0;
        self.workspace.visit_first_parents(&snapshot.tip, MAX_BEHIND, |commit| {
            let is_end = Some(commit.id) == until;
            count += u32::from(!is_end);
            is_end
        })?;
        Ok(count)
    }

    fn hold_reason(&self, hold: PublishHold, snapshot: &PublishSnapshot) -> StopReason {
        let found = match hold {
            PublishHold::ForeignBranch => snapshot.branch.as_deref(),
            PublishHold::ForeignKeepRef => snapshot.keeper.as_deref(),
            PublishHold::InTheWay => snapshot.conflicting_branch.as_deref(),
            PublishHold::ReservedForAnother => snapshot.reserved_for.as_deref(),
            PublishHold::BranchGone => None,
            PublishHold::Incomplete => Some(self.progress.missing.as_str()),
        };
        hold.stop_reason(&HoldContext {
            run: &self.source.run,
            source: &self.source.path.to_string(),
            workspace: &self.workspace.work_dir().display().to_string(),
            found: found.unwrap_or_default(),
            kept: snapshot.keeper.as_deref(),
        })
    }

    fn in_use_reason(&self, snapshot: &PublishSnapshot) -> StopReason {
        let place = snapshot.branch_user.as_ref().map_or(self.target.work_dir(), |used| &used.work_tree);
        let how = match &snapshot.branch_user {
            Some(used) if used.kind == BranchUseKind::GitRunning => publish::BranchUse::GitAtWork,
            _ if place.is_dir() => publish::BranchUse::InWorkTree,
            _ => publish::BranchUse::InLostWorkTree,
        };
        publish::skip_reason(&self.source.run, how, [&self.source.path.to_string(), &place.display().to_string()])
    }
}
