//! `tree.explain`: the core's decision about the next session, in wire format.

use std::sync::Arc;

use protocol::explain::{EndingView, ExplainReply, LeafView, NextView};
use protocol::tree::{Node, TaskTree};
use protocol::view::RunSummary;
use runner_core::committed_state::CommittedState;
use runner_core::iteration::forecast::{Forecast, ForecastInput, selection_steps, simulate_endings};
use runner_core::message::ReceiptSubject;
use runner_core::run::{self, NextStep, RunInputs};
use runner_core::tree;
use runner_core::tree::select::{LeafSelection, select};
use runner_core::verdict::{SessionFinding, SessionTask, TreeSource, verdict_row};

use crate::store::RepoStore;
use crate::worker::{self, node_ref};
use runner_core::run::RunScratch;

/// Explains the next session of a run; state that is in no commit is read from its store.
pub(super) fn explain_next(
    loaded: &worker::CommittedState,
    summary: Option<RunSummary>,
    store: &RepoStore,
) -> ExplainReply {
    let scratch = load_scratch(store, summary.as_ref());
    let inputs = loaded.run_inputs(&scratch);
    let run_state = Arc::new(run::state_on_resume(&inputs, true, 0));
    let resumed = CommittedState { run_state, ..loaded.state.clone() };
    let (input, next, after_resume) = next_step_or_resumed(
        ForecastInput { state: &loaded.state, inputs },
        ForecastInput { state: &resumed, inputs: resumed.run_inputs(&scratch, inputs.now) },
    );
    // The choice of the session does not depend on waiting for a service.
    let task = match run::decide_next(&RunInputs { outages: &[], ..input.inputs }, None, None) {
        NextStep::Continue(task) => Some(task),
        NextStep::Wait(..)
        | NextStep::WaitForPerson(_)
        | NextStep::Pause(_)
        | NextStep::Hold(_)
        | NextStep::End { .. } => None,
    };
    let leaf = match select(&loaded.tree) {
        LeafSelection::Open(leaf) | LeafSelection::Exhausted(leaf) => Some(leaf),
        LeafSelection::Complete => None,
    };
    let endings = task
        .as_ref()
        .map(|task| simulate_endings(&input, task).iter().map(|course| ending_view(&input, task, course)).collect());
    ExplainReply {
        run: loaded.run_state.run_id.clone(),
        summary,
        commit: loaded.commit.to_string(),
        iter: loaded.run_state.next_iter,
        next: next_view(&next),
        after_resume,
        leaf: leaf.map(|leaf| leaf_view(loaded, leaf, task.as_ref())),
        endings: endings.unwrap_or_default(),
    }
}

fn load_scratch(store: &RepoStore, summary: Option<&RunSummary>) -> RunScratch {
    // An unreadable record is reported when the repository is held for it.
    let runs = store.read_repo_file().ok().flatten().map(|file| file.runs).unwrap_or_default();
    let record = runs.into_iter().find(|run| summary.is_some_and(|summary| summary.id == run.id));
    record.map(|run| run.uncommitted).unwrap_or_default()
}

/// Returns what a run does next, as if it had been resumed if it would otherwise be over and resuming helps.
fn next_step_or_resumed<'a>(
    standing: ForecastInput<'a>,
    resumed: ForecastInput<'a>,
) -> (ForecastInput<'a>, NextStep, bool) {
    let next = run::decide_next(&standing.inputs, None, None);
    match (&next, run::decide_next(&resumed.inputs, None, None)) {
        (NextStep::End { .. }, again @ (NextStep::Continue(_) | NextStep::Wait(..))) => (resumed, again, true),
        _ => (standing, next, false),
    }
}

fn leaf_view(loaded: &worker::CommittedState, leaf: &Node, task: Option<&SessionTask>) -> LeafView {
    let node = node_ref(loaded, leaf);
    LeafView {
        steps: selection_steps(&loaded.tree, &node.path),
        role_reason: run::role_reason(&loaded.run_state, leaf, node.path.len() == 1),
        narrowing: task.is_some_and(|task| task.narrowing),
        node,
    }
}

fn ending_view(input: &ForecastInput<'_>, task: &SessionTask, forecast: &Forecast) -> EndingView {
    let outcome = &forecast.outcome;
    let before = input.inputs.tree;
    let after = forecast.after.as_ref().map_or(before, |after| &after.tree);
    let row = verdict_row(outcome.verdict.name());
    let guard = outcome.guard_outcome();
    let subject = ReceiptSubject { run: &task.run, iter: task.iter, node: &task.node, status: row.status, guard };
    let node = tree::find(after, &task.node);
    EndingView {
        ending: forecast.ending,
        verdict: outcome.verdict.name(),
        detail: outcome.verdict.detail(),
        subject: forecast.after.is_some().then(|| subject.line()),
        guard,
        tree_taken: row.tree != TreeSource::FromCommit && outcome.work.finding().is_some_and(SessionFinding::is_legal),
        attempts: node.map_or(task.attempts, |node| node.attempts),
        max_attempts: node.map_or(task.max_attempts, |node| node.max_attempts),
        passes: find_newly_passed(before, after),
        gains: find_gained(before, after),
        next: next_view(&forecast.next),
    }
}

/// Returns the nodes that pass now but did not before, the deepest first.
fn find_newly_passed(before: &TaskTree, after: &TaskTree) -> Vec<String> {
    let old = tree::index(before);
    let passes = |node: &Node| node.passes && old.get(node.id.as_str()).is_some_and(|placed| !placed.node.passes);
    let mut found: Vec<_> = tree::walk(after).into_iter().filter(|placed| passes(placed.node)).collect();
    found.sort_by_key(|placed| std::cmp::Reverse(placed.depth));
    found.into_iter().map(|placed| placed.node.id.clone()).collect()
}

fn find_gained(before: &TaskTree, after: &TaskTree) -> Vec<String> {
    let old = tree::index(before);
    let all = tree::walk(after).into_iter().map(|placed| &placed.node.id);
    all.filter(|id| !old.contains_key(id.as_str())).cloned().collect()
}

fn next_view(next: &NextStep) -> NextView {
    match next {
        NextStep::Continue(task) => NextView::GoesOn { node: task.node.clone(), role: task.role },
        NextStep::Wait(wait, reason) => NextView::Waits { until: wait.until, reason: reason.clone() },
        NextStep::WaitForPerson(reason) => NextView::WaitsForPerson { reason: reason.clone() },
        NextStep::Pause(reason) | NextStep::Hold(reason) => NextView::Pauses { reason: reason.clone() },
        NextStep::End { end, reason } => NextView::Ends { state: end.status(), reason: reason.clone() },
    }
}
