//! The iterations of a run, from the receipts of its commits; times and notices from their records, as far as those are there.

use std::path::Path;

use protocol::meta::IterationMeta;
use protocol::view::IterationView;
use runner_core::message::{Receipt, RunnerCommit, first_line};

use crate::git::{CommitInfo, Id, Repository};
use crate::repo::durable;
use crate::repo::layout::Layout;

/// Fills in how long iterations and their phases took, and the exact time of their end, as far as their records are there.
pub fn add_durations(layout: &Layout, views: &mut [IterationView]) {
    for view in views {
        let Some(meta) = meta(layout, &view.run, view.iter) else { continue };
        view.ended_at = Some(meta.ended_at);
        view.duration_ms = Some(meta.duration_ms());
        view.phases = meta.phases;
    }
}

/// Reads the facts of an iteration's record, for people; none where there is no record.
pub(crate) fn meta(layout: &Layout, run: &str, iter: u32) -> Option<IterationMeta> {
    meta_in(&layout.iteration(run, iter))
}

/// Reads the facts in the folder of a record.
pub fn meta_in(record: &Path) -> Option<IterationMeta> {
    let text = durable::read(&record.join("meta.json")).ok()??;
    serde_json::from_slice(&text).ok()
}

/// Returns the iterations of a run from its receipts, newest first.
pub fn iterations(repository: &Repository, run: &str, tip: Id, limit: usize) -> Vec<IterationView> {
    let commits = repository.first_parents(&tip, limit).unwrap_or_default();
    commits.iter().filter_map(|commit| iteration(run, commit)).collect()
}

/// Returns what a commit says of an iteration of this run, if it is one's.
pub(crate) fn iteration(run: &str, commit: &CommitInfo) -> Option<IterationView> {
    match RunnerCommit::parse(&commit.message) {
        Ok(RunnerCommit::Iteration(receipt)) if receipt.run == run => Some(view(&receipt, commit)),
        _ => None,
    }
}

fn view(receipt: &Receipt, commit: &CommitInfo) -> IterationView {
    IterationView {
        run: receipt.run.clone(),
        iter: receipt.iter,
        node: receipt.node.clone(),
        verdict: receipt.verdict.name,
        status: receipt.status,
        guard: receipt.guard,
        commit: Some(commit.id.to_string()),
        summary: Some(first_line(&receipt.summary)).filter(|line| !line.is_empty()),
        ended_at: jiff::Timestamp::from_second(commit.time).ok(),
        duration_ms: None,
        usage: receipt.usage.clone().map(|line| line.0),
        agent: receipt.agent.as_ref().map(ToString::to_string),
        wait: None,
        phases: Vec::new(),
    }
}
