//! The iterations of a run, from the receipts of its commits; times and notices from their records, if available.
//!
//! Anyone can write a commit message. The chain determines which commits are the runner's: from the commit that the
//! daemon's journal names, or else the tip, to a receipt, from there to its From, and so on. Commits between a receipt
//! and its From were made by the session, whatever their messages say.

use std::cell::LazyCell;
use std::fs;
use std::path::Path;

use protocol::meta::IterationMeta;
use protocol::view::IterationView;
use runner_core::iteration::IterationEvent;
use runner_core::message::{GuardFlaky, GuardTests, Receipt, RunnerCommit, first_line};
use runner_git::{CommitInfo, GitError, Id, Repository};

use crate::repo::durable;
use crate::repo::layout::Layout;
use crate::store::RepoStore;
use crate::worker::journal::JournalFile;
use crate::worker::load::{LoadError, last_runner_commit};
use crate::worker::runner_chain::RunnerChain;

/// Adds what only the records of a run's iterations have, if they are available: the durations of phases, the exact time
/// of the end, and whether the commit is the one that was recorded.
pub fn add_recorded_facts(layout: &Layout, views: &mut [IterationView]) {
    let run = views.first().map(|view| view.run.clone());
    // All records are listed only where one is missing.
    let newest = LazyCell::new(|| find_newest_record(layout, run.as_deref()?));
    for view in views {
        let Some(meta) = read_meta(layout, &view.run, view.iter) else {
            // The record of an older iteration may have been removed.
            view.recorded = newest.filter(|newest| *newest < view.iter).map(|_| false);
            continue;
        };
        view.recorded = Some(meta.commit == view.commit);
        view.ended_at = Some(meta.ended_at);
        view.duration_ms = Some(meta.duration_ms());
        view.phases = meta.phases;
    }
}

/// Returns the number of the newest iteration that has a record; `None` if there are no records.
fn find_newest_record(layout: &Layout, run: &str) -> Option<u32> {
    let folders = fs::read_dir(layout.run_records(run)).ok()?;
    folders.flatten().filter_map(|folder| folder.file_name().to_str()?.parse().ok()).max()
}

/// Reads the metadata in an iteration's record, for people; `None` if there is no record.
pub(crate) fn read_meta(layout: &Layout, run: &str, iter: u32) -> Option<IterationMeta> {
    read_meta_in(&layout.iteration(run, iter))
}

/// Reads the metadata in the folder of a record.
pub fn read_meta_in(record: &Path) -> Option<IterationMeta> {
    let text = durable::read(&record.join("meta.json")).ok()??;
    serde_json::from_slice(&text).ok()
}

/// Returns the iterations of a run from its receipts, newest first.
pub fn list_iterations(
    repository: &Repository,
    run: &str,
    tip: Id,
    limit: usize,
) -> Result<Vec<IterationView>, LoadError> {
    last_runner_commit(repository, tip)?;
    let mut chain = RunnerChain::default();
    let commits = repository.first_parents(&tip, limit)?;
    Ok(commits.iter().filter_map(|commit| iteration_view(run, chain.next_runner_commit(commit)?, commit)).collect())
}

/// Returns the receipts of a run with their commits, newest first.
pub fn list_receipts(
    repository: &Repository,
    run: &str,
    tip: Id,
    limit: usize,
) -> Result<Vec<(Id, Receipt)>, GitError> {
    let mut chain = RunnerChain::default();
    let commits = repository.first_parents(&tip, limit)?;
    let receipts = commits.iter().filter_map(|commit| match chain.next_runner_commit(commit)? {
        RunnerCommit::Iteration(receipt) if receipt.run == run => Some((commit.id, *receipt)),
        _ => None,
    });
    Ok(receipts.collect())
}

/// Returns the commit from which the session of the current iteration began, according to the daemon's journal; commits
/// on top of it are the session's. `None` if no iteration of the run is in progress.
pub fn session_base(store: &RepoStore, run: &str) -> Option<Id> {
    let recorded = JournalFile::for_store(store).read().ok()??;
    let is_settled = recorded.entries.iter().any(|entry| matches!(entry.event, IterationEvent::Settled { .. }));
    if recorded.header.run != run || is_settled {
        return None;
    }
    recorded.entries.iter().find_map(|entry| match &entry.event {
        IterationEvent::Opened(task) => task.from.parse().ok(),
        _ => None,
    })
}

/// Returns the view of an iteration of this run, if the runner's commit is one.
pub(crate) fn iteration_view(run: &str, runner_commit: RunnerCommit, commit: &CommitInfo) -> Option<IterationView> {
    match runner_commit {
        RunnerCommit::Iteration(receipt) if receipt.run == run => Some(receipt_view(&receipt, commit)),
        _ => None,
    }
}

/// The detail of an iteration whose session has given no summary: why it ended as it did.
fn verdict_detail(receipt: &Receipt) -> Option<String> {
    receipt.verdict.detail.as_deref().map(first_line).filter(|line| !line.is_empty())
}

fn receipt_view(receipt: &Receipt, commit: &CommitInfo) -> IterationView {
    IterationView {
        run: receipt.run.clone(),
        iter: receipt.iter,
        node: receipt.node.clone(),
        verdict: receipt.verdict.name,
        status: receipt.status,
        guard: receipt.guard,
        commit: Some(commit.id.to_string()),
        title: receipt.title(),
        summary: Some(first_line(&receipt.summary)).filter(|line| !line.is_empty()).or_else(|| verdict_detail(receipt)),
        ended_at: jiff::Timestamp::from_second(commit.time).ok(),
        duration_ms: None,
        usage: receipt.usage.clone().map(|line| line.0),
        agent: receipt.agent.as_ref().map(ToString::to_string),
        tests: receipt.guard_tests.as_ref().map(GuardTests::to_change),
        flaky: receipt.guard_flaky.as_ref().map(GuardFlaky::to_view),
        recorded: None,
        wait: None,
        phases: Vec::new(),
    }
}
