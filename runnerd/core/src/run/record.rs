//! What the daemon remembers of a run: its state, the requests not yet applied, and facts that are in none of its
//! commits.

use jiff::{SignedDuration, Timestamp};
use protocol::path::WirePath;
use protocol::view::StopReason;
use protocol::words::RunStatus;
use serde::{Deserialize, Serialize};

use crate::run::approval::ReviewDecision;
use crate::run::blocker::Blocker;
use crate::run::fallback::{self, ServiceOutage};
use crate::run::usage::ResourceUsage;
use crate::run::wait::WaitPeriod;
use crate::verdict::{SessionTask, StopCause, Verdict};

/// Longest wait during which the machine is kept awake.
const MAX_WAKE: SignedDuration = SignedDuration::from_hours(12);

/// A run as the daemon remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Id of the run.
    pub id: String,
    /// The id under which it was queued, if that was taken when it had its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_as: Option<String>,
    /// The work tree in which it runs.
    pub path: WirePath,
    /// Title of its goal when it was queued.
    pub goal: Option<String>,
    /// The file in a work tree that its goal was read from, if that is not committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal_file: Option<WirePath>,
    /// State of the run.
    pub state: RecordState,
    /// Why it is not running.
    pub reason: Option<StopReason>,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// How it begins; `None` once its start is committed.
    pub beginning: Option<StartSpec>,
    /// What to apply in a separate commit before it continues.
    pub resume: Option<ResumeOrder>,
    /// A request that has not taken effect.
    #[serde(rename = "asked")]
    pub stop_request: Option<StopRequest>,
    /// Facts about its sessions that are not committed.
    pub uncommitted: RunScratch,
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RecordState {
    /// It waits for its turn.
    Queued,
    /// It is being driven, or is first to continue when the daemon has started.
    Running,
    /// A person has stopped it between two iterations.
    Paused,
    /// It continues on its own at a given time.
    WaitsForService(WaitPeriod),
    /// It continues after a person's review.
    WaitsForPerson,
    /// It needs a person's attention first.
    Held,
    /// It has left the queue.
    Over {
        /// How it ended.
        end: RunEnd,
        /// When it ended.
        at: Timestamp,
    },
}

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// The goal is reached.
    Completed,
    /// The selected leaf has no attempts left, or the run no longer makes progress.
    Stuck,
    /// The iterations or another ceiling are used up.
    Limit,
    /// An iteration exceeded its budget.
    TimedOut,
    /// Too many consecutive faults, or something must be configured.
    Failed,
    /// A person has cancelled it.
    Cancelled,
}

impl RunEnd {
    /// Returns the end under its name in the protocol.
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
    /// Returns the state under its name in the protocol.
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

    /// Whether a run in this state waits for a person.
    pub fn needs_person(self) -> bool {
        match self {
            Self::Queued | Self::Running | Self::WaitsForService(_) => false,
            Self::Paused | Self::WaitsForPerson | Self::Held => true,
            Self::Over { end, .. } => !matches!(end, RunEnd::Completed | RunEnd::Cancelled),
        }
    }

    /// Returns whether a run in this state has left the queue.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Over { .. })
    }

    /// Returns when a run left the queue; `None` if it has not.
    pub fn ended_at(self) -> Option<Timestamp> {
        if let Self::Over { at, .. } = self { Some(at) } else { None }
    }

    /// Returns the period it waits for, if it waits.
    pub fn wait(self) -> Option<WaitPeriod> {
        if let Self::WaitsForService(wait) = self { Some(wait) } else { None }
    }

    /// Whether a run continues on its own soon enough to keep the machine awake: it is being driven, or waits for a
    /// time at most twelve hours away.
    pub fn is_active(self, now: Timestamp) -> bool {
        match self {
            Self::Running => true,
            Self::WaitsForService(wait) => wait.is_over(now) || now.duration_until(wait.until) <= MAX_WAKE,
            Self::Queued | Self::Paused | Self::WaitsForPerson | Self::Held | Self::Over { .. } => false,
        }
    }
}

/// A request to a run that has not taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopRequest {
    /// Pause.
    Pause,
    /// End.
    Cancel,
    /// Pause, because only one iteration was requested.
    Step,
}

/// How a run begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartSpec {
    /// Base commit; `None` means the end of the previous run.
    pub base: Option<String>,
    /// Text of a new goal.
    pub goal: Option<String>,
    /// Keep the task tree although the id changes.
    pub keep_tree: bool,
    /// Take over tree and state of the base, which is an iteration's commit.
    pub fork: bool,
    /// Text of the configuration, if the base has none.
    pub config: Option<String>,
    /// What the id was made from, until it is final at the first turn; `None` if the user chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_stem: Option<String>,
}

/// Counters to reset and iterations to grant before a run continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResumeOrder {
    /// Number of iterations to grant.
    pub more: u32,
    /// Whether to reset the counters that stopped the run.
    pub reset: bool,
    /// Parent of the commit that applies this; stored before that commit is made.
    pub from: Option<String>,
    /// Iterations to grant in a later commit: a request that arrives once `from` is stored must not get lost.
    pub then: u32,
}

impl ResumeOrder {
    /// Adds a request to an earlier order, which may already be committed.
    pub fn merged_with(before: Option<Self>, more: u32, reset: bool) -> Self {
        match before {
            None => Self { more, reset, from: None, then: 0 },
            Some(order) if order.from.is_some() => Self { then: order.then.saturating_add(more), ..order },
            Some(order) => Self { more: order.more.saturating_add(more), reset: order.reset || reset, ..order },
        }
    }

