//! What a workspace that is gone is made anew from, or why it cannot be: a choice from what is left of its run elsewhere.

use protocol::view::StopReason;

use crate::blocker::{Transience, Blocker};
use crate::shell::quoted;

/// What is left of a run whose workspace is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceRemains<C> {
    /// The last commit of it that the source keeps.
    pub last_commit: Option<C>,
    /// Whether anything of it was in the source before.
    pub was_published: bool,
    /// How it begins, if nothing of it was ever committed.
    pub start_base: Option<StartBase<C>>,
}

/// How a run begins of which nothing was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartBase<C> {
    /// From a commit that the source has.
    At(C),
    /// From one that it does not have any more.
    Gone,
}

/// What a workspace is made anew from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceSource<C> {
    /// What is published: the run goes on there.
    Published(C),
    /// The commit that the run was to begin from: it begins.
    Base(C),
    /// Nothing.
    Unrecoverable(WorkspaceLoss),
}

/// Why there is nothing to make it from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceLoss {
    /// What was published is gone from the source.
    Branch,
    /// What was committed was never published.
    Commits,
    /// The commit that it was to begin from is gone from the source.
    Base,
}

/// Decides what a workspace is made anew from.
pub fn choose_source<C>(left: WorkspaceRemains<C>) -> WorkspaceSource<C> {
    match left {
        WorkspaceRemains { last_commit: Some(tip), .. } => WorkspaceSource::Published(tip),
        // Whoever begins again would hide that there was more.
        WorkspaceRemains { was_published: true, .. } => WorkspaceSource::Unrecoverable(WorkspaceLoss::Branch),
        WorkspaceRemains { start_base: Some(StartBase::At(base)), .. } => WorkspaceSource::Base(base),
        WorkspaceRemains { start_base: Some(StartBase::Gone), .. } => WorkspaceSource::Unrecoverable(WorkspaceLoss::Base),
        WorkspaceRemains { start_base: None, .. } => WorkspaceSource::Unrecoverable(WorkspaceLoss::Commits),
    }
}

/// Returns what is in the way of a run whose workspace is gone.
pub fn missing_workspace(run: &str, [source, workspace]: [&str; 2]) -> Blocker {
    Blocker {
        what: format!(
            "the workspace {workspace} is gone; it can be made anew from what {source} has of run {run}, without what was \
             not committed"
        ),
        remedy: "put it back if you have it".to_owned(),
        nature: Transience::Lost,
    }
}

impl WorkspaceLoss {
    /// Returns why the run cannot go on, and what can be typed; `last` is the last commit that was published, where it is
    /// there yet.
    pub fn stop_reason(self, run: &str, [source, workspace]: [&str; 2], last: Option<&str>) -> StopReason {
        let (place, branch) = (quoted(source), format!("runner/{run}"));
        let cancel = format!("runnerctl cancel {place} --run {run}");
        let gone = format!("the workspace {workspace} is gone");
        match (self, last) {
            (Self::Branch, Some(last)) => StopReason::new(
                format!("{gone}, and so is {branch} in {source}"),
                format!("git -C {place} branch {branch} {last} && runnerctl resume {place} --run {run}; or: {cancel}"),
            ),
            (Self::Branch, None) => {
                StopReason::new(format!("{gone}, and so is {branch} in {source} with its commits"), cancel)
            }
            (Self::Commits, _) => {
                StopReason::new(format!("{gone}, and what run {run} had committed in it was not published yet"), cancel)
            }
            (Self::Base, _) => StopReason::new(
                format!("{gone}, and so is the commit in {source} that run {run} was to begin from"),
                cancel,
            ),
        }
    }
}
