//! Lists the states of a run's branch among which a bisection searches, and what receipts already say about them.
//!
//! A session's own commits belong to its iteration, and a commit that changes only `.runner/` is not a separate state.
//! Which state to test next is not decided here.

use std::collections::BTreeMap;

use protocol::bisect::{BisectPoint, PointKind};

use crate::audit::{AuditPlan, CommitOwner};
use crate::message::{GuardRun, ProcessEnd, Receipt, RunnerCommit};

/// A commit that ends a state of the branch.
#[derive(Debug)]
pub struct BisectCandidate<'a> {
    /// Id of the commit.
    pub commit: &'a str,
    /// Owner of the commit.
    pub owner: CommitOwner<'a>,
    message: &'a [u8],
}

/// Returns the commits that may be states, from the start of the run on; `None` if the start is not available.
pub fn list_candidates(plan: &AuditPlan) -> Option<Vec<BisectCandidate<'_>>> {
    let is_start = |at: usize| {
        let commit = plan.owner(at).and_then(CommitOwner::runner_commit);
        matches!(commit, Some(RunnerCommit::Start(start)) if start.run == plan.run())
    };
    let commits = plan.all_commits();
    let start = (0..commits.len()).find(|at| is_start(*at))?;
    let of = |(at, whose): (usize, CommitOwner<'_>)| (whose != CommitOwner::Agent).then_some(at);
    let found = (start..commits.len()).filter_map(|at| of((at, plan.owner(at)?)));
    let candidate = |at: usize| {
        Some(BisectCandidate { commit: &commits[at].id, owner: plan.owner(at)?, message: &commits[at].message })
    };
    Some(found.filter_map(candidate).collect())
}

impl BisectCandidate<'_> {
    /// Returns the commit whose configuration named the guard, and the guard's exit code, provided that it ran with
    /// exactly the files of this commit.
    pub fn guard_result(&self) -> Option<(&str, i32)> {
        match self.owner.runner_commit()? {
            RunnerCommit::Iteration(receipt) if is_complete(receipt) => {
                Some((&receipt.from, exit_code(receipt.guard_run.as_ref()?)?))
            }
            RunnerCommit::Baseline(baseline, _) if baseline.reverted.is_empty() => {
                Some((baseline.from.as_deref()?, exit_code(baseline.guard_run.as_ref()?)?))
            }
            RunnerCommit::Iteration(_)
            | RunnerCommit::Baseline(..)
            | RunnerCommit::Start(_)
            | RunnerCommit::Resume(_)
            | RunnerCommit::Claim(_)
            | RunnerCommit::Release(_) => None,
        }
    }

    /// Returns the candidate as a state; `known` is the recorded result of the command under test.
    pub fn to_point(&self, files: String, known: Option<i32>) -> BisectPoint {
        let receipt = match self.owner.runner_commit() {
            Some(RunnerCommit::Iteration(receipt)) => Some(receipt),
            _ => None,
        };
        let kind = match (receipt, self.owner) {
            (Some(_), _) => PointKind::Iteration,
            (None, CommitOwner::Runner(_)) => PointKind::Start,
            (None, CommitOwner::Person | CommitOwner::Agent) => PointKind::Person,
        };
        let subject = String::from_utf8_lossy(self.message).lines().next().unwrap_or_default().to_owned();
        BisectPoint {
            commit: self.commit.to_owned(),
            files,
            kind,
            subject,
            iter: receipt.map(|receipt| receipt.iter),
            node: receipt.map(|receipt| receipt.node.clone()),
            title: receipt.and_then(|receipt| receipt.title()),
            from: receipt.map(|receipt| receipt.from.clone()),
            known,
        }
    }
}

/// Whether the guard ran with exactly what is in the commit: it wrote nothing, and nothing was left out or restored.
fn is_complete(receipt: &Receipt) -> bool {
    let apart = [
        &receipt.guard_wrote,
        &receipt.guard_changed,
        &receipt.reverted,
        &receipt.held_back,
        &receipt.dirty_submodules,
    ];
    apart.iter().all(|names| names.is_empty())
}

fn exit_code(run: &GuardRun) -> Option<i32> {
    match run.end {
        ProcessEnd::Exit(code) => Some(code),
        ProcessEnd::Signal(_) => None,
    }
}

/// Drops states that changed no file, and gives each state the result that any receipt records for its files, or none
/// if receipts disagree.
pub fn merge_states(points: Vec<BisectPoint>) -> Vec<BisectPoint> {
    let mut results: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for point in &points {
        results.entry(point.files.clone()).or_default().extend(point.known);
    }
    let agreed = |files: &str| {
        let (first, others) = results.get(files)?.split_first()?;
        others.iter().all(|exit| exit == first).then_some(*first)
    };
    let mut states: Vec<BisectPoint> = Vec::with_capacity(points.len());
    for point in points {
        if states.last().is_none_or(|last| last.files != point.files) {
            states.push(BisectPoint { known: agreed(&point.files), ..point });
        }
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(commit: &str, files: &str, known: Option<i32>) -> BisectPoint {
        let commit = commit.to_owned();
        let files = files.to_owned();
        let subject = String::new();
        let kind = PointKind::Iteration;
        BisectPoint { commit, files, kind, subject, iter: None, node: None, title: None, from: None, known }
    }

    #[test]
    fn what_changes_no_file_is_no_state_and_tells_of_those_with_the_same_files() {
        let points = vec![
            point("start", "x", None),
            point("baseline", "x", Some(0)),
            point("1", "y", None),
            point("2", "y", Some(1)),
            point("3", "x", None),
        ];
        let expected = [point("start", "x", Some(0)), point("1", "y", Some(1)), point("3", "x", Some(0))];
        assert_eq!(merge_states(points), expected);
    }

    #[test]
    fn receipts_that_do_not_agree_tell_nothing() {
        let exits = [0, 1, 0].map(|exit| point("1", "x", Some(exit)));
        assert_eq!(merge_states(exits.to_vec()), [point("1", "x", None)]);
    }
}
