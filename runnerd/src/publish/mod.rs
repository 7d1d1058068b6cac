//! Publishing: what an isolated run commits in its workspace comes into the repository that it was begun from, under the
//! branch that a run in place would have made there.
//!
//! No transport, no hook and no setting of that repository takes part. What is done next is `runner_core::publish`'s: here
//! it is looked, and after each move of a reference looked again, so that a death after any step leaves what the next look
//! finds.
//! It knows no queue and no run's state.

mod error;
mod look;
mod note;
mod steps;
#[cfg(test)]
pub(crate) mod tests;

use protocol::view::{PublishedView, StopReason};
use runner_core::publish::{self, Hold, Step, Told, Whole};

pub use self::error::PublishError;
use self::look::Look;
pub use self::look::last_kept;
pub use self::note::Published;
use crate::git::{Captured, GitError, Id, Repository, Use};
use crate::repo::kept::Kept;
use crate::store::{Source, Store};

/// Steps after which somebody moves all the time what is looked at.
const MAX_STEPS: u32 = 16;
/// Times that git refuses a step, though nothing has moved: the first may be the work of somebody who collects garbage.
const MAX_REFUSALS: u32 = 2;
/// Commits that are counted of those that a branch is behind by.
const MAX_BEHIND: usize = 10_000;

/// What has come of publishing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Publication {
    /// What clients see; none before the run has a commit.
    pub view: Option<PublishedView>,
    /// Whether a person has to look before the run goes on: why, is in the view.
    pub is_held: bool,
}

/// A run's way into its source.
#[derive(Debug)]
pub struct Publisher<'a> {
    workspace: &'a Repository,
    target: Repository,
    source: &'a Source,
    note: Kept<Published>,
    progress: Progress,
}

/// What this call knows of what it has done.
#[derive(Debug)]
struct Progress {
    whole: Whole,
    /// Whether something was sent.
    has_sent: bool,
    /// What leads to all of that.
    sent: Vec<Id>,
    /// Whether that was everything.
    has_sent_all: bool,
    /// An object that is missing.
    missing: String,
}

/// Brings the source up to what the workspace has.
pub fn publish(store: &Store, workspace: &Repository, source: &Source) -> Result<Publication, PublishError> {
    Publisher::new(store, workspace, source)?.run()
}

/// Looks how far the source is, and does nothing; none before the run has a commit.
pub fn look(store: &Store, workspace: &Repository, source: &Source) -> Result<Option<PublishedView>, PublishError> {
    let publisher = Publisher::new(store, workspace, source)?;
    let Some(look) = publisher.look()? else { return Ok(None) };
    publisher.view(publish::next(Some(&look.seen)), &look)
}

impl<'a> Publisher<'a> {
    /// Names the two repositories; nothing is done yet.
    pub fn new(store: &Store, workspace: &'a Repository, source: &'a Source) -> Result<Self, PublishError> {
        let (_, folder) = store.git::<Captured>(source.common_dir.as_path());
        let target = workspace.target(source.common_dir.as_path(), &folder)?;
        let progress = Progress {
            whole: Whole::Unknown,
            has_sent: false,
            sent: Vec::new(),
            has_sent_all: false,
            missing: String::new(),
        };
        Ok(Self { workspace, target, source, note: store.published(), progress })
    }

    fn branch(&self) -> String {
        format!("runner/{}", self.source.run)
    }

    /// Does one step after the other until there is nothing to do.
    pub fn run(mut self) -> Result<Publication, PublishError> {
        let mut refusals = 0;
        for _ in 0..MAX_STEPS {
            let Some(mut look) = self.look()? else { return Ok(Publication::default()) };
            let done = match look.unsettled() {
                Some(note) => self.look_after(note).map(|()| None),
                None => self.steps(&mut look),
            };
            match done {
                // What somebody else has moved since it was read is read again; what stays as it was is an error.
                Err(PublishError::Git(
                    error @ (GitError::Program { .. } | GitError::Moved { .. } | GitError::Broken { .. }),
                )) => {
                    refusals += 1;
                    if refusals >= MAX_REFUSALS && self.look()?.as_ref() == Some(&look) {
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
        Err(PublishError::Restless { path: self.source.path.0.clone() })
    }

    /// Does what is to be done next until a reference was moved; returns what has come of it where there is nothing more to
    /// do.
    fn steps(&mut self, look: &mut Look) -> Result<Option<Publication>, PublishError> {
        loop {
            match publish::next(Some(&look.seen)) {
                Step::Send => self.send(look, false)?,
                Step::SendAll => self.send(look, true)?,
                Step::Check => self.check(look)?,
                Step::Keep => return self.keep(look).map(|()| None),
                Step::Move => return self.move_branch(look).map(|()| None),
                done => return self.end(done, look).map(Some),
            }
            // Whether references are where they were is seen when they are moved.
            look.seen.is_sent = self.progress.has_sent;
            look.seen.whole = self.progress.whole;
        }
    }

    /// Tells what has come of it, where there is nothing more to do.
    fn end(&self, step: Step, look: &Look) -> Result<Publication, PublishError> {
        if step == Step::UpToDate {
            self.remember(look)?;
        }
        Ok(Publication { view: self.view(step, look)?, is_held: matches!(step, Step::Hold(_)) })
    }

    /// Tells how far the source is, and why it stays so where the next step is to do nothing.
    fn view(&self, step: Step, look: &Look) -> Result<Option<PublishedView>, PublishError> {
        let why = match step {
            Step::Skip => Some(self.in_use(look)),
            Step::Hold(hold) => Some(self.hold(hold, look)),
            Step::NotBegun => return Ok(None),
            _ => None,
        };
        let (tip, behind) = (look.branch.clone(), Some(self.behind(look)?));
        Ok(Some(PublishedView { to: self.source.path.clone(), tip, behind, why }))
    }

    /// Returns how many commits of the run the branch lacks.
    fn behind(&self, look: &Look) -> Result<u32, PublishError> {
        let until = look.branch.as_deref().and_then(|id| id.parse::<Id>().ok()).or(look.base);
        if until == Some(look.tip) {
            return Ok(0);
        }
        let mut count = 0;
        self.workspace.first_parents_until(&look.tip, MAX_BEHIND, |commit| {
            let is_there = Some(commit.id) == until;
            count += u32::from(!is_there);
            is_there
        })?;
        Ok(count)
    }

    fn hold(&self, hold: Hold, look: &Look) -> StopReason {
        let found = match hold {
            Hold::ForeignBranch => look.branch.as_deref(),
            Hold::ForeignKeeper => look.at.as_deref(),
            Hold::InTheWay => look.in_the_way.as_deref(),
            Hold::ReservedForAnother => look.reserved_for.as_deref(),
            Hold::BranchGone => None,
            Hold::Incomplete => Some(self.progress.missing.as_str()),
        };
        hold.reason(&Told {
            run: &self.source.run,
            source: &self.source.path.to_string(),
            workspace: &self.workspace.work_dir().display().to_string(),
            found: found.unwrap_or_default(),
            kept: look.at.as_deref(),
        })
    }

    fn in_use(&self, look: &Look) -> StopReason {
        let place = look.in_use.as_ref().map_or(self.target.work_dir(), |used| &used.work_tree);
        let how = match &look.in_use {
            Some(used) if used.how == Use::GitAtWork => publish::Use::GitAtWork,
            _ if place.is_dir() => publish::Use::InWorkTree,
            _ => publish::Use::InLostWorkTree,
        };
        publish::skipped(&self.source.run, how, [&self.source.path.to_string(), &place.display().to_string()])
    }
}
