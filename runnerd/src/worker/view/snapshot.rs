//! What clients see of a run, made from what is committed and what is live.

use std::sync::Arc;

use protocol::meta::{IterationMeta, SecretSeen};
use protocol::state::UsageTotal;
use protocol::view::{IterationView, NodeRef, OutageView, RepoView, RunSummary, RunView, StopReason};
use protocol::words::Containment;
use runner_core::fallback::Outage;
use runner_core::run::RunRecord;
use runner_core::select::{Selection, select};
use runner_core::{notes, tree, usage};

use crate::clock;
use crate::git::{Id, Repository};
use crate::repo::layout::Layout;
use crate::store::{RepoFile, Store, repo_id};
use crate::worker::caches::LastLoad;
use crate::worker::integrity::{definition, watched};
use crate::worker::load::{LoadError, Loaded, load};
use crate::worker::trusted::Trusted;
use crate::worker::view::iterations::{Chain, add_durations, began_at, iteration, meta};
use crate::worker::view::totals::Totals;

/// Iterations shown in a status.
const RECENT: usize = 5;
/// Files with secrets shown in a status.
const MAX_SECRETS: usize = 100;
/// Notices shown in a status.
const MAX_NOTICES: usize = 40;
/// Commits looked through for the last iterations.
const MAX_COMMITS: usize = 50;

/// Describes a repository.
pub(crate) fn repo_view(file: &RepoFile, held: Option<StopReason>) -> RepoView {
    RepoView {
        id: file.id.clone(),
        path: file.path.clone(),
        held,
        queue: file.runs.iter().filter(|run| !run.state.is_over()).map(summary).collect(),
        source: file.source.as_ref().map(|source| source.path.clone()),
        source_id: file.source.as_ref().map(|source| repo_id(source.common_dir.as_path())),
    }
}

/// Describes a run for lists.
pub fn summary(run: &RunRecord) -> RunSummary {
    RunSummary {
        id: run.id.clone(),
        branch: format!("runner/{}", run.id),
        path: run.path.clone(),
        goal: run.goal.clone(),
        state: run.state.status(),
        reason: run.reason.clone(),
        queued_at: run.queued_at,
        ended_at: run.state.ended_at(),
        published: None,
    }
}

/// Describes the kinds of agents that are not asked now.
pub(crate) fn outages(run: &RunRecord) -> Vec<OutageView> {
    let now = clock::now();
    let lasting = run.uncommitted.outages.iter().filter(|outage| !outage.wait.is_over(now));
    let seen =
        |outage: &Outage| OutageView { agent: outage.kind.clone(), why: outage.why.clone(), until: outage.wait.until };
    lasting.map(seen).collect()
}

/// Describes a run of which nothing is committed yet.
pub(crate) fn blank(run: &RunRecord, containment: Containment) -> RunView {
    RunView {
        summary: summary(run),
        wait_until: run.state.wait().map(|wait| wait.until),
        outages: Vec::new(),
        phase: None,
        node: None,
        leaves_passed: 0,
        leaves_total: 0,
        iteration: 1,
        usage: UsageTotal::default(),
        list_price: None,
        elapsed_ms: 0,
        baseline: None,
        recent: Vec::new(),
        questions: 0,
        held_back: Vec::new(),
        reverted: Vec::new(),
        guard_changed: Vec::new(),
        guard: None,
        secrets: Vec::new(),
        notices: Vec::new(),
        containment,
        pending: None,
        notes: Vec::new(),
        changes: Vec::new(),
        git_wait: None,
    }
}

/// What is seen of a run between two iterations.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// The view.
    pub(crate) view: RunView,
    /// Budget of an iteration, in milliseconds; 0 where the configuration cannot be read.
    pub(crate) budget_ms: u64,
}

/// Describes a run from the tip of its branch, or from what was last valid on it; blank where nothing can be read.
pub(crate) fn of_run(
    store: &Store,
    run: &RunRecord,
    blank: &RunView,
    (totals, last_load): (&mut Totals, &LastLoad),
) -> Snapshot {
    let mut read = || {
        let path = run.path.as_path();
        let repository = match last_load.repository(path) {
            Some(open) => open,
            None => Trusted::of(store, path).repository().ok()?.or_else(|| Repository::discover(path).ok())?,
        };
        let tip = repository.branch(&format!("runner/{}", run.id)).ok()??;
        let is_at_work = began_at(store, &run.id);
        let loaded = match last_load.load(&repository, tip) {
            Ok(loaded) => loaded,
            // Nothing before it can be read either, unless a session has written it.
            Err(LoadError::Rules { .. }) if is_at_work.is_none() => return None,
            Err(_) => last_valid(&repository, tip).map(Arc::new)?,
        };
        let is_runs = loaded.run_state.run_id.as_deref() == Some(run.id.as_str());
        // What lies upon it is a session's that goes on.
        let settled = is_at_work.unwrap_or(tip);
        let recent = recent(&repository, &run.id, settled);
        let mut view = of_state(blank.clone(), &loaded, &run.uncommitted.tried);
        view.recent = recent;
        let known = definition::known(&repository, &loaded).ok();
        view.guard_changed = known.map(|known| known.guarded.changed()).unwrap_or_default();
        view.guard = known.map(|known| watched::shown(&known.watched));
        if let Some(node) = view.node.as_mut().filter(|_| totals.advance(&repository, &run.id, settled).is_ok()) {
            node.usage = Some(usage::sum(&totals.of(&node.id), &run.uncommitted.tried.usage));
        }
        view.notices = notices_in(&Layout::new(repository.work_dir()), &view.recent);
        view.secrets = secrets_in(&Layout::new(repository.work_dir()), &view.recent);
        is_runs.then_some(Snapshot { view, budget_ms: loaded.policy.budget_ms })
    };
    read().unwrap_or_else(|| Snapshot { view: blank.clone(), budget_ms: 0 })
}

