//! Runs as described by their branches alone: no worker is asked, and nothing is registered.

use jiff::Timestamp;
use protocol::branch::{BranchState, BranchView};
use protocol::error::{ErrorData, ErrorKind};
use protocol::request::AtRun;
use protocol::state::UsageTotal;
use protocol::view::QuestionView;
use runner_core::driver::{ClaimState, branch_state};
use runner_core::files::questions;
use runner_core::message::first_line;
use runner_core::tree::select::{LeafSelection, select};
use runner_git::{Id, Repository};
use runner_os::error_chain::display_chain;
use tempfile::TempDir;

use super::{Api, run_blocking};
use crate::admit::git_error;
use crate::repo::layout::Layout;
use crate::store::{RepoStore, repo_id};
use crate::worker::{self, CommittedState, ExclusiveWork, RunnerChain, WorkerMessage, load_state, node_ref};

/// Prefix of the branches of runs.
const BRANCH_PREFIX: &str = "runner/";
/// Maximum number of commits searched for a claim.
const MAX_COMMITS: usize = 10_000;

impl Api {
    /// Reverts a checkout that was cut off, unless a run is at work: a person would have to commit what git has removed.
    pub(super) async fn revert_checkout(&self, repository: &Repository) -> Result<(), ErrorData> {
        let store = RepoStore::new(&self.state_dir, &repo_id(repository.common_dir()));
        let repository = repository.clone();
        let worker = self.registry.find(repository.common_dir()).await;
        if worker.as_ref().is_some_and(|worker| self.is_unsettled(worker)) || !worker::is_checkout_pending(&store) {
            return Ok(());
        }
        let work = move || {
            let failed = |error| ErrorData::new(ErrorKind::Fault, display_chain(&error)).hint("git status");
            worker::revert_checkout(&store, &repository).map_err(failed)
        };
        match worker {
            Some(worker) => {
                worker.send_request(|reply| WorkerMessage::RunExclusive(ExclusiveWork::new(work), reply)).await
            }
            None => run_blocking(work).await,
        }
    }
}

/// Describes the runs that have branches in a repository, or the one that is named: the most recently moved first.
pub(super) fn list_branch_views(repository: &Repository, at: &AtRun) -> Result<Vec<BranchView>, ErrorData> {
    let (repository, _folder) = &pin_repository(repository)?;
    let mut views: Vec<BranchView> = find_branches(repository, at)?
        .into_iter()
        .map(|(run, tip)| branch_view(repository, &run, tip))
        .collect::<Result<_, _>>()?;
    views.sort_by(|a, b| b.moved_at.cmp(&a.moved_at).then_with(|| a.run.cmp(&b.run)));
    Ok(views)
}

/// Returns the questions that agents ask in these runs; `None` if there is no run.
pub(super) fn list_questions(repository: &Repository, at: &AtRun) -> Result<Option<Vec<QuestionView>>, ErrorData> {
    let (repository, _folder) = &pin_repository(repository)?;
    let branches = find_branches(repository, at)?;
    let mut views = Vec::new();
    if branches.is_empty() {
        return Ok(None);
    }
    for (run, tip) in branches {
        let text =
            repository.read_file(&tip, Layout::QUESTIONS).map_err(|error| git_error(&error))?.unwrap_or_default();
        let entries = questions::parse_questions(&String::from_utf8_lossy(&text)).into_iter();
        let path = &at.path;
        views.extend(entries.map(|questions::AgentQuestion { id, text, answer }| QuestionView {
            id,
            text,
            answer,
            path: path.clone(),
            run: run.clone(),
        }));
    }
    Ok(Some(views))
}

/// Returns the repository with its current configuration captured, which avoids reading it again for each of thousands
/// of files.
fn pin_repository(repository: &Repository) -> Result<(Repository, TempDir), ErrorData> {
    let folder = tempfile::tempdir().map_err(|error| ErrorData::new(ErrorKind::Fault, error.to_string()))?;
    let pinned = repository.pin_config(folder.path()).map_err(|error| git_error(&error))?;
    Ok((pinned, folder))
}

/// Returns the runs and the tips of their branches: the run with exactly this id, else those whose ids start with it.
fn find_branches(repository: &Repository, at: &AtRun) -> Result<Vec<(String, Id)>, ErrorData> {
    let run_prefix = at.run.as_deref().unwrap_or_default();
    let all = repository.list_branches(&format!("{BRANCH_PREFIX}{run_prefix}")).map_err(|error| git_error(&error))?;
    let mut matching: Vec<(String, Id)> =
        all.into_iter().filter_map(|(name, tip)| Some((name.strip_prefix(BRANCH_PREFIX)?.to_owned(), tip))).collect();
    if matching.iter().any(|(run, _)| run == run_prefix) {
        matching.retain(|(run, _)| run == run_prefix);
    }
    Ok(matching)
}

fn branch_view(repository: &Repository, run: &str, tip: Id) -> Result<BranchView, ErrorData> {
    let mut chain = RunnerChain::default();
    let mut newest = None;
    let mut claim = None;
    let walked = repository.visit_first_parents(&tip, MAX_COMMITS, |commit| {
        claim = chain.next_runner_commit(&commit).and_then(ClaimState::from_commit);
        newest.get_or_insert(commit);
        claim.is_some()
    });
    walked.map_err(|error| git_error(&error))?;
    let driver = match &claim {
        Some(ClaimState::By(driver)) => Some(driver.location()),
        Some(ClaimState::Unclaimed) | None => None,
    };
    let blank = BranchView {
        run: run.to_owned(),
        goal: None,
        state: BranchState::Unreadable,
        driver,
        tip: tip.to_string(),
        subject: newest.as_ref().map(|commit| first_line(&commit.message)).unwrap_or_default(),
        moved_at: newest.and_then(|commit| Timestamp::from_second(commit.time).ok()),
        leaves_passed: 0,
        leaves_total: 0,
        iterations: 0,
        node: None,
        usage: UsageTotal::default(),
        elapsed_ms: 0,
        questions: 0,
        fault: None,
    };
    Ok(match load_state(repository, tip) {
        Ok(loaded) => add_state(blank, &loaded, claim.as_ref()),
        Err(error) => BranchView { fault: Some(display_chain(&error)), ..blank },
    })
}

fn add_state(blank: BranchView, loaded: &CommittedState, claim: Option<&ClaimState>) -> BranchView {
    let selection = select(&loaded.tree);
    let state = branch_state(&selection, claim);
    let node = match selection {
        LeafSelection::Open(leaf) | LeafSelection::Exhausted(leaf) => Some(node_ref(loaded, leaf)),
        LeafSelection::Complete => None,
    };
    let (leaves_passed, leaves_total) = loaded.tree.root.leaves();
    BranchView {
        goal: loaded.goal.headline(),
        state,
        leaves_passed,
        leaves_total,
        iterations: loaded.run_state.next_iter.saturating_sub(1),
        node,
        usage: loaded.run_state.usage.clone(),
        elapsed_ms: loaded.run_state.elapsed_ms,
        questions: u32::try_from(questions::count_open(loaded.text(Layout::QUESTIONS))).unwrap_or(u32::MAX),
        ..blank
    }
}
