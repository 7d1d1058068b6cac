//! Decides from what a lost workspace is recreated, or why it cannot be, given what is left of its run elsewhere.

use protocol::shell::quote;
use protocol::view::StopReason;

use crate::run::blocker::{Blocker, Transience};

/// What is left of a run whose workspace is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceRemains<C> {
    /// The run's last commit that the source keeps.
    pub last_commit: Option<C>,
    /// Whether any part of the run was in the source before.
    pub was_published: bool,
    /// How the run begins, if none of it was ever committed.
    pub start_base: Option<StartBase<C>>,
}

/// The base of a run of which nothing was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartBase<C> {
    /// A commit that the source has.
    At(C),
    /// A commit that the source no longer has.
    Gone,
}

/// Source for recreating a lost workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceSource<C> {
    /// The published commit, from which the run continues.
    Published(C),
    /// The commit from which the run was to begin; it begins again.
    Base(C),
    /// There is no source.
    Unrecoverable(WorkspaceLoss),
}

/// Why there is no source for a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceLoss {
    /// The published commits are gone from the source.
    Branch,
    /// The commits were never published.
    Commits,
    /// The commit from which the run was to begin is gone from the source.
    Base,
}

/// Decides from what to recreate a workspace.
pub fn choose_source<C>(left: WorkspaceRemains<C>) -> WorkspaceSource<C> {
    match left {
        WorkspaceRemains { last_commit: Some(tip), .. } => WorkspaceSource::Published(tip),
        // Beginning again would hide that there was more.
        WorkspaceRemains { was_published: true, .. } => WorkspaceSource::Unrecoverable(WorkspaceLoss::Branch),
        WorkspaceRemains { start_base: Some(StartBase::At(base)), .. } => WorkspaceSource::Base(base),
        WorkspaceRemains { start_base: Some(StartBase::Gone), .. } => {
            WorkspaceSource::Unrecoverable(WorkspaceLoss::Base)
        }
        WorkspaceRemains { start_base: None, .. } => WorkspaceSource::Unrecoverable(WorkspaceLoss::Commits),
    }
}

/// Returns the obstacle for a run whose workspace is gone.
pub fn missing_workspace(run: &str, [source, workspace]: [&str; 2]) -> Blocker {
    Blocker {
        what: format!(
            "the workspace {workspace} is gone; it can be recreated from what {source} has of run {run}, without what was \
             not committed"
        ),
        remedy: "put it back if you have it".to_owned(),
        nature: Transience::Lost,
    }
}

impl WorkspaceLoss {
    /// Returns why the run cannot continue, and what to type; `last` is the last published commit, if it still exists.
    pub fn stop_reason(self, run: &str, [source, workspace]: [&str; 2], last: Option<&str>) -> StopReason {
        let place = quote(source);
        let branch = format!("runner/{run}");
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
