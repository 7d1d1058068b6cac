//! `tree.*`: the committed tree, read and changed for a person.

use std::path::Path;
use std::sync::Arc;

use jsonrpsee::Extensions;
use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::TreeApiServer;
use protocol::error::{ErrorData, ErrorKind};
use protocol::explain::ExplainReply;
use protocol::reply::{ChangeReply, TreeReply, ValidateReply};
use protocol::request::{AddParams, AtRun, EditParams, RetryParams, ValidateParams};
use protocol::view::SelectView;
use runner_core::committed_state::{FileFault, StateFault};
use runner_core::files::change::{ChangeRequest, NodeAddition};
use runner_core::text::digest::sha256_hex;
use runner_core::tree;
use runner_core::tree::select::{LeafSelection, select};
use runner_core::tree::validate;
use runner_git::{Id, Repository};
use tokio_util::sync::CancellationToken;

use super::explain::explain_next;
use super::iteration::complete_run_id;
use super::{Api, run_blocking, validate as checks};
use crate::admit::{ProgramInputs, git_error, no_run_error};
use crate::repo::durable;
use crate::repo::layout::Layout;
use crate::store::{RepoStore, repo_id};
use crate::worker::{CommittedState, LoadError, load_state, node_ref};

#[async_trait]
impl TreeApiServer for Api {
    async fn get(&self, params: AtRun) -> RpcResult<TreeReply> {
        let params = self.resolve_shown_run(params, "tree").await?;
        let repository = self.find_repository(params.path.as_path()).await?;
        let status = self.registry.find(repository.common_dir()).await.map(|worker| worker.status());
        let loaded = self.load_run_tip(repository, &params).await?;
        let run = status.as_ref().and_then(|status| status.run.as_ref());
        let run = run.filter(|run| loaded.run_state.run_id.as_ref() == Some(&run.summary.id));
        let state = run.map(|run| run.summary.state);
        let live = run.filter(|run| run.phase.is_some()).and_then(|run| run.node.as_ref()).map(|node| node.id.clone());
        let next = match select(&loaded.tree) {
            LeafSelection::Open(leaf) | LeafSelection::Exhausted(leaf) => Some(leaf.id.clone()),
            LeafSelection::Complete => None,
        };
        let digest = sha256_hex(tree::canonical(&loaded.tree).as_bytes());
        Ok(TreeReply { current: live.or(next), state, tree: (*loaded.tree).clone(), digest })
    }

    async fn select(&self, params: AtRun) -> RpcResult<SelectView> {
        let params = self.resolve_shown_run(params, "select").await?;
        let repository = self.find_repository(params.path.as_path()).await?;
        let loaded = self.load_run_tip(repository, &params).await?;
        Ok(match select(&loaded.tree) {
            LeafSelection::Open(leaf) => SelectView::Open { node: node_ref(&loaded, leaf) },
            LeafSelection::Exhausted(leaf) => SelectView::Stuck { node: node_ref(&loaded, leaf) },
            LeafSelection::Complete => SelectView::Complete,
        })
    }

    async fn explain(&self, extensions: &Extensions, params: AtRun) -> RpcResult<ExplainReply> {
        let at = self.resolve_shown_run(params, "explain").await?;
        let repository = self.find_repository(at.path.as_path()).await?;
        let worker = self.registry.find(repository.common_dir()).await;
        let store = RepoStore::new(&self.state_dir, &repo_id(repository.common_dir()));
        let known = match worker {
            Some(worker) => worker.list_runs().await.0,
            None => Vec::new(),
        };
        let query = format!("explain {:?} {}", at.run, self.events.last_seq());
        let repo = repository.clone();
        let run = at.run.clone();
        let read = move |_: &CancellationToken| {
            let loaded = load_tip(&repo, run.as_deref())?;
            let summary = known.into_iter().find(|run| loaded.run_state.run_id.as_ref() == Some(&run.id));
            Ok(explain_next(&loaded, summary, &store))
        };
        let explained = self.read_shared(extensions, &repository, &query, read).await;
        Ok(self.explain_unbegun(&at.path, at.run.as_deref(), explained).await?)
    }

