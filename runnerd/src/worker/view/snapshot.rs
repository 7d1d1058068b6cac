//! Builds the view that clients see of a run from what is committed and what is live.

use std::sync::Arc;

use protocol::meta::{IterationMeta, SecretFinding};
use protocol::state::UsageTotal;
use protocol::test_record::TestsView;
use protocol::view::{IterationView, NodeRef, OutageView, RepoView, RunSummary, RunView, StopReason};
use protocol::words::Containment;
use runner_core::files::notes;
use runner_core::run::RunRecord;
use runner_core::run::fallback::ServiceOutage;
use runner_core::run::usage;
use runner_core::tree;
use runner_core::tree::select::{LeafSelection, select};
use runner_git::{Id, Repository};
use runner_os::clock;

use crate::repo::layout::Layout;
use crate::store::{RepoFile, RepoStore, repo_id};
use crate::worker::caches::LastLoad;
use crate::worker::integrity::{definition, watched};
use crate::worker::load::{CommittedState, LoadError, load_state};
use crate::worker::pinned_repo::PinnedRepo;
use crate::worker::runner_chain::RunnerChain;
use crate::worker::view::iterations::{add_recorded_facts, iteration_view, read_meta, session_base};
use crate::worker::view::totals::UsageTotals;

/// Number of iterations shown in a status.
const MAX_RECENT: usize = 5;
/// Maximum number of files with secrets shown in a status.
const MAX_SECRETS: usize = 100;
/// Maximum number of notices shown in a status.
const MAX_NOTICES: usize = 40;
/// Number of commits searched for the last iterations.
const MAX_COMMITS: usize = 50;

/// Builds the view of a repository.
pub(crate) fn repo_view(file: &RepoFile, held: Option<StopReason>) -> RepoView {
    RepoView {
        id: file.id.clone(),
        path: file.path.clone(),
        held,
        queue: file.runs.iter().filter(|run| !run.state.is_over()).map(run_summary).collect(),
        source: file.source.as_ref().map(|source| source.path.clone()),
        source_id: file.source.as_ref().map(|source| repo_id(source.common_dir.as_path())),
    }
}

/// Builds the summary of a run for lists.
pub fn run_summary(run: &RunRecord) -> RunSummary {
    RunSummary {
        id: run.id.clone(),
        branch: format!("runner/{}", run.id),
        path: run.path.clone(),
        goal: run.goal.clone(),
        state: run.state.status(),
        needs_you: run.state.needs_person(),
        reason: run.reason.clone(),
        queued_at: run.queued_at,
        ended_at: run.state.ended_at(),
        published: None,
    }
}

/// Lists the kinds of agents that are paused.
pub(crate) fn outage_views(run: &RunRecord) -> Vec<OutageView> {
    let now = clock::now();
    let current = run.uncommitted.outages.iter().filter(|outage| !outage.wait.is_over(now));
    let to_view = |outage: &ServiceOutage| OutageView {
        agent: outage.kind.clone(),
        why: outage.why.clone(),
        until: outage.wait.until,
    };
    current.map(to_view).collect()
}

