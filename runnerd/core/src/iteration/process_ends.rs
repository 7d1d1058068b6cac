//! Facts about how guards and reviewers ended. What follows from them is decided by the table.

use protocol::meta::SessionFailure;
use protocol::state::UsageTotal;
use protocol::words::{Containment, GuardOutcome, ReviewVerdict};
use runner_config::ChangePolicy;
use serde::{Deserialize, Serialize};

use crate::guard::definition::DefinitionDiff;
use crate::guard::flakes::FlakyGuard;
use crate::guard::test_results::TestResults;
use crate::message::NameList;
use crate::policy::Policy;
use crate::run::usage;
use crate::scope;
use crate::text::digest::Digest;
use crate::text::fence::one_line;

/// How a guard ended, as facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardEnd {
    /// Class of the end.
    pub how: GuardEndKind,
    /// SHA-256 of its output.
    pub digest: Option<String>,
    /// What it printed, reduced.
    pub output: String,
    /// The tests that it named; `None` if it named none, or if what it printed is not known as a whole.
    pub tests: Option<TestResults>,
    /// Whether a person has to review what it passed: tests are lost, and its definition is not the accepted one.
    pub review_required: bool,
    /// The failures that known programs reported, each with its file if it is known.
    pub failing: NameList,
    /// If it was red: files for which the session is charged, even if it is green the second time.
    pub suspects: Vec<String>,
    /// The red run before it on the same files, if it was green then.
    pub flaky: Option<FlakyGuard>,
    /// How it rewrote history, if it did; the rewritten commits are rescued and the branch is restored.
    pub history: Option<String>,
    /// Where HEAD pointed if it had left the run's branch, which still contained From; it is rescued and HEAD is
    /// restored.
    pub elsewhere: Option<String>,
    /// Protected paths that it changed and that were restored.
    pub reverted: Vec<String>,
    /// Those of them that are outside of the scope of the run.
    pub outside: Vec<String>,
    /// References outside the run that it, or the session before it, moved.
    pub moved_refs: Vec<String>,
    /// Paths outside `.runner/` that it wrote.
    pub wrote: Vec<String>,
    /// Time charged to the budget, in milliseconds.
    pub elapsed_ms: u64,
    /// Number of processes that outlived it and were ended.
    pub survivors: u32,
    /// Why its log is incomplete, if the disk refused part of it.
    pub log_fault: Option<String>,
    /// Why the reports that name its tests are not read, if it passed.
    pub report_fault: Option<String>,
    /// How tightly it was contained; `None` if it did not run.
    pub containment: Option<Containment>,
    /// How the guard's definition differed from the accepted one when the session ended.
    pub departure: DefinitionDiff,
    /// Whether it ran with the accepted definition, after being green with the one that the session left.
    pub with_accepted: bool,
}

/// Class of a guard's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardEndKind {
    /// It exited with this code.
    Exited(i32),
    /// It died of this signal.
    Signaled(i32),
    /// The budget ran out.
    TimedOut,
    /// It could not be started.
    Missing {
        /// Why, with the fix.
        what: String,
    },
    /// It was ended on request.
    Cut,
    /// Its supervisor was killed and everything it had started was ended: the result is unknown.
    Lost,
}

/// Exit code that stands for a guard that was not run; shells use it for a program that cannot be executed.
const NOT_RUN_EXIT: i32 = 126;
/// Exit code that stands for a green guard that discarded changes of the session, or wrote outside of the scope.
const REFUSED_EXIT: i32 = 125;
/// Most paths that the reason names.
const MAX_NAMED: usize = 10;
const MAX_PATH: usize = 200;

/// What the guard discarded of a session's change.
#[derive(Debug, Default)]
pub struct DiscardedChange {
    /// Files that it removed or reset; they are restored.
    pub files: Vec<String>,
    /// Submodules that it removed or moved back. What is in them is in no commit of this repository, so they stay as
    /// the guard left them.
    pub submodules: Vec<String>,
    /// Files and nested repositories that it removed and that are held back from the commit: they are lost.
    pub held_back: Vec<String>,
}

impl DiscardedChange {
    /// Describes it; `None` if nothing was discarded.
    pub fn describe(&self) -> Option<String> {
        let Self { files, submodules, held_back } = self;
        let parts = [
            (name_paths(files, "file"), "files are restored"),
            (name_paths(submodules, "submodule"), "submodules stay as the guard left them"),
            (name_paths(held_back, "held-back file"), "held-back files cannot be restored"),
        ];
        let (what, outcome): (Vec<String>, Vec<&str>) =
            parts.into_iter().filter_map(|(what, outcome)| Some((what?, outcome))).unzip();
        if what.is_empty() {
            return None;
        }
        let outcome = outcome.join(", ");
        let outcome = match outcome.as_str() {
            "files are restored" => "They are restored".to_owned(),
            _ => format!("{}{}", outcome[..1].to_uppercase(), &outcome[1..]),
        };
        Some(format!(
            "The guard discarded {} of this change. {outcome}, and the guard counts as red: it did not check them. A guard must not clean or reset the work tree; a \
             file that is no part of the change belongs in .gitignore.",
            what.join(" and ")
        ))
    }
}

