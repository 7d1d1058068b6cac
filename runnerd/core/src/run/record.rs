//! What the daemon remembers of a run: its state, what was asked of it, and what no commit of it holds.

use jiff::{SignedDuration, Timestamp};
use protocol::path::WirePath;
use protocol::view::StopReason;
use protocol::words::RunStatus;
use serde::{Deserialize, Serialize};

use crate::approval::ReviewDecision;
use crate::fallback::{self, ServiceOutage};
use crate::obstacle::Blocker;
use crate::usage::ResourceUsage;
use crate::verdict::{StopCause, SessionTask, Verdict};
use crate::wait::WaitPeriod;

/// The longest wait through which the machine is kept awake.
const MAX_WAKE: SignedDuration = SignedDuration::from_hours(12);

/// One run as the daemon remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Id of the run.
    pub id: String,
    /// The work tree it runs in.
    pub path: WirePath,
    /// What its goal was called when it was put into the queue.
    pub goal: Option<String>,
    /// Its state.
    pub state: RecordState,
    /// Why it is not running.
    pub reason: Option<StopReason>,
    /// When it was put into the queue.
    pub queued_at: Timestamp,
    /// How it begins; gone once its start is committed.
    pub beginning: Option<StartSpec>,
    /// What is to be done in a commit of its own before it goes on.
    pub resume: Option<ResumeOrder>,
    /// What was asked and has not taken effect.
    pub asked: Option<StopRequest>,
    /// What is known of its sessions that no commit holds.
    pub uncommitted: RunScratch,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RecordState {
    /// It waits for its turn.
    Queued,
    /// It is being driven, or goes on first when the daemon has started.
    Running,
    /// A person has stopped it between two iterations.
    Paused,
    /// It goes on by itself at a time.
    WaitsForService(WaitPeriod),
    /// It goes on when a person has reviewed what is done.
    WaitsForPerson,
    /// It needs the attention of a person first.
    Held,
    /// It has left the queue.
    Over {
        /// How it has ended.
        end: RunEnd,
        /// When.
        at: Timestamp,
    },
}

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// The goal is reached.
    Completed,
    /// The selected leaf has no attempts left, or nothing moves any more.
    Stuck,
    /// The iterations or another ceiling are used up.
    Limit,
    /// An iteration ran out of its budget.
    TimedOut,
    /// Faults in a row, or something that must be configured.
    Failed,
    /// A person has ended it.
    Cancelled,
}

impl RunEnd {
    /// Returns the end as the protocol names it.
    pub fn status(self) -> RunStatus {
        match self {
            Self::Completed => RunStatus::Completed,
            Self::Stuck => RunStatus::Stuck,
            Self::Limit => RunStatus::Limit,
            Self::TimedOut => RunStatus::TimedOut,
            Self::Failed => RunStatus::Failed,
            Self::Cancelled => RunStatus::Cancelled,
        }
    }
}

impl RecordState {
    /// Returns the state as the protocol names it.
    pub fn status(self) -> RunStatus {
        match self {
            Self::Queued => RunStatus::Queued,
            Self::Running => RunStatus::Running,
            Self::Paused => RunStatus::Paused,
            Self::WaitsForService(_) | Self::WaitsForPerson => RunStatus::Waiting,
            Self::Held => RunStatus::Held,
            Self::Over { end, .. } => end.status(),
        }
    }

    /// Returns whether a run in this state has left the queue.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Over { .. })
    }

    /// Returns when a run has left the queue.
    pub fn ended_at(self) -> Option<Timestamp> {
        if let Self::Over { at, .. } = self { Some(at) } else { None }
    }

    /// Returns the time that is waited for.
    pub fn wait(self) -> Option<WaitPeriod> {
        if let Self::WaitsForService(wait) = self { Some(wait) } else { None }
    }

    /// Tells whether a run goes on by itself soon enough for the machine to be kept awake: it is driven, or waits for a
    /// time that is at most twelve hours away.
    pub fn is_active(self, now: Timestamp) -> bool {
        match self {
            Self::Running => true,
            Self::WaitsForService(wait) => wait.is_over(now) || now.duration_until(wait.until) <= MAX_WAKE,
            Self::Queued | Self::Paused | Self::WaitsForPerson | Self::Held | Self::Over { .. } => false,
        }
    }
}

