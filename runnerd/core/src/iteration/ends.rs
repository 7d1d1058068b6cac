//! How guards and reviewers ended, as facts. What follows from them is the table's.

use protocol::meta::SessionFailure;
use protocol::state::UsageTotal;
use protocol::words::{Containment, GuardOutcome, ReviewVerdict};
use serde::{Deserialize, Serialize};

use crate::definition::DefinitionDiff;
use crate::digest::Digest;
use crate::fence::one_line;
use crate::policy::{ChangePolicy, Policy};
use crate::usage;

/// How a guard ended, as facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardEnd {
    /// The class of its end.
    pub how: GuardEndKind,
    /// SHA-256 of its output.
    pub digest: Option<String>,
    /// What it printed, reduced.
    pub output: String,
    /// How it rewrote history, where it did; it has been rescued and put back.
    pub history: Option<String>,
    /// Where HEAD was, while the run's branch still contained From; it has been rescued and put back.
    pub elsewhere: Option<String>,
    /// Paths of the runner that it changed, and that were put back.
    pub reverted: Vec<String>,
    /// References of others that it or the session before it moved.
    pub moved_refs: Vec<String>,
    /// Paths outside `.runner/` that it wrote.
    pub wrote: Vec<String>,
    /// Time of the budget that it took, in milliseconds.
    pub elapsed_ms: u64,
    /// Processes that outlived it and were ended.
    pub survivors: u32,
    /// Why its log is not complete, where the disk refused a part of it.
    pub log_fault: Option<String>,
    /// How tightly it was held; none where it did not run.
    pub containment: Option<Containment>,
    /// How the guard's definition differed from the accepted one when the session had ended.
    pub departure: DefinitionDiff,
    /// Whether it ran with the accepted definition, after it was green with the one that the session has left.
    pub with_accepted: bool,
}

/// The class of a guard's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardEndKind {
    /// It exited.
    Exited(i32),
    /// It died of a signal.
    Signaled(i32),
    /// The budget ran out.
    TimedOut,
    /// It could not be started.
    Missing {
        /// Why, with the fix.
        what: String,
    },
    /// It was ended because somebody asked.
    Cut,
    /// Its supervisor was killed, and all that it had started was ended: nobody knows what it would have said.
    Lost,
}

/// The exit code that stands for a guard that was not run, as shells say that a program cannot be executed.
const NOT_RUN_EXIT: i32 = 126;
/// The exit code that stands for a green guard that discarded changes of the session.
const DISCARDED_EXIT: i32 = 125;
/// Most paths that the reason names, and most bytes of each.
const MAX_NAMED: usize = 10;
const MAX_PATH: usize = 200;

/// Says which paths of a change the guard discarded; none if there are none.
pub fn describe_discarded(paths: &[String]) -> Option<String> {
    let named: Vec<String> = paths.iter().take(MAX_NAMED).map(|path| one_line(path, MAX_PATH)).collect();
    let more = paths.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let files = if paths.len() == 1 { "file" } else { "files" };
    let named = named.join(", ");
    (!paths.is_empty()).then(|| {
        format!(
            "The guard discarded {} {files} of this change: {named}{more}. They are restored, and the guard counts as red: it did \
             not check them. A guard must not clean or reset the work tree; a file that is no part of the change belongs in .gitignore.",
            paths.len()
        )
    })
}

impl GuardEnd {
    /// Returns the end of a guard of which nothing else is known.
    pub fn new(how: GuardEndKind) -> Self {
        Self {
            how,
            digest: None,
            output: String::new(),
            history: None,
            elsewhere: None,
            reverted: Vec::new(),
            moved_refs: Vec::new(),
            wrote: Vec::new(),
            departure: DefinitionDiff::default(),
            with_accepted: false,
            elapsed_ms: 0,
            survivors: 0,
            log_fault: None,
            containment: None,
        }
    }

    /// Returns the end of a guard that was not run: the accepted version of a file cannot be restored.
    pub fn not_run(reason: String) -> Self {
        let digest = Some(Digest::compute(reason.as_bytes()).to_string());
        Self { digest, output: reason, ..Self::new(GuardEndKind::Exited(NOT_RUN_EXIT)) }
    }

    /// Returns this end with the paths of the session's change that the guard removed or reverted: a green that is not about
    /// what the session made is red.
    #[must_use]
    pub fn with_discarded(self, paths: &[String]) -> Self {
        match describe_discarded(paths).filter(|_| self.how == GuardEndKind::Exited(0)) {
            Some(reason) => {
                Self { how: GuardEndKind::Exited(DISCARDED_EXIT), output: format!("{reason}\n{}", self.output), ..self }
            }
            None => self,
        }
    }

    /// Returns whether it was green, red or cut off.
    pub fn outcome(&self) -> GuardOutcome {
        match self.how {
            GuardEndKind::Exited(0) => GuardOutcome::Pass,
            GuardEndKind::Exited(_) | GuardEndKind::Signaled(_) => GuardOutcome::Fail,
            GuardEndKind::TimedOut | GuardEndKind::Missing { .. } | GuardEndKind::Cut | GuardEndKind::Lost => GuardOutcome::Skipped,
        }
    }