/// Counts and names paths; `None` if there are none.
fn name_paths(paths: &[String], kind: &str) -> Option<String> {
    let named: Vec<String> = paths.iter().take(MAX_NAMED).map(|path| one_line(path, MAX_PATH)).collect();
    let more = paths.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let plural = if paths.len() == 1 { "" } else { "s" };
    (!paths.is_empty()).then(|| format!("{} {kind}{plural} ({}{more})", paths.len(), named.join(", ")))
}

impl GuardEnd {
    /// Returns the end of a guard about which nothing else is known.
    pub fn new(how: GuardEndKind) -> Self {
        Self {
            how,
            digest: None,
            output: String::new(),
            tests: None,
            review_required: false,
            failing: NameList::default(),
            suspects: Vec::new(),
            flaky: None,
            history: None,
            elsewhere: None,
            reverted: Vec::new(),
            outside: Vec::new(),
            moved_refs: Vec::new(),
            wrote: Vec::new(),
            departure: DefinitionDiff::default(),
            with_accepted: false,
            elapsed_ms: 0,
            survivors: 0,
            log_fault: None,
            report_fault: None,
            containment: None,
        }
    }

    /// Returns the end of a guard that was not run, because the accepted version of a file cannot be restored.
    pub fn not_run(reason: String) -> Self {
        let digest = Some(Digest::compute(reason.as_bytes()).to_string());
        Self { digest, output: reason, ..Self::new(GuardEndKind::Exited(NOT_RUN_EXIT)) }
    }

    /// Returns this end with what the guard removed or reverted of the session's change: a green result that
    /// does not cover what the session made is red.
    #[must_use]
    pub fn with_discarded(self, discarded: &DiscardedChange) -> Self {
        self.refused_for(discarded.describe())
    }

    /// Returns this end with the paths outside of the scope of the run that the guard wrote and that were restored: a
    /// green result that depends on them is red.
    #[must_use]
    pub fn with_outside(self, outside: &[String]) -> Self {
        self.refused_for(scope::describe_guard_writes(outside))
    }

    /// Returns a red end for a reason, if there is one and the guard was green.
    fn refused_for(self, reason: Option<String>) -> Self {
        match reason.filter(|_| self.how == GuardEndKind::Exited(0)) {
            Some(reason) => {
                Self { how: GuardEndKind::Exited(REFUSED_EXIT), output: format!("{reason}\n{}", self.output), ..self }
            }
            None => self,
        }
    }

    /// Returns whether the guard was green, red or cut off.
    pub fn outcome(&self) -> GuardOutcome {
        match self.how {
            GuardEndKind::Exited(0) => GuardOutcome::Pass,
            GuardEndKind::Exited(_) | GuardEndKind::Signaled(_) => GuardOutcome::Fail,
            GuardEndKind::TimedOut | GuardEndKind::Missing { .. } | GuardEndKind::Cut | GuardEndKind::Lost => {
                GuardOutcome::Skipped
            }
        }
    }

    /// Returns whether a green guard proves too little, because it ran with a definition that no person has accepted.
    pub(super) fn needs_accepted_run(&self, policy: &Policy) -> bool {
        !self.with_accepted && self.departure.effective_policy(policy.on_change) == ChangePolicy::Both
    }

    /// Returns this end combined with the effects and cost of an earlier run, whose supervisor was lost or whose
    /// definition was not the accepted one.
    pub(super) fn with_earlier_run(self, earlier: Option<Self>) -> Self {
        let Some(earlier) = earlier else { return self };
        let is_green = self.outcome() == GuardOutcome::Pass;
        // Of a changed definition, what it names of the tests is what counts: it may leave some out.
        let (tests, review_required) = match earlier.tests {
            Some(tests) if self.with_accepted && !earlier.with_accepted => (Some(tests), earlier.review_required),
            _ => (self.tests, self.review_required),
        };
        Self {
            tests,
            review_required,
            reverted: merge_paths(earlier.reverted, &self.reverted),
            outside: merge_paths(earlier.outside, &self.outside),
            wrote: merge_paths(earlier.wrote, &self.wrote),
            moved_refs: if self.moved_refs.is_empty() { earlier.moved_refs } else { self.moved_refs },
            elapsed_ms: earlier.elapsed_ms.saturating_add(self.elapsed_ms),
            survivors: earlier.survivors.saturating_add(self.survivors),
            log_fault: self.log_fault.or(earlier.log_fault),
            report_fault: self.report_fault.or(earlier.report_fault),
            containment: self.containment.into_iter().chain(earlier.containment).min(),
            departure: earlier.departure.merged_with(&self.departure),
            flaky: self.flaky.or(earlier.flaky.filter(|_| is_green)),
            ..self
        }
    }