/// Returns what the last commit before `tip` has that is valid: a person's may not be, and the run is held for that.
fn last_valid(repository: &Repository, tip: Id) -> Option<Loaded> {
    let commits = repository.first_parents(&tip, MAX_COMMITS).ok()?;
    commits.iter().skip(1).find_map(|commit| load(repository, commit.id).ok())
}

fn of_state(blank: RunView, loaded: &Loaded, tried: &usage::Spent) -> RunView {
    let (leaves_passed, leaves_total) = loaded.tree.root.leaves();
    let state = &loaded.run_state;
    let node = match select(&loaded.tree) {
        Selection::Open(leaf) | Selection::Exhausted(leaf) => Some(leaf),
        Selection::Complete => None,
    };
    let questions = runner_core::questions::open(loaded.text(Layout::QUESTIONS));
    // A person may have reworded it since the run was started.
    let goal = loaded.goal.headline().or_else(|| blank.summary.goal.clone());
    RunView {
        summary: RunSummary { goal, ..blank.summary.clone() },
        node: node.map(|leaf| node_ref(loaded, leaf)),
        leaves_passed,
        leaves_total,
        iteration: state.next_iter,
        usage: usage::sum(&state.usage, &tried.usage),
        list_price: loaded.config.list_price(),
        elapsed_ms: state.elapsed_ms.saturating_add(tried.elapsed_ms),
        baseline: loaded.feedback.baseline.as_ref().map(|baseline| baseline.guard),
        questions: u32::try_from(questions).unwrap_or(u32::MAX),
        held_back: state.held_back.clone(),
        reverted: state.reverted.clone(),
        notes: notes::unused(loaded.text(Layout::NOTES), &state.notes_used).into_iter().map(|note| note.id).collect(),
        ..blank
    }
}

/// Describes a node and what a session on it would be asked to be.
pub fn node_ref(loaded: &Loaded, leaf: &protocol::tree::Node) -> NodeRef {
    let path = tree::path(&loaded.tree, &leaf.id);
    NodeRef {
        id: leaf.id.clone(),
        role: Some(runner_core::run::role(&loaded.run_state, leaf, path.len() == 1)),
        path,
        title: leaf.title.clone(),
        attempts: leaf.attempts,
        max_attempts: leaf.max_attempts,
        usage: None,
    }
}

/// Returns the last iterations, newest first, as far as commits can be read.
fn recent(repository: &Repository, run: &str, tip: Id) -> Vec<IterationView> {
    let (mut views, mut chain) = (Vec::new(), Chain::default());
    let read = repository.first_parents_until(&tip, MAX_COMMITS, |commit| {
        views.extend(chain.runners(&commit).and_then(|told| iteration(run, told, &commit)));
        views.len() >= RECENT
    });
    if let Err(error) = read {
        tracing::debug!(%error, run, "the last iterations are not shown");
    }
    add_durations(&Layout::new(repository.work_dir()), &mut views);
    views
}

/// Returns which files of these iterations hold secrets, as far as their records are there.
fn secrets_in(layout: &Layout, views: &[IterationView]) -> Vec<SecretSeen> {
    let mut seen: Vec<SecretSeen> = Vec::new();
    for found in views.iter().filter_map(|view| meta(layout, &view.run, view.iter)).flat_map(|meta| meta.secrets) {
        if seen.len() < MAX_SECRETS && !seen.contains(&found) {
            seen.push(found);
        }
    }
    seen
}

/// Returns what else is to be told of these iterations, as far as their records are there.
fn notices_in(layout: &Layout, views: &[IterationView]) -> Vec<String> {
    let metas = views.iter().filter_map(|view| meta(layout, &view.run, view.iter));
    let told = metas.flat_map(|IterationMeta { iter, moved_refs, log_faults, dirty_submodules, .. }| {
        let moved = moved_refs.into_iter().map(move |moved| format!("iteration {iter} moved {moved}"));
        let uncommitted = move |path| format!("iteration {iter} left work uncommitted inside of the submodule {path}");
        moved
            .chain(dirty_submodules.into_iter().map(uncommitted))
            .chain(log_faults.into_iter().map(move |fault| format!("iteration {iter}: incomplete {fault}")))
    });
    told.take(MAX_NOTICES).collect()
}
