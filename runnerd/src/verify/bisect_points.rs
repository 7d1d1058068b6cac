//! The states of a run's branch, for finding the change that broke a command.
//!
//! Only reads; which commits are states, and what receipts mean, is decided by the rules.

use std::collections::BTreeMap;

use protocol::bisect::BisectPoint;
use runner_core::bisect::{BisectCandidate, list_candidates, merge_states};
use runner_git::{Id, Repository};
use tokio_util::sync::CancellationToken;

use super::branch_audit::check_rules;
use super::{VerifyError, VerifyTarget, plan_audit};
use crate::repo::layout::Layout;
use crate::worker::load_config;

/// Returns the states of the branch, oldest first; empty if the start of the run is not here. `command` is the command
/// in question.
pub fn list_bisect_points(
    repository: &Repository,
    target: &VerifyTarget,
    command: &[String],
    stop: &CancellationToken,
) -> Result<Option<Vec<BisectPoint>>, VerifyError> {
    let plan = plan_audit(repository, target, stop)?;
    check_rules(&plan)?;
    let Some(candidates) = list_candidates(&plan) else { return Ok(None) };
    let mut guards = GuardMatcher { repository, command, cache: BTreeMap::new() };
    let mut points = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        if stop.is_cancelled() {
            return Err(VerifyError::Interrupted);
        }
        let files = repository.code_tree(&parse_id(candidate.commit)?)?.to_string();
        points.push(candidate.to_point(files, guards.reported_exit(&candidate)?));
    }
    Ok(Some(merge_states(points)))
}

/// Determines at which commits the guard is the command in question.
struct GuardMatcher<'a> {
    repository: &'a Repository,
    command: &'a [String],
    /// By the text of a configuration.
    cache: BTreeMap<Vec<u8>, bool>,
}

impl GuardMatcher<'_> {
    /// Returns the exit code that a receipt records for the command.
    fn reported_exit(&mut self, candidate: &BisectCandidate<'_>) -> Result<Option<i32>, VerifyError> {
        let Some((from, exit)) = candidate.guard_result() else { return Ok(None) };
        Ok(self.is_guard_at(&parse_id(from)?)?.then_some(exit))
    }

    fn is_guard_at(&mut self, from: &Id) -> Result<bool, VerifyError> {
        let text = self.repository.read_file(from, Layout::CONFIG)?.unwrap_or_default();
        if let Some(known) = self.cache.get(&text) {
            return Ok(*known);
        }
        // An unreadable configuration says nothing about a command.
        let is_guard = load_config(self.repository, *from).is_ok_and(|config| config.guard.command == self.command);
        self.cache.insert(text, is_guard);
        Ok(is_guard)
    }
}

fn parse_id(commit: &str) -> Result<Id, VerifyError> {
    commit.parse().map_err(|_| VerifyError::InvalidCommit(commit.to_owned()))
}
