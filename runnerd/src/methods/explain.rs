//! `tree.explain`: what the core makes of the next session, in the words of the wire.

use protocol::explain::{EndingView, ExplainReply, LeafView, NextView};
use protocol::state::RunState;
use protocol::tree::{Node, TaskTree};
use protocol::view::RunSummary;
use runner_core::explain::{Course, Ground, courses, steps};
use runner_core::message::Subject;
use runner_core::run::{self, Next, Standing};
use runner_core::select::{Selection, select};
use runner_core::tree;
use runner_core::verdict::{Finding, Task, TreeTaken, row};

use crate::repo::layout::Layout;
use crate::store::Store;
use crate::worker::{Loaded, node_ref};
use runner_core::run::Uncommitted;

/// Explains the next session of a run; what no commit holds of it is read from its store.
pub(super) fn explain(loaded: &Loaded, summary: Option<RunSummary>, store: &Store) -> ExplainReply {
    let uncommitted = uncommitted(store, summary.as_ref());
    let standing = loaded.standing(&uncommitted);
    let resumed = run::on_resume(&standing, true, 0);
    let (standing, next, after_resume) = if_resumed(standing, &resumed);
    // Who is asked does not depend on whether a service is waited for.
    let task = match run::next(&Standing { outages: &[], ..standing }, None, None) {
        Next::GoOn(task) => Some(task),
        Next::Wait(..) | Next::WaitForPerson(_) | Next::Pause(_) | Next::Hold(_) | Next::End { .. } => None,
    };
    let leaf = match select(&loaded.tree) {
        Selection::Open(leaf) | Selection::Exhausted(leaf) => Some(leaf),
        Selection::Complete => None,
    };
    let ground = Ground { standing, progress: loaded.text(Layout::PROGRESS) };
    let endings =
        task.as_ref().map(|task| courses(&ground, task).iter().map(|course| ending(&ground, task, course)).collect());
    ExplainReply {
        run: loaded.run_state.run_id.clone(),
        summary,
        commit: loaded.commit.to_string(),
        iter: loaded.run_state.next_iter,
        next: view(&next),
        after_resume,
        leaf: leaf.map(|leaf| leaf_view(loaded, leaf, task.as_ref())),
        endings: endings.unwrap_or_default(),
    }
}

fn uncommitted(store: &Store, summary: Option<&RunSummary>) -> Uncommitted {
    // A record that cannot be read is told where the repository is held for it.
    let runs = store.read().ok().flatten().map(|file| file.runs).unwrap_or_default();
    let known = runs.into_iter().find(|run| summary.is_some_and(|summary| summary.id == run.id));
    known.map(|run| run.uncommitted).unwrap_or_default()
}

/// Returns what a run does next: as if it had been resumed, where it would be over otherwise and resuming helps.
fn if_resumed<'a>(standing: Standing<'a>, resumed: &'a RunState) -> (Standing<'a>, Next, bool) {
    let next = run::next(&standing, None, None);
    let then = Standing { run_state: resumed, ..standing };
    match (&next, run::next(&then, None, None)) {
        (Next::End { .. }, again @ (Next::GoOn(_) | Next::Wait(..))) => (then, again, true),
        _ => (standing, next, false),
    }
}

fn leaf_view(loaded: &Loaded, leaf: &Node, task: Option<&Task>) -> LeafView {
    let node = node_ref(loaded, leaf);
    LeafView {
        steps: steps(&loaded.tree, &node.path),
        role_reason: run::role_reason(&loaded.run_state, leaf, node.path.len() == 1),
        narrowing: task.is_some_and(|task| task.narrowing),
        node,
    }
}

fn ending(ground: &Ground<'_>, task: &Task, course: &Course) -> EndingView {
    let (outcome, before) = (&course.outcome, ground.standing.tree);
    let after = course.after.as_ref().map_or(before, |after| &after.tree);
    let row = row(outcome.verdict.name());
    let guard = outcome.guard_outcome();
    let subject = Subject { run: &task.run, iter: task.iter, node: &task.node, status: row.status, guard };
    let node = tree::find(after, &task.node);
    EndingView {
        ending: course.ending,
        verdict: outcome.verdict.name(),
        detail: outcome.verdict.detail(),
        subject: course.after.is_some().then(|| subject.line()),
        guard,
        tree_taken: row.tree != TreeTaken::Froms && outcome.work.finding().is_some_and(Finding::is_legal),
        attempts: node.map_or(task.attempts, |node| node.attempts),
        max_attempts: node.map_or(task.max_attempts, |node| node.max_attempts),
        passes: newly_passed(before, after),
        gains: gained(before, after),
        next: view(&course.next),
    }
}

/// Returns the nodes that pass now and did not, the deepest first.
fn newly_passed(before: &TaskTree, after: &TaskTree) -> Vec<String> {
    let old = tree::index(before);
    let passes = |node: &Node| node.passes && old.get(node.id.as_str()).is_some_and(|placed| !placed.node.passes);
    let mut found: Vec<_> = tree::walk(after).into_iter().filter(|placed| passes(placed.node)).collect();
    found.sort_by_key(|placed| std::cmp::Reverse(placed.depth));
    found.into_iter().map(|placed| placed.node.id.clone()).collect()
}

fn gained(before: &TaskTree, after: &TaskTree) -> Vec<String> {
    let old = tree::index(before);
    let all = tree::walk(after).into_iter().map(|placed| &placed.node.id);
    all.filter(|id| !old.contains_key(id.as_str())).cloned().collect()
}

fn view(next: &Next) -> NextView {
    match next {
        Next::GoOn(task) => NextView::GoesOn { node: task.node.clone(), role: task.role },
        Next::Wait(wait, reason) => NextView::Waits { until: wait.until, reason: reason.clone() },
        Next::WaitForPerson(reason) => NextView::WaitsForPerson { reason: reason.clone() },
        Next::Pause(reason) | Next::Hold(reason) => NextView::Pauses { reason: reason.clone() },
        Next::End { end, reason } => NextView::Ends { state: end.status(), reason: reason.clone() },
    }
}