    async fn validate(&self, params: ValidateParams) -> RpcResult<ValidateReply> {
        let repository = self.find_repository(params.path.as_path()).await?;
        let capabilities = Arc::clone(&self.capabilities);
        Ok(run_blocking(move || {
            checks::run_checks(&repository, ProgramInputs { env: &params.env.0, capabilities: Some(&capabilities) })
        })
        .await?)
    }

    async fn retry(&self, params: RetryParams) -> RpcResult<ChangeReply> {
        Ok(self.submit_change(params.at, ChangeRequest::Retry { node: params.node }, None).await?)
    }

    async fn add_node(&self, params: AddParams) -> RpcResult<ChangeReply> {
        let AddParams { at, parent, title, goal, acceptance, after, order } = params;
        let addition = NodeAddition { parent, title, goal, acceptance, after, order };
        Ok(self.submit_change(at, ChangeRequest::Add(addition), None).await?)
    }

    async fn edit(&self, params: EditParams) -> RpcResult<ChangeReply> {
        let EditParams { at, file, opened } = params;
        let edited = run_blocking(move || read_edited_tree(file.as_path())).await?;
        Ok(self.submit_change(at, ChangeRequest::Edit { base: String::new(), edited }, opened).await?)
    }
}

impl Api {
    /// Reads the state at the tip of a run's branch; says of a run without a commit that it has none.
    async fn load_run_tip(&self, repository: Repository, at: &AtRun) -> Result<CommittedState, ErrorData> {
        let run = at.run.clone();
        let loaded = run_blocking(move || load_tip(&repository, run.as_deref())).await;
        self.explain_unbegun(&at.path, at.run.as_deref(), loaded).await
    }
}

/// Reads the tree that a person has saved in a file.
fn read_edited_tree(file: &Path) -> Result<String, ErrorData> {
    let bytes = durable::read(file)
        .map_err(|error| ErrorData::new(ErrorKind::InvalidRequest, error.to_string()).caused_by(&error))?
        .ok_or_else(|| ErrorData::new(ErrorKind::NotFound, format!("there is no file {}", file.display())))?;
    // Parsing and formatting gives a text the bounds that the queue relies on.
    let tree = validate::load_person_tree(&bytes).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        ErrorData::new(ErrorKind::InvalidRequest, format!("the tree is not valid:\n{}", faults.join("\n")))
    })?;
    Ok(tree::canonical(&tree))
}

/// Reads the state at the tip of a run's branch, else at HEAD.
pub(super) fn load_tip(repository: &Repository, run: Option<&str>) -> Result<CommittedState, ErrorData> {
    let tip = find_tip(repository, run)?;
    match load_state(repository, tip) {
        Err(LoadError::File { fault: StateFault { path: Layout::TREE, fault: FileFault::Missing }, .. })
            if run.is_none() =>
        {
            Err(no_run_at_head(repository))
        }
        loaded => loaded.map_err(|error| error.to_error_data("runnerctl validate, or runnerctl start")),
    }
}

fn no_run_at_head(repository: &Repository) -> ErrorData {
    let branches = repository.list_branches("runner/").unwrap_or_default();
    let ids: Vec<&str> = branches.iter().filter_map(|(name, _)| name.strip_prefix("runner/")).collect();
    match ids[..] {
        [] => no_run_error(repository.work_dir()),
        _ => ErrorData::new(ErrorKind::NotFound, "the commit at HEAD belongs to no run")
            .hint(format!("name one of these with --run: {}", ids.join(", "))),
    }
}

/// Returns the last commit of a run; the one that is checked out if none is named.
pub(super) fn find_tip(repository: &Repository, run: Option<&str>) -> Result<Id, ErrorData> {
    let run = run.map(|run| complete_run_id(repository, run)).transpose()?;
    let tip = match &run {
        Some(run) => repository.find_branch_tip(&format!("runner/{run}")).map_err(|error| git_error(&error))?,
        None => repository.head().map_err(|error| git_error(&error))?.commit(),
    };
    let no_run = || {
        let place = repository.work_dir().display();
        let (message, hint) = match &run {
            Some(run) => (format!("there is no branch runner/{run} in {place}"), "runnerctl queue --ended"),
            None => (format!("{place} has no commit yet"), "git commit --allow-empty -m Begin"),
        };
        ErrorData::new(ErrorKind::NotFound, message).hint(hint)
    };
    tip.ok_or_else(no_run)
}
