//! The outcome of a run, derived from how it ended and the results of its checks. Pure.

use std::fmt;

use protocol::words::RunStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a run of a case came out.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// The run completed and every check holds.
    #[default]
    Success,
    /// The run completed and a check does not hold.
    Fail,
    /// The run says that it is stuck.
    Stuck,
    /// The run used up its iterations, its money or its tokens.
    Limit,
    /// An iteration, or the run as a whole, ran out of time.
    TimedOut,
    /// Nothing can be said about the agent: run, daemon or harness failed, or somebody interrupted it.
    Error,
    /// The machine lacks something that the case requires; nothing was run.
    Skipped,
}

impl Outcome {
    /// Every outcome, in the order used by reports.
    pub(crate) const ALL: [Self; 7] =
        [Self::Success, Self::Fail, Self::Stuck, Self::Limit, Self::TimedOut, Self::Error, Self::Skipped];

    /// Returns its name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Fail => "fail",
            Self::Stuck => "stuck",
            Self::Limit => "limit",
            Self::TimedOut => "timed_out",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How a run ended, before anything was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// The daemon reports a state in which the run does not continue on its own, and why.
    Run(RunStatus, Option<String>),
    /// The case's own time limit, in seconds, passed.
    OutOfTime(u64),
    /// The user interrupted the harness.
    Interrupted,
    /// Daemon, client or harness failed.
    Failed(String),
}

/// An outcome and the sentence that explains it, if needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunJudgement {
    pub(crate) outcome: Outcome,
    pub(crate) reason: Option<String>,
}

/// Judges a run; `failed` names the checks that do not hold.
pub(crate) fn judge_run(end: &RunEnd, failed: &[&str]) -> RunJudgement {
    let judgement = |outcome, reason: Option<String>| RunJudgement { outcome, reason };
    match end {
        RunEnd::Interrupted => judgement(Outcome::Error, Some("interrupted".into())),
        RunEnd::Failed(why) => judgement(Outcome::Error, Some(why.clone())),
        RunEnd::OutOfTime(seconds) => judgement(Outcome::TimedOut, Some(format!("the case's {seconds} s were over"))),
        RunEnd::Run(RunStatus::Completed, _) if failed.is_empty() => judgement(Outcome::Success, None),
        RunEnd::Run(RunStatus::Completed, _) => {
            judgement(Outcome::Fail, Some(format!("does not hold: {}", failed.join("; "))))
        }
        RunEnd::Run(RunStatus::Stuck, why) => judgement(Outcome::Stuck, why.clone()),
        RunEnd::Run(RunStatus::Limit, why) => judgement(Outcome::Limit, why.clone()),
        RunEnd::Run(RunStatus::TimedOut, why) => judgement(Outcome::TimedOut, why.clone()),
        RunEnd::Run(state, why) => {
            let why = why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            judgement(Outcome::Error, Some(format!("the run is {state}{why}")))
        }
    }
}

/// Returns whether a run came out as its case expects: `fail` must come from failed checks, every other outcome
/// requires that all checks hold.
pub(crate) fn is_met(outcome: Outcome, expected: Outcome, failed_checks: usize) -> bool {
    outcome == expected && (matches!(expected, Outcome::Fail | Outcome::Error | Outcome::Skipped) || failed_checks == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome_of(state: RunStatus, failed: &[&str]) -> Outcome {
        judge_run(&RunEnd::Run(state, None), failed).outcome
    }

    #[test]
    fn a_completed_run_is_judged_by_its_checks() {
        assert_eq!(outcome_of(RunStatus::Completed, &[]), Outcome::Success);
        assert_eq!(outcome_of(RunStatus::Completed, &["a"]), Outcome::Fail);
    }

    #[test]
    fn another_end_is_its_own_outcome_whatever_the_checks_say() {
        for failed in [&[][..], &["a"]] {
            assert_eq!(outcome_of(RunStatus::Stuck, failed), Outcome::Stuck);
            assert_eq!(outcome_of(RunStatus::Limit, failed), Outcome::Limit);
            assert_eq!(outcome_of(RunStatus::TimedOut, failed), Outcome::TimedOut);
            assert_eq!(judge_run(&RunEnd::OutOfTime(5), failed).outcome, Outcome::TimedOut);
        }
    }

    #[test]
    fn whatever_says_nothing_of_the_agent_is_an_error_with_its_reason() {
        for state in [RunStatus::Failed, RunStatus::Cancelled, RunStatus::Held, RunStatus::Waiting, RunStatus::Paused] {
            let judged = judge_run(&RunEnd::Run(state, Some("why".into())), &[]);
            assert_eq!(judged.outcome, Outcome::Error);
            assert_eq!(judged.reason, Some(format!("the run is {state}: why")));
        }
        assert_eq!(judge_run(&RunEnd::Interrupted, &[]).reason.as_deref(), Some("interrupted"));
        assert_eq!(judge_run(&RunEnd::Failed("x".into()), &[]).outcome, Outcome::Error);
    }

    #[test]
    fn an_honest_stuck_is_met_only_where_its_checks_hold() {
        assert!(is_met(Outcome::Stuck, Outcome::Stuck, 0));
        assert!(!is_met(Outcome::Stuck, Outcome::Stuck, 1));
        assert!(!is_met(Outcome::Success, Outcome::Stuck, 0));
        assert!(is_met(Outcome::Fail, Outcome::Fail, 1));
    }
}
