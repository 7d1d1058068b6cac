//! `delivery.*`: describes a branch to those who are to accept it, and passes their feedback to sessions.
//!
//! Nothing is sent from here: that is up to a client.

use jsonrpsee::Extensions;
use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::DeliveryApiServer;
use protocol::delivery::{DescribeParams, DescribeReply, FeedbackParams, FeedbackReply, MAX_FEEDBACK_ITEMS};
use protocol::error::{ErrorData, ErrorKind};
use protocol::shell;
use runner_config::{DeliverConfig, RepoConfig};
use runner_core::delivery::{
    DeliveredRun, IterationCommit, PullRequestFeedback, RenderedFeedback, describe_run, leaf_title, render_feedback,
};
use runner_core::files::change::{ChangeRequest, NodeAddition};
use runner_core::tree;
use runner_git::{Id, Repository};
use tokio_util::sync::CancellationToken;

use super::tree::load_tip;
use super::verify::verify_error_data;
use super::{Api, run_blocking};
use crate::admit::{self, git_error};
use crate::landing;
use crate::repo::layout::Layout;
use crate::store::{QueuedChange, RepoStore, repo_id};
use crate::verify::{VerifyTarget, resolve_target, verify_branch};
use crate::worker::{CommittedState, WorkerHandle, list_receipts, load_state, session_base};

/// Maximum number of commits searched for receipts.
const MAX_COMMITS: usize = 100_000;

#[async_trait]
impl DeliveryApiServer for Api {
    async fn describe(&self, extensions: &Extensions, params: DescribeParams) -> RpcResult<DescribeReply> {
        let DescribeParams { path, run, remote, confirmed } = params;
        let repository = self.find_repository(path.as_path()).await?;
        let worker = self.registry.find(repository.common_dir()).await;
        let store = RepoStore::new(&self.state_dir, &repo_id(repository.common_dir()));
        let found = run_blocking({
            let repository = repository.clone();
            let suspects = store.suspects_file();
            let run = run.clone();
            move || {
                // The person's own git pushes what is described here, and reads this work tree.
                admit::refuse_pipes(&repository)?;
                admit::check_user_push(&suspects, confirmed)?;
                let VerifyTarget { run, tip } = resolve_target(&repository, run.as_deref(), "deliver")?;
                // Commits that the current session has made are not judged yet.
                let tip = session_base(&store, &run).unwrap_or(tip);
                Ok((repository, VerifyTarget { run, tip }))
            }
        })
        .await;
        let (repo, target) = self.explain_unbegun(&path, run.as_deref(), found).await?;
        let run = target.run.clone();
        let active_run = worker.as_ref().and_then(|worker| self.find_active_run(worker));
        // While a session may have written it, the configuration of the work tree does not count.
        let own = match active_run {
            Some(_) => None,
            None => {
                run_blocking({
                    let repository = repository.clone();
                    move || read_own_config(&repository)
                })
                .await?
            }
        };
        let own_command = own.as_ref().map(|own| own.deliver.command.clone());
        let onto = self.read_targets(&repository)?.0.get(&target.run).cloned();
        let onto = run_blocking({
            let repository = repository.clone();
            move || Ok(onto.clone().zip(find_tip(&repository, onto.as_deref())?))
        })
        .await?;
        let query = format!("describe {} {} {remote:?} {own:?} {onto:?}", target.run, target.tip);
        let read = move |stop: &CancellationToken| {
            let (reply, digest) = describe_branch(&repo, &target, remote, own.as_ref(), stop)?;
            let landed_on = onto.map(|(branch, tip)| find_landed(&repo, &target, (branch, tip), stop)).transpose()?;
            Ok((DescribeReply { landed_on: landed_on.flatten(), ..reply }, digest))
        };
        let described = self.read_shared(extensions, &repository, &query, read).await;
        let (reply, digest) = self.explain_unbegun(&path, Some(&run), described).await?;
        let digests = match &worker {
            Some(worker) => worker.list_runs().await.1,
            None => Vec::new(),
        };
        // What this user has set since the run is as good as confirmed.
        let is_own = own_command.as_ref() == Some(&reply.command) && was_written_here(&repository).await?;
        if !reply.command.is_empty() && !confirmed && !is_own && !digests.contains(&digest) {
            return Err(unconfirmed_error(&reply.command).into());
        }
        Ok(DescribeReply { at_work: active_run, ..reply })
    }