/// What was asked of a run and has not taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopRequest {
    /// To pause.
    Pause,
    /// To end.
    Cancel,
    /// To pause, because one iteration is all that was asked for.
    Step,
}

/// How a run begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartSpec {
    /// Commit of the base; none: the end of the run before it.
    pub base: Option<String>,
    /// Text of a new goal.
    pub goal: Option<String>,
    /// Keep the task tree although the id changes.
    pub keep_tree: bool,
    /// Take over tree and state of the base, which is an iteration's commit.
    pub fork: bool,
}

/// Counters to reset and iterations to grant before a run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResumeOrder {
    /// Iterations to grant.
    pub more: u32,
    /// Whether the counters that stopped it are reset.
    pub reset: bool,
    /// Commit upon which this is done; kept before it is.
    pub from: Option<String>,
    /// Iterations to grant in a commit after it: what is asked once `from` is kept must not be lost in it.
    pub then: u32,
}

impl ResumeOrder {
    /// Adds what is asked now to what was ordered before and may be committed already.
    pub fn merged_with(before: Option<Self>, more: u32, reset: bool) -> Self {
        match before {
            None => Self { more, reset, from: None, then: 0 },
            Some(order) if order.from.is_some() => Self { then: order.then.saturating_add(more), ..order },
            Some(order) => Self { more: order.more.saturating_add(more), reset: order.reset || reset, ..order },
        }
    }

    /// Returns what is left to do when this is committed.
    pub fn remaining(&self) -> Option<Self> {
        (self.then > 0).then_some(Self { more: self.then, reset: false, from: None, then: 0 })
    }
}

/// The next step of what is done before an iteration can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunPreparation {
    /// The start is to be committed.
    Begin(StartSpec),
    /// It is to be kept upon which commit the run goes on.
    AnchorResume,
    /// What the run goes on with is to be committed.
    Resume(ResumeOrder),
}

impl RunRecord {
    /// Returns a run that waits for its turn, and of which nothing else is known.
    pub fn queued(id: impl Into<String>, path: WirePath, queued_at: Timestamp) -> Self {
        Self {
            id: id.into(),
            path,
            goal: None,
            state: RecordState::Queued,
            reason: None,
            queued_at,
            beginning: None,
            resume: None,
            asked: None,
            uncommitted: RunScratch::default(),
        }
    }

    /// Returns what is to be done before the next iteration; nothing when it can be opened.
    pub fn preparation(&self) -> Option<RunPreparation> {
        match (&self.beginning, &self.resume) {
            (Some(beginning), _) => Some(RunPreparation::Begin(beginning.clone())),
            (None, Some(order)) if order.from.is_none() => Some(RunPreparation::AnchorResume),
            (None, Some(order)) => Some(RunPreparation::Resume(order.clone())),
            (None, None) => None,
        }
    }

    /// Returns the state and its reason as people see them: one that an obstacle keeps from going on waits.
    pub fn shown_status(&self, blocker: Option<&Blocker>) -> (RunStatus, Option<StopReason>) {
        match (self.state, blocker) {
            (RecordState::Running, Some(obstacle)) => (RunStatus::Waiting, Some(obstacle.wait_reason())),
            (state, _) => (state.status(), self.reason.clone()),
        }
    }
}

/// What is known of a run's sessions that no commit holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunScratch {
    /// Kinds of agents whose services were not available when they were last asked.
    pub outages: Vec<ServiceOutage>,
    /// What tries of the next iteration have spent; it goes into its commit.
    pub tried: ResourceUsage,
    /// Mark of the last iteration that has changed this.
    pub followed: Option<String>,
    /// A person's word on a finished node.
    pub word: Option<ReviewDecision>,
}