    /// Returns what remains to be done once this is committed.
    pub fn remaining(&self) -> Option<Self> {
        (self.then > 0).then_some(Self { more: self.then, reset: false, from: None, then: 0 })
    }
}

/// The next step before an iteration can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunPreparation {
    /// Make sure that the id made from this stem is still free.
    SettleId(String),
    /// Commit the start.
    Begin(StartSpec),
    /// Store the commit from which the run continues.
    AnchorResume,
    /// Commit what the run is resumed with.
    Resume(ResumeOrder),
}

impl RunRecord {
    /// Returns a run that waits for its turn and about which nothing else is known.
    pub fn queued(id: impl Into<String>, path: WirePath, queued_at: Timestamp) -> Self {
        Self {
            id: id.into(),
            queued_as: None,
            path,
            goal: None,
            goal_file: None,
            state: RecordState::Queued,
            reason: None,
            queued_at,
            beginning: None,
            resume: None,
            stop_request: None,
            uncommitted: RunScratch::default(),
        }
    }

    /// Whether it is cancelled, or ends as such once its session has ended.
    pub fn is_cancelled(&self) -> bool {
        self.stop_request == Some(StopRequest::Cancel)
            || matches!(self.state, RecordState::Over { end: RunEnd::Cancelled, .. })
    }

    /// Returns what must be done before the next iteration; `None` if it can be opened.
    pub fn preparation(&self) -> Option<RunPreparation> {
        match (&self.beginning, &self.resume) {
            (Some(StartSpec { id_stem: Some(stem), .. }), _) => Some(RunPreparation::SettleId(stem.clone())),
            (Some(beginning), _) => Some(RunPreparation::Begin(beginning.clone())),
            (None, Some(order)) if order.from.is_none() => Some(RunPreparation::AnchorResume),
            (None, Some(order)) => Some(RunPreparation::Resume(order.clone())),
            (None, None) => None,
        }
    }

    /// Returns the state and its reason as shown to people: a run that is blocked by an obstacle is shown as waiting.
    pub fn shown_status(&self, blocker: Option<&Blocker>) -> (RunStatus, Option<StopReason>) {
        match (self.state, blocker) {
            (RecordState::Running, Some(obstacle)) => (RunStatus::Waiting, Some(obstacle.wait_reason())),
            (state, _) => (state.status(), self.reason.clone()),
        }
    }
}

/// Facts about a run's sessions that are not committed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunScratch {
    /// Kinds of agents whose services were unavailable when last tried.
    pub outages: Vec<ServiceOutage>,
    /// What attempts at the next iteration have used; its commit will include it.
    pub tried: ResourceUsage,
    /// Mark of the last iteration that changed these facts.
    pub followed: Option<String>,
    /// A person's decision on a finished node.
    pub word: Option<ReviewDecision>,
}

/// A settled iteration, as far as it affects uncommitted facts.
#[derive(Debug, Clone, Copy)]
pub struct SettledIteration<'a> {
    /// Its mark, unique to the iteration.
    pub mark: &'a str,
    /// Its task.
    pub task: &'a SessionTask,
    /// How it ended.
    pub verdict: &'a Verdict,
    /// Whether a reviewer produced the verdict.
    pub is_reviewed: bool,
    /// What it has used.
    pub usage: &'a ResourceUsage,
    /// Whether it left a commit.
    pub is_committed: bool,
}

impl RunScratch {
    /// Returns what to keep after an iteration; `None` if nothing changes. Each iteration counts once, because it may
    /// be reported again after a crash.
    pub fn after_iteration(&self, settled: SettledIteration<'_>, now: Timestamp) -> Option<Self> {
        if self.followed.as_deref() == Some(settled.mark) {
            return None;
        }
        let after = Self {
            outages: self.outages_after(settled, now),
            tried: if settled.is_committed { ResourceUsage::default() } else { self.tried.plus(settled.usage) },
            followed: self.followed.clone(),
            word: self.word.clone().filter(|_| is_decision_repeated(settled)),
        };
        (after != *self).then(|| Self { followed: Some(settled.mark.to_owned()), ..after })
    }

    fn outages_after(&self, settled: SettledIteration<'_>, now: Timestamp) -> Vec<ServiceOutage> {
        let SessionTask { kind, reviewer, .. } = settled.task;
        let worker = kind.as_deref().unwrap_or_default();
        let reviewer = reviewer.as_deref().unwrap_or_default();
        if settled.is_reviewed {
            fallback::outages_after_review(&self.outages, worker, reviewer, settled.verdict, now)
        } else {
            fallback::outages_after(&self.outages, worker, settled.verdict, now)
        }
    }

    /// Makes every service eligible for another try at once.
    pub fn retry_services_now(&mut self, now: Timestamp) {
        for outage in &mut self.outages {
            outage.retry_now(now);
        }
    }
}

/// Whether a person's decision is applied again when the run continues, because it was cut off or the guard could not
/// run.
fn is_decision_repeated(settled: SettledIteration<'_>) -> bool {
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
        let first = ResumeOrder { more: 3, reset: true, from: Some("c".repeat(40)), then: 0 };
        let order = ResumeOrder::merged_with(Some(first.clone()), 2, false);
        assert_eq!(order, ResumeOrder { then: 2, ..first.clone() });
        assert_eq!(ResumeOrder::merged_with(Some(order), 4, false), ResumeOrder { then: 6, ..first });
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