/// Builds the view of a run that has no commits yet.
pub(crate) fn blank_view(run: &RunRecord, containment: Containment) -> RunView {
    RunView {
        summary: run_summary(run),
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
        tests: TestsView::default(),
        flakes: Vec::new(),
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

/// The view of a run between two iterations.
#[derive(Debug, Clone)]
pub(crate) struct RunSnapshot {
    /// The view.
    pub(crate) view: RunView,
    /// Time budget of an iteration in milliseconds; 0 if the configuration cannot be read.
    pub(crate) budget_ms: u64,
}

/// Builds the view of a run from the tip of its branch, or its last valid state; blank if nothing can be read.
pub(crate) fn snapshot_run(
    store: &RepoStore,
    run: &RunRecord,
    blank: &RunView,
    totals: &mut UsageTotals,
    last_load: &LastLoad,
) -> RunSnapshot {
    let mut read = || {
        let path = run.path.as_path();
        let repository = match last_load.repository(path) {
            Some(open) => open,
            None => {
                PinnedRepo::for_work_tree(store, path).try_open().ok()?.or_else(|| Repository::discover(path).ok())?
            }
        };
        let tip = repository.find_branch_tip(&format!("runner/{}", run.id)).ok()??;
        let session_base = session_base(store, &run.id);
        let loaded = match last_load.load(&repository, tip) {
            Ok(loaded) => loaded,
            // Nothing before it can be read either, unless a session made that commit.
            Err(LoadError::Rules { .. }) if session_base.is_none() => return None,
            Err(_) => last_valid_state(&repository, tip).map(Arc::new)?,
        };
        let belongs_to_run = loaded.run_state.run_id.as_deref() == Some(run.id.as_str());
        // Commits on top of it are made by the current session.
        let settled = session_base.unwrap_or(tip);
        let recent = recent_iterations(&repository, &run.id, settled);
        let mut view = state_view(blank.clone(), &loaded, &run.uncommitted.tried);
        view.recent = recent;
        let known = definition::known_definition(&repository, &loaded).ok();
        view.guard_changed = known.map(|known| known.definition.changed_paths()).unwrap_or_default();
        view.guard = known.map(|known| watched::to_guard_files(&known.watched_files));
        if let Some(node) = view.node.as_mut().filter(|_| totals.advance(&repository, &run.id, settled).is_ok()) {
            node.usage = Some(usage::add_usage(&totals.node_usage(&node.id), &run.uncommitted.tried.usage));
        }
        view.notices = recent_notices(&Layout::new(repository.work_dir()), &view.recent);
        view.secrets = recent_secrets(&Layout::new(repository.work_dir()), &view.recent);
        belongs_to_run.then_some(RunSnapshot { view, budget_ms: loaded.policy.budget_ms })
    };
    read().unwrap_or_else(|| RunSnapshot { view: blank.clone(), budget_ms: 0 })
}

/// Returns the last valid state before `tip`: a person's commit may be invalid, for which the run is held.
fn last_valid_state(repository: &Repository, tip: Id) -> Option<CommittedState> {
    let commits = repository.first_parents(&tip, MAX_COMMITS).ok()?;
    commits.iter().skip(1).find_map(|commit| load_state(repository, commit.id).ok())
}

fn state_view(blank: RunView, loaded: &CommittedState, retry_usage: &usage::ResourceUsage) -> RunView {
    let (leaves_passed, leaves_total) = loaded.tree.root.leaves();
    let state = &loaded.run_state;
    let node = match select(&loaded.tree) {
        LeafSelection::Open(leaf) | LeafSelection::Exhausted(leaf) => Some(leaf),
        LeafSelection::Complete => None,
    };
    let questions = runner_core::files::questions::count_open(loaded.text(Layout::QUESTIONS));
    // A person may have reworded it since the run was started.
    let goal = loaded.goal.headline().or_else(|| blank.summary.goal.clone());
    RunView {
        summary: RunSummary { goal, ..blank.summary.clone() },
        node: node.map(|leaf| node_ref(loaded, leaf)),
        leaves_passed,
        leaves_total,
        iteration: state.next_iter,
        usage: usage::add_usage(&state.usage, &retry_usage.usage),
        list_price: loaded.config.list_price_note(),
        elapsed_ms: state.elapsed_ms.saturating_add(retry_usage.elapsed_ms),
        baseline: loaded.feedback.baseline.as_ref().map(|baseline| baseline.guard),
        questions: u32::try_from(questions).unwrap_or(u32::MAX),
        held_back: state.held_back.clone(),
        reverted: state.reverted.clone(),
        tests: TestsView::from(&*loaded.tests),
        flakes: state.flakes.clone(),
        notes: notes::unused_notes(loaded.text(Layout::NOTES), &state.notes_used)
            .into_iter()
            .map(|note| note.id)
            .collect(),
        ..blank
    }
}

/// Describes a node and the role of a session on it.
pub fn node_ref(loaded: &CommittedState, leaf: &protocol::tree::Node) -> NodeRef {
    let path = tree::path_to(&loaded.tree, &leaf.id);
    NodeRef {
        id: leaf.id.clone(),
        role: Some(runner_core::run::session_role(&loaded.run_state, leaf, path.len() == 1)),
        path,
        title: leaf.title.clone(),
        attempts: leaf.attempts,
        max_attempts: leaf.max_attempts,
        usage: None,
    }
}

/// Returns the last iterations, newest first, as far as their commits can be read.
fn recent_iterations(repository: &Repository, run: &str, tip: Id) -> Vec<IterationView> {
    let mut views = Vec::new();
    let mut chain = RunnerChain::default();
    let read = repository.visit_first_parents(&tip, MAX_COMMITS, |commit| {
        views.extend(chain.next_runner_commit(&commit).and_then(|found| iteration_view(run, found, &commit)));
        views.len() >= MAX_RECENT
    });
    if let Err(error) = read {
        tracing::debug!(%error, run, "failed to read the last iterations");
    }
    add_recorded_facts(&Layout::new(repository.work_dir()), &mut views);
    views
}

/// Returns which files of these iterations contain secrets, if their records are available.
fn recent_secrets(layout: &Layout, views: &[IterationView]) -> Vec<SecretFinding> {
    let mut secrets: Vec<SecretFinding> = Vec::new();
    for found in views.iter().filter_map(|view| read_meta(layout, &view.run, view.iter)).flat_map(|meta| meta.secrets) {
        if secrets.len() < MAX_SECRETS && !secrets.contains(&found) {
            secrets.push(found);
        }
    }
    secrets
}

/// Returns other notices of these iterations, if their records are available.
fn recent_notices(layout: &Layout, views: &[IterationView]) -> Vec<String> {
    // What the last iteration has changed is in its run state.
    let last = views.first().map(|view| view.iter);
    let metas = views.iter().filter_map(|view| read_meta(layout, &view.run, view.iter));
    let notices =
        metas.flat_map(|IterationMeta { iter, moved_refs, log_faults, dirty_submodules, reverted, hidden, .. }| {
            let in_git_dir = reverted.into_iter().filter(move |path| path.starts_with(".git/") && last != Some(iter));
            let restored = in_git_dir.map(move |path| format!("iteration {iter} changed {path}, which was put back"));
            let moved = moved_refs.into_iter().map(move |moved| format!("iteration {iter} moved {moved}"));
            let uncommitted =
                move |path| format!("after iteration {iter} the submodule {path} has work that is not committed");
            let hidden =
                hidden.into_iter().map(move |path| format!("iteration {iter} ran without {path}, which is back"));
            restored
                .chain(hidden)
                .chain(moved)
                .chain(dirty_submodules.into_iter().map(uncommitted))
                .chain(log_faults.into_iter().map(move |fault| format!("iteration {iter}: incomplete {fault}")))
        });
    notices.take(MAX_NOTICES).collect()
}
