//! The states of a run's branch, for the search for what broke a command.
//!
//! Reads; which commits are states, and what receipts say, is decided by the rules.

use std::collections::BTreeMap;

use protocol::bisect::BisectPoint;
use runner_core::bisect::{Candidate, candidates, states};
use tokio_util::sync::CancellationToken;

use super::read::refuse_other_rules;
use super::{Target, VerifyError, plan};
use crate::git::{Id, Repository};
use crate::repo::layout::Layout;
use crate::worker::load_config;

/// Returns the states of the branch, oldest first; none where the start of the run is not here. `command` is what is asked about.
pub fn points(
    repository: &Repository,
    (target, command): (&Target, &[String]),
    stop: &CancellationToken,
) -> Result<Option<Vec<BisectPoint>>, VerifyError> {
    let plan = plan(repository, target, stop)?;
    refuse_other_rules(&plan)?;
    let Some(candidates) = candidates(&plan) else { return Ok(None) };
    let mut guards = Guards { repository, command, known: BTreeMap::new() };
    let mut points = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        if stop.is_cancelled() {
            return Err(VerifyError::Interrupted);
        }
        let files = repository.code_of(&id(candidate.commit)?)?.to_string();
        points.push(candidate.point(files, guards.told(&candidate)?));
    }
    Ok(Some(states(points)))
}

/// At which commits the guard is the command that is asked about.
struct Guards<'a> {
    repository: &'a Repository,
    command: &'a [String],
    /// By the text of a configuration.
    known: BTreeMap<Vec<u8>, bool>,
}

impl Guards<'_> {
    /// Returns the exit code that a receipt tells of the command.
    fn told(&mut self, candidate: &Candidate<'_>) -> Result<Option<i32>, VerifyError> {
        let Some((from, exit)) = candidate.told() else { return Ok(None) };
        Ok(self.is_guard_at(&id(from)?)?.then_some(exit))
    }

    fn is_guard_at(&mut self, from: &Id) -> Result<bool, VerifyError> {
        let text = self.repository.read(from, Layout::CONFIG)?.unwrap_or_default();
        if let Some(known) = self.known.get(&text) {
            return Ok(*known);
        }
        // What cannot be read tells nothing of a command.
        let is_guard = load_config(self.repository, *from).is_ok_and(|config| config.guard.command == self.command);
        self.known.insert(text, is_guard);
        Ok(is_guard)
    }
}

fn id(commit: &str) -> Result<Id, VerifyError> {
    commit.parse().map_err(|_| VerifyError::NoCommit(commit.to_owned()))
}
