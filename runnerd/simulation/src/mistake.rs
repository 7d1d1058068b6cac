//! Deliberate mistakes of a runner: each must be detected, or the simulation would miss a real one.

use runner_core::iteration::transition::StateAfter;
use runner_core::iteration::{IterationOutcome, Phase};
use runner_core::tree;
use runner_core::verdict::Verdict;

/// A mistake, in the rules or in the code around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlantedMistake {
    /// A red guard counts as green.
    PassRedGuard,
    /// A reviewer's rejection counts as approval.
    PassRejected,
    /// A fault costs an attempt.
    ChargeFault,
    /// An attempt is not charged.
    ChargeNothing,
    /// The session's other changes to the tree are lost.
    LosePlan,
    /// The feedback of all other nodes is lost.
    LoseFeedback,
    /// Consecutive faults are not counted.
    CountNoFaults,
    /// Commits made before a death are not recognized.
    ForgetCommit,
    /// A rejected tree is not saved.
    KeepNoRaw,
    /// History is restored without a rescue.
    RestoreWithoutRescue,
    /// The runner's files are not restored.
    PutNothingBack,
    /// A restarted daemon continues as if nothing had happened.
    ForgetRestart,
    /// The last event before a death is not durable.
    LoseEvent,
    /// The prompt is built from the work tree.
    BriefFromWorkTree,
    /// A reviewer is not shown the changes.
    ReviewOfNothing,
    /// A node passes without the person's review that it requires.
    PassPending,
    /// A node approved by a person passes although it has changed since.
    ApproveChanged,
    /// The guard does not run with the accepted definition.
    GuardWithChanged,
    /// A guard's definition that differs from the accepted one is not reported.
    AnnounceNothing,
    /// Nothing is charged for a guard that was green the second time.
    ForgetSuspects,
}

impl PlantedMistake {
    /// Every mistake.
    pub(crate) const ALL: [Self; 20] = [
        Self::PassRedGuard,
        Self::PassRejected,
        Self::ChargeFault,
        Self::ChargeNothing,
        Self::LosePlan,
        Self::LoseFeedback,
        Self::CountNoFaults,
        Self::ForgetCommit,
        Self::KeepNoRaw,
        Self::RestoreWithoutRescue,
        Self::PutNothingBack,
        Self::ForgetRestart,
        Self::LoseEvent,
        Self::BriefFromWorkTree,
        Self::ReviewOfNothing,
        Self::PassPending,
        Self::ApproveChanged,
        Self::GuardWithChanged,
        Self::AnnounceNothing,
        Self::ForgetSuspects,
    ];

    /// Changes the result of `decide`.
    pub(crate) fn change_phase(mistake: Option<Self>, mut phase: Phase) -> Phase {
        if let Phase::Settle { outcome } = &mut phase {
            let is_passed = match mistake {
                Some(Self::PassRedGuard) => outcome.verdict == Verdict::RedGuard,
                Some(Self::PassRejected) => matches!(outcome.verdict, Verdict::Rejected { .. }),
                Some(Self::PassPending) => outcome.verdict == Verdict::Pending,
                _ => false,
            };
            if is_passed {
                outcome.verdict = Verdict::Accepted;
            }
        }
        phase
    }

    /// Changes the result of `transition::apply`.
    pub(crate) fn change_after(mistake: Option<Self>, mut after: StateAfter, outcome: &IterationOutcome) -> StateAfter {
        let node = &outcome.work.task.node;
        let is_fault = matches!(outcome.verdict, Verdict::Fault { .. });
        match mistake {
            Some(Self::ChargeFault) if is_fault => {
                if let Some(node) = tree::find_mut(&mut after.tree, node) {
                    node.attempts = (node.attempts + 1).min(node.max_attempts);
                }
            }
            Some(Self::ChargeNothing) => {
                if let Some(node) = tree::find_mut(&mut after.tree, node) {
                    node.attempts = outcome.work.task.attempts;
                }
            }
            Some(Self::LosePlan) => {
                tree::for_each_node_mut(&mut after.tree, |parent| {
                    let last = parent.children.last();
                    if last.is_some_and(|last| last.id != *node && !last.passes) && parent.children.len() > 1 {
                        parent.children.pop();
                    }
                });
            }
            Some(Self::LoseFeedback) => after.feedback.nodes.retain(|id, _| id == node),
            Some(Self::CountNoFaults) => after.run_state.consecutive_faults = 0,
            _ => {}
        }
        after
    }
}