    /// Returns whether a green guard proves too little: it ran with a definition that no person has accepted.
    pub(super) fn needs_accepted_run(&self, policy: &Policy) -> bool {
        !self.with_accepted && self.departure.effective_policy(policy.on_change) == ChangePolicy::Both
    }

    /// Returns this end with what an earlier run, whose supervisor was lost or whose definition was another, has done
    /// and taken.
    pub(super) fn with_earlier_run(self, earlier: Option<Self>) -> Self {
        let Some(earlier) = earlier else { return self };
        Self {
            reverted: merge_paths(earlier.reverted, &self.reverted),
            wrote: merge_paths(earlier.wrote, &self.wrote),
            moved_refs: if self.moved_refs.is_empty() { earlier.moved_refs } else { self.moved_refs },
            elapsed_ms: earlier.elapsed_ms.saturating_add(self.elapsed_ms),
            survivors: earlier.survivors.saturating_add(self.survivors),
            log_fault: self.log_fault.or(earlier.log_fault),
            containment: self.containment.into_iter().chain(earlier.containment).min(),
            departure: earlier.departure.merged_with(&self.departure),
            ..self
        }
    }
}

/// How a review ended, as facts; of one that was asked more than once, all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewEnd {
    /// The class of its end.
    pub how: ReviewEndKind,
    /// Kind and version of the reviewer.
    pub agent: String,
    /// By which its service knows the session, where the reviewer says so.
    pub session_id: Option<String>,
    /// SHA-256 of its prompt.
    pub prompt: Option<String>,
    /// SHA-256 of its answer as the record has it.
    pub output: Option<String>,
    /// Why it gave no answer, where that was seen.
    pub failure: Option<Box<SessionFailure>>,
    /// Times that a reviewer was asked.
    pub tries: u32,
    /// What the reviewers consumed.
    pub usage: UsageTotal,
    /// What they wrote outside of their record; it is kept and undone.
    pub wrote: Vec<String>,
    /// Paths of the runner that they changed, and that were put back.
    pub reverted: Vec<String>,
    /// References of others that they or who ran before them moved.
    pub moved_refs: Vec<String>,
    /// Time of the budget that they took, in milliseconds.
    pub elapsed_ms: u64,
    /// Processes that outlived them and were ended.
    pub survivors: u32,
    /// Why the log is not complete, where the disk refused a part of it.
    pub log_fault: Option<String>,
    /// How tightly they were held; none where none ran.
    pub containment: Option<Containment>,
}

impl ReviewEnd {
    /// Returns the end of a review of which nothing else is known.
    pub fn new(how: ReviewEndKind) -> Self {
        Self {
            how,
            agent: String::new(),
            session_id: None,
            prompt: None,
            output: None,
            failure: None,
            tries: 0,
            usage: UsageTotal::default(),
            wrote: Vec::new(),
            reverted: Vec::new(),
            moved_refs: Vec::new(),
            elapsed_ms: 0,
            survivors: 0,
            log_fault: None,
            containment: None,
        }
    }

    /// Returns what was decided, where anything was.
    pub fn verdict(&self) -> Option<ReviewVerdict> {
        match self.how {
            ReviewEndKind::Accepted { .. } => Some(ReviewVerdict::Accept),
            ReviewEndKind::Rejected { .. } => Some(ReviewVerdict::Reject),
            ReviewEndKind::Failed { .. }
            | ReviewEndKind::Unavailable { .. }
            | ReviewEndKind::Misconfigured { .. }
            | ReviewEndKind::TimedOut
            | ReviewEndKind::Cut => None,
        }
    }

    /// Returns this end with what reviewers that failed before it have done and taken.
    pub(super) fn with_earlier_reviews(self, failed: Option<Self>) -> Self {
        let Some(failed) = failed else { return self };
        Self {
            tries: failed.tries.saturating_add(self.tries),
            usage: usage::add_usage(&failed.usage, &self.usage),
            wrote: merge_paths(failed.wrote, &self.wrote),
            reverted: merge_paths(failed.reverted, &self.reverted),
            moved_refs: if self.moved_refs.is_empty() { failed.moved_refs } else { self.moved_refs },
            elapsed_ms: failed.elapsed_ms.saturating_add(self.elapsed_ms),
            survivors: failed.survivors.saturating_add(self.survivors),
            containment: self.containment.into_iter().chain(failed.containment).min(),
            ..self
        }
    }
}

/// The class of a review's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewEndKind {
    /// The reviewer accepts.
    Accepted {
        /// What showed it.
        reasons: String,
    },
    /// The reviewer rejects.
    Rejected {
        /// Why.
        reasons: String,
    },
    /// The reviewer gave no valid answer.
    Failed {
        /// What was seen.
        what: String,
    },
    /// The model's service was not available.
    Unavailable {
        /// What it said.
        why: String,
        /// When it can be asked again.
        until: Option<jiff::Timestamp>,
    },
    /// It cannot work until a person changes something.
    Misconfigured {
        /// What, with the fix.
        what: String,
    },
    /// The budget ran out.
    TimedOut,
    /// It was ended because somebody asked.
    Cut,
}

/// Returns both lists as one, in order and without duplicates.
fn merge_paths(mut paths: Vec<String>, more: &[String]) -> Vec<String> {
    paths.extend_from_slice(more);
    paths.sort();
    paths.dedup();
    paths
}
