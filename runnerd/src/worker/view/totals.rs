//! What each node of a run has consumed, added up from the receipts of its branch.
//!
//! Kept in memory and recomputed if missing: no decision depends on it, and a clone yields the same.

use std::collections::BTreeMap;

use protocol::state::UsageTotal;
use protocol::view::IterationView;
use runner_core::message::RunnerCommit;
use runner_core::run::usage;
use runner_git::{GitError, Id, Repository};

use crate::worker::runner_chain::RunnerChain;
use crate::worker::view::iterations::iteration_view;

/// Number of commits read at a time.
const BATCH_SIZE: usize = 64;
/// Maximum number of commits searched.
const MAX_COMMITS: usize = 100_000;

/// The totals of the nodes of one run.
#[derive(Debug, Default)]
pub(crate) struct UsageTotals {
    run: String,
    /// The commit up to which receipts are counted.
    tip: Option<Id>,
    nodes: BTreeMap<String, UsageTotal>,
}

impl UsageTotals {
    /// Counts the receipts of a run up to a commit: those since the last call, or all of them.
    pub(crate) fn advance(&mut self, repository: &Repository, run: &str, tip: Id) -> Result<(), GitError> {
        if self.run != run {
            *self = Self { run: run.to_owned(), ..Self::default() };
        }
        let Some((new, is_continued)) = self.iterations_since_tip(repository, tip)? else { return Ok(()) };
        if !is_continued {
            self.nodes.clear();
        }
        for (node, used) in new.into_iter().filter_map(|view| Some((view.node, view.usage?))) {
            let total = self.nodes.entry(node).or_default();
            *total = usage::add_usage(total, &used);
        }
        self.tip = Some(tip);
        Ok(())
    }

    /// Returns what a node has consumed.
    pub(crate) fn node_usage(&self, node: &str) -> UsageTotal {
        self.nodes.get(node).cloned().unwrap_or_default()
    }

    /// Returns the iterations since the last call, and whether they continue from it; `None` if there is nothing new.
    fn iterations_since_tip(
        &self,
        repository: &Repository,
        tip: Id,
    ) -> Result<Option<(Vec<IterationView>, bool)>, GitError> {
        let mut views = Vec::new();
        let mut next = Some(tip);
        let mut scanned = 0;
        let mut chain = RunnerChain::default();
        while let Some(from) = next.filter(|_| scanned < MAX_COMMITS) {
            let batch = repository.first_parents(&from, BATCH_SIZE)?;
            next = batch.last().filter(|_| batch.len() == BATCH_SIZE).and_then(|last| last.parents.first().copied());
            scanned += batch.len();
            for commit in batch {
                match chain.next_runner_commit(&commit) {
                    _ if self.tip == Some(commit.id) => return Ok((commit.id != tip).then_some((views, true))),
                    Some(RunnerCommit::Start(milestone)) if milestone.run == self.run => {
                        return Ok(Some((views, false)));
                    }
                    found => views.extend(found.and_then(|found| iteration_view(&self.run, found, &commit))),
                }
            }
        }
        Ok(Some((views, false)))
    }
}