    async fn feedback(&self, params: FeedbackParams) -> RpcResult<FeedbackReply> {
        let FeedbackParams { at, request, items, add, dry_run } = params;
        if items.len() > MAX_FEEDBACK_ITEMS {
            let message = format!("{} pieces of feedback at once; at most {MAX_FEEDBACK_ITEMS} are taken", items.len());
            return Err(ErrorData::new(ErrorKind::InvalidRequest, message).into());
        }
        let repository = self.find_repository(at.path.as_path()).await?;
        let store = RepoStore::new(&self.state_dir, &repo_id(repository.common_dir()));
        let run = at.run.clone();
        let targets = self.read_targets(&repository)?;
        let (rendering, root, request) = run_blocking(move || {
            let loaded = load_tip(&repository, run.as_deref())?;
            let queued = load_queued_changes(&store)?;
            let mut known = known_texts(&loaded, &queued);
            let branch = loaded.run_state.run_id.as_ref().map(|run| format!("deliver/{run}"));
            for (next, _) in targets.0.iter().filter(|(_, onto)| Some(*onto) == branch.as_ref()) {
                // A run without a commit has been told nothing yet.
                known.extend(load_tip(&repository, Some(next)).map(|begun| begun.goal.body().to_owned()).ok());
            }
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let rendered =
                render_feedback(&PullRequestFeedback { request: &request, items: &items, known_texts: &known });
            Ok((rendered, loaded.tree.root.id.clone(), request))
        })
        .await?;
        let RenderedFeedback { text, included, already_known, omitted } = rendering;
        let change = if dry_run || text.is_empty() {
            None
        } else {
            Some(self.submit_change(at, feedback_change(add, root, &request, text.clone()), None).await?)
        };
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Ok(FeedbackReply {
            included: count(included),
            known: count(already_known),
            omitted: count(omitted),
            text,
            change,
        })
    }
}

impl Api {
    /// Returns the run whose session may have written git's configuration, which has not been restored yet.
    fn find_active_run(&self, worker: &WorkerHandle) -> Option<String> {
        let status = worker.status();
        let may_be_active = self.is_unsettled(worker) || status.repo.held.is_some();
        let name = || status.run.as_ref().map_or_else(|| "of this repository".to_owned(), |run| run.summary.id.clone());
        may_be_active.then(name)
    }
}

/// Describes the content of a branch; also returns the digest of the configuration's commands.
fn describe_branch(
    repository: &Repository,
    target: &VerifyTarget,
    remote: Option<String>,
    own: Option<&RepoConfig>,
    stop: &CancellationToken,
) -> Result<(DescribeReply, String), ErrorData> {
    let loaded = load_state(repository, target.tip).map_err(|error| error.to_error_data("runnerctl verify"))?;
    let audit =
        verify_branch(repository, target, false, stop).map_err(|error| verify_error_data(repository, &error))?;
    let receipts =
        list_receipts(repository, &target.run, target.tip, MAX_COMMITS).map_err(|error| git_error(&error))?;
    let iterations: Vec<IterationCommit> =
        receipts.into_iter().rev().map(|(id, receipt)| IterationCommit { commit: id.to_string(), receipt }).collect();
    let branch = format!("deliver/{}", target.run);
    let settings = deliver_settings(&loaded.config, own);
    let remote = remote.unwrap_or_else(|| settings.remote.clone());
    let description = describe_run(&DeliveredRun {
        run: &target.run,
        branch: &branch,
        remote: &remote,
        goal: loaded.goal.body(),
        tree: &loaded.tree,
        run_state: &loaded.run_state,
        tests: &loaded.tests,
        questions: loaded.text(Layout::QUESTIONS),
        guard: &loaded.config.guard.command,
        iterations: &iterations,
        audit: &audit,
    });
    let (leaves_passed, leaves_total) = loaded.tree.root.leaves();
    let reply = DescribeReply {
        run: target.run.clone(),
        tip: target.tip.to_string(),
        branch,
        landed_on: None,
        at_work: None,
        leaves_passed,
        leaves_total,
        title: description.title,
        body: description.body,
        remote,
        base: settings.base.clone(),
        command: settings.command.clone(),
        on_complete: settings.on_complete,
    };
    let is_own_command = own.is_some_and(|own| own.deliver.command == settings.command);
    let digest = own.filter(|_| is_own_command).unwrap_or(&loaded.config).commands_digest();
    Ok((reply, digest))
}