    /// Returns whether it is run once more on the same files: it was red, it has changed none of them, and there is as
    /// much time left as it took.
    pub(super) fn needs_second_run(&self, policy: &Policy, remaining_ms: u64) -> bool {
        let is_red = self.outcome() == GuardOutcome::Fail && self.history.is_none() && self.elsewhere.is_none();
        let has_run = self.containment.is_some();
        policy.flakes && is_red && has_run && self.wrote.is_empty() && self.elapsed_ms <= remaining_ms
    }

    /// Returns the end of a second run on the same files, combined with the red one before it.
    pub(super) fn with_red_run(self, red: Option<Self>) -> Self {
        let Some(red) = red else { return self };
        let is_green = match self.outcome() {
            GuardOutcome::Fail => return self.with_earlier_run(Some(red)),
            GuardOutcome::Pass => true,
            // Ended for somebody, or without a result: then it is as if it had not been run.
            GuardOutcome::Skipped if self.how == GuardEndKind::Cut => return self.with_earlier_run(Some(red)),
            GuardOutcome::Skipped => false,
        };
        let flaky = is_green.then(|| FlakyGuard { failing: red.failing.clone(), suspects: red.suspects.clone() });
        if is_green && red.suspects.is_empty() {
            return Self { flaky, ..self.with_earlier_run(Some(red)) };
        }
        let history = self.history.clone();
        let elsewhere = self.elsewhere.clone();
        Self { flaky, history, elsewhere, ..red.with_earlier_run(Some(self)) }
    }
}

/// How a review ended, as facts; if it took several tries, all of them together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewEnd {
    /// Class of the end.
    pub how: ReviewEndKind,
    /// Kind and version of the reviewer.
    pub agent: String,
    /// Id by which the reviewer's service knows the session, if the reviewer reports one.
    pub session_id: Option<String>,
    /// SHA-256 of its prompt.
    pub prompt: Option<String>,
    /// SHA-256 of its answer, as recorded.
    pub output: Option<String>,
    /// Why it gave no answer, if that was seen.
    pub failure: Option<Box<SessionFailure>>,
    /// Number of times a reviewer was run.
    pub tries: u32,
    /// What the reviewers consumed.
    pub usage: UsageTotal,
    /// What they wrote outside of their record; it is kept aside and reverted.
    pub wrote: Vec<String>,
    /// Protected paths that they changed and that were restored.
    pub reverted: Vec<String>,
    /// Paths of the work tree that were moved away while they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// References outside the run that they, or the processes before them, moved.
    pub moved_refs: Vec<String>,
    /// Time charged to the budget, in milliseconds.
    pub elapsed_ms: u64,
    /// Number of processes that outlived them and were ended.
    pub survivors: u32,
    /// Why the log is incomplete, if the disk refused part of it.
    pub log_fault: Option<String>,
    /// How tightly they were contained; `None` if none ran.
    pub containment: Option<Containment>,
}

impl ReviewEnd {
    /// Returns the end of a review about which nothing else is known.
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
            hidden: Vec::new(),
            moved_refs: Vec::new(),
            elapsed_ms: 0,
            survivors: 0,
            log_fault: None,
            containment: None,
        }
    }

    /// Returns the reviewer's decision, if there is one.
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

    /// Returns this end combined with the effects and cost of the reviewers that failed before it.
    pub(super) fn with_earlier_reviews(self, failed: Option<Self>) -> Self {
        let Some(failed) = failed else { return self };
        Self {
            tries: failed.tries.saturating_add(self.tries),
            usage: usage::add_usage(&failed.usage, &self.usage),
            wrote: merge_paths(failed.wrote, &self.wrote),
            reverted: merge_paths(failed.reverted, &self.reverted),
            hidden: merge_paths(failed.hidden, &self.hidden),
            moved_refs: if self.moved_refs.is_empty() { failed.moved_refs } else { self.moved_refs },
            elapsed_ms: failed.elapsed_ms.saturating_add(self.elapsed_ms),
            survivors: failed.survivors.saturating_add(self.survivors),
            containment: self.containment.into_iter().chain(failed.containment).min(),
            ..self
        }
    }
}

/// Class of a review's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewEndKind {
    /// The reviewer accepts.
    Accepted {
        /// The reviewer's evidence.
        reasons: String,
    },
    /// The reviewer rejects.
    Rejected {
        /// The reviewer's reasons.
        reasons: String,
    },
    /// The reviewer gave no valid answer.
    Failed {
        /// What was observed.
        what: String,
    },
    /// The model's service was unavailable.
    Unavailable {
        /// What the service reported.
        why: String,
        /// When it can be tried again, if known.
        until: Option<jiff::Timestamp>,
    },
    /// The reviewer cannot work until a person changes something.
    Misconfigured {
        /// What has to change, with the fix.
        what: String,
    },
    /// The budget ran out.
    TimedOut,
    /// The review was ended on request.
    Cut,
}

/// Returns both lists as one, in order and without duplicates.
fn merge_paths(mut paths: Vec<String>, more: &[String]) -> Vec<String> {
    paths.extend_from_slice(more);
    paths.sort();
    paths.dedup();
    paths
}