/// An iteration that was settled, as far as it changes what no commit holds.
#[derive(Debug, Clone, Copy)]
pub struct SettledIteration<'a> {
    /// Its mark, which no other iteration has.
    pub mark: &'a str,
    /// What it was about.
    pub task: &'a SessionTask,
    /// How it ended.
    pub verdict: &'a Verdict,
    /// Whether a reviewer has made the verdict.
    pub is_reviewed: bool,
    /// What it has spent.
    pub usage: &'a ResourceUsage,
    /// Whether it has left a commit.
    pub is_committed: bool,
}

impl RunScratch {
    /// Returns what is kept after an iteration; nothing where that is as before. An iteration counts once: it may be
    /// followed again after a crash.
    pub fn after_iteration(&self, settled: SettledIteration<'_>, now: Timestamp) -> Option<Self> {
        if self.followed.as_deref() == Some(settled.mark) {
            return None;
        }
        let after = Self {
            outages: self.outages_after(settled, now),
            tried: if settled.is_committed { ResourceUsage::default() } else { self.tried.plus(settled.usage) },
            followed: self.followed.clone(),
            word: self.word.clone().filter(|_| is_decision_kept(settled)),
        };
        (after != *self).then(|| Self { followed: Some(settled.mark.to_owned()), ..after })
    }

    fn outages_after(&self, settled: SettledIteration<'_>, now: Timestamp) -> Vec<ServiceOutage> {
        let SessionTask { kind, reviewer, .. } = settled.task;
        let (worker, reviewer) = (kind.as_deref().unwrap_or_default(), reviewer.as_deref().unwrap_or_default());
        if settled.is_reviewed {
            fallback::outages_after_review(&self.outages, (worker, reviewer), settled.verdict, now)
        } else {
            fallback::outages_after(&self.outages, worker, settled.verdict, now)
        }
    }

    /// Has every service asked again at once.
    pub fn retry_services_now(&mut self, now: Timestamp) {
        for outage in &mut self.outages {
            outage.retry_now(now);
        }
    }
}

/// Whether a person's word is said again when the run goes on: it was cut off, or the guard could not be asked.
fn is_decision_kept(settled: SettledIteration<'_>) -> bool {
    let is_cancelled = matches!(settled.verdict, Verdict::Interrupted { by: StopCause::Cancel });
    let is_cut_off = matches!(
        settled.verdict,
        Verdict::Interrupted { .. } | Verdict::Timeout { .. } | Verdict::Misconfigured { .. }
    );
    !settled.is_committed && is_cut_off && !is_cancelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_granted_already_is_not_granted_again() {
        let kept = ResumeOrder { more: 3, reset: true, from: Some("c".repeat(40)), then: 0 };
        let asked = ResumeOrder::merged_with(Some(kept.clone()), 2, false);
        assert_eq!(asked, ResumeOrder { then: 2, ..kept.clone() });
        assert_eq!(ResumeOrder::merged_with(Some(asked), 4, false), ResumeOrder { then: 6, ..kept });
    }

    #[test]
    fn what_is_asked_before_anything_is_committed_is_one_grant() {
        let first = ResumeOrder::merged_with(None, 3, false);
        assert_eq!(first.remaining(), None);
        let both = ResumeOrder::merged_with(Some(first), 2, true);
        assert_eq!(both, ResumeOrder { more: 5, reset: true, from: None, then: 0 });
    }

    #[test]
    fn a_grant_after_another_is_left_when_that_is_committed() {
        let order = ResumeOrder { more: 3, reset: true, from: Some("c".repeat(40)), then: 2 };
        assert_eq!(order.remaining(), Some(ResumeOrder { more: 2, reset: false, from: None, then: 0 }));
    }
}