/// Returns the tip of a branch, if both exist.
fn find_tip(repository: &Repository, branch: Option<&str>) -> Result<Option<Id>, ErrorData> {
    let tip = branch.map(|branch| repository.find_branch_tip(branch)).transpose();
    Ok(tip.map_err(|error| git_error(&error))?.flatten())
}

/// Returns the branch if it has everything of the run.
fn find_landed(
    repository: &Repository,
    target: &VerifyTarget,
    (branch, tip): (String, Id),
    stop: &CancellationToken,
) -> Result<Option<String>, ErrorData> {
    let has_landed = landing::has_landed(repository, target, &tip, stop);
    Ok(has_landed.map_err(|error| error.to_error_data(&branch))?.then_some(branch))
}

/// Whether this user has written the configuration in the work tree.
async fn was_written_here(repository: &Repository) -> Result<bool, ErrorData> {
    let repository = repository.clone();
    run_blocking(move || repository.was_written_here(Layout::CONFIG).map_err(|error| git_error(&error))).await
}

/// Returns the configuration in the work tree, if there is one.
fn read_own_config(repository: &Repository) -> Result<Option<RepoConfig>, ErrorData> {
    repository.work_dir().join(Layout::CONFIG).is_file().then(|| admit::read_config(repository)).transpose()
}

/// Returns how a branch is delivered: what the work tree's configuration sets, and the rest as the branch has it.
fn deliver_settings(committed: &RepoConfig, own: Option<&RepoConfig>) -> DeliverConfig {
    let default = RepoConfig::default().deliver;
    let mut settings = committed.deliver.clone();
    let Some(own) = own.map(|own| own.deliver.clone()) else { return settings };
    if own.remote != default.remote {
        settings.remote = own.remote;
    }
    if own.base != default.base {
        settings.base = own.base;
    }
    if own.command != default.command {
        settings.command = own.command;
    }
    settings.on_complete |= own.on_complete;
    settings
}

fn unconfirmed_error(command: &[String]) -> ErrorData {
    let command_text = shell::join_args(command.iter().map(String::as_str));
    let message = format!("`[deliver] command` of this repository was not confirmed; it would run:\n  {command_text}");
    ErrorData::new(ErrorKind::Unconfirmed, message).hint("look at the command, then add --yes")
}

/// Reads the requests that are not committed yet: they are acknowledged already.
fn load_queued_changes(store: &RepoStore) -> Result<Vec<QueuedChange>, ErrorData> {
    let changes = store.load_changes();
    changes
        .map(|changes| changes.queue)
        .map_err(|error| ErrorData::new(ErrorKind::Held, error.to_string()).caused_by(&error))
}

/// Returns the texts that may contain feedback on a run.
fn known_texts(loaded: &CommittedState, queued_change: &[QueuedChange]) -> Vec<String> {
    let goals = tree::walk(&loaded.tree).into_iter().map(|placed| placed.node.goal.clone());
    let of_run = queued_change.iter().filter(|waiting| loaded.run_state.run_id.as_ref() == Some(&waiting.run));
    let queued = of_run.filter_map(|waiting| match &waiting.change {
        ChangeRequest::Note { text, .. } => Some(text.clone()),
        ChangeRequest::Add(addition) => Some(addition.goal.clone()),
        _ => None,
    });
    std::iter::once(loaded.text(Layout::NOTES).to_owned()).chain(goals).chain(queued).collect()
}

/// Builds the request for feedback: a new leaf, or a note.
fn feedback_change(add: bool, root: String, request: &str, text: String) -> ChangeRequest {
    if !add {
        return ChangeRequest::Note { id: String::new(), text };
    }
    let title = leaf_title(request);
    let acceptance = Vec::new();
    ChangeRequest::Add(NodeAddition { parent: root, title, goal: text, acceptance, after: None, order: None })
}
